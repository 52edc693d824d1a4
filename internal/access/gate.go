package access

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/berthmaster/berthmaster/internal/router"
)

// Identity is who a token belongs to, as the API server says.
type Identity struct {
	User, UID string
	Groups    []string
	Extra     map[string][]string
	// Expires is when the token's own time is up; zero: it does not say.
	Expires time.Time
}

// Reviewer asks the API server. An error says that it could not be asked.
type Reviewer interface {
	// Identify says whose token it is; false: nobody's.
	Identify(ctx context.Context, token string) (Identity, bool, error)
	// Permits says whether the caller may do the deed.
	Permits(ctx context.Context, who Identity, what Deed) (bool, error)
}

// Config is what a Gate is made of.
type Config struct {
	// Reviewer is asked; required.
	Reviewer Reviewer
	// Pools have the subjects of senders; required.
	Pools *router.Pools
	// Failed is told why the API server could not be asked, which no caller is; nil: nobody is.
	Failed func(error)
	// Clock tells the time; nil: time.Now.
	Clock func() time.Time
	// Limits: the zero value of each field stands for its default.
	Limits Limits
}

// Gate lets callers in or refuses them. It is the Authorizer of the lease API and of the proxy. It is
// safe for concurrent use, and holds nothing that needs closing.
type Gate struct {
	pools  *router.Pools
	failed func(error)
	clock  func() time.Time
	limits Limits
	tokens *memo[[sha256.Size]byte, string, verdict]
	deeds  *memo[[sha256.Size]byte, deedOf, bool]
}

// verdict is what is known of a token.
type verdict struct {
	known  bool
	who    Identity
	digest [sha256.Size]byte // of all that the API server is told about the caller
}

// deedOf is the question whether a caller may do a deed.
type deedOf struct {
	who  Identity
	what Deed
}

// New makes a Gate. It panics without a Reviewer or Pools.
func New(c Config) *Gate {
	if c.Reviewer == nil || c.Pools == nil {
		panic("access: Config.Reviewer and Config.Pools are required")
	}
	if c.Clock == nil {
		c.Clock = time.Now
	}
	if c.Failed == nil {
		c.Failed = func(error) {}
	}
	g := &Gate{pools: c.Pools, failed: c.Failed, clock: c.Clock, limits: c.Limits.withDefaults()}
	g.tokens = newMemo[[sha256.Size]byte](g.limits.Tokens, g.limits.AtOnce, g.clock, func(ctx context.Context, token string) (verdict, span, error) {
		who, known, err := c.Reviewer.Identify(ctx, token)
		return verdict{known, who, digestOf(who)}, g.spanOf(known, who.Expires), err
	})
	g.deeds = newMemo[[sha256.Size]byte](g.limits.Deeds, g.limits.AtOnce, g.clock, func(ctx context.Context, d deedOf) (bool, span, error) {
		may, err := c.Reviewer.Permits(ctx, d.who, d.what)
		return may, g.spanOf(may, time.Time{}), err
	})
	return g
}

// spanOf is how long an answer that is had now holds.
func (g *Gate) spanOf(allowed bool, expires time.Time) span {
	now := g.clock()
	if !allowed {
		return span{fresh: now.Add(g.limits.Refused)}
	}
	s := span{fresh: now.Add(g.limits.Allowed), stale: now.Add(g.limits.Grace)}
	if !expires.IsZero() {
		s.fresh, s.stale = earlier(s.fresh, expires), earlier(s.stale, expires)
	}
	return s
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

// digestOf names an identity: two of one digest are the same in everything that rights hang on.
func digestOf(who Identity) [sha256.Size]byte {
	h := sha256.New()
	// %q keeps parts apart that hold whatever a name may hold; maps are printed in the order of their keys.
	_, _ = fmt.Fprintf(h, "%q %q %q %q", who.User, who.UID, who.Groups, who.Extra)
	return [sha256.Size]byte(h.Sum(nil))
}

// Authorize says whether the caller may take and end leases of the pool as the sender, or, with no
// sender, read. It returns nil or a *router.Refusal.
func (g *Gate) Authorize(r *http.Request, pool router.PoolKey, sender router.SenderName) error {
	who, err := g.may(r, Deed{Verb: verbOf(r, sender), Namespace: pool.Namespace, Pool: pool.Name})
	if err == nil {
		err = knownSender(sender)
	}
	if err != nil || sender == "" {
		return err
	}
	table, ok := g.pools.Get(pool)
	if !ok {
		return nil // what is not there is for the call itself to say
	}
	return table.Entitled(sender, router.Caller{User: who.User, Groups: who.Groups})
}

// verbOf: whoever names a sender, or changes something, needs the right to take leases.
func verbOf(r *http.Request, sender router.SenderName) string {
	if sender == "" && (r.Method == http.MethodGet || r.Method == http.MethodHead) {
		return "get"
	}
	return "create"
}

// Authenticate says whether the caller is anybody that the API server knows, whatever it may do. It returns nil or
// a *router.Refusal.
func (g *Gate) Authenticate(r *http.Request) error {
	_, err := g.identify(r)
	return err
}

// identify says who the caller is, or refuses.
func (g *Gate) identify(r *http.Request) (verdict, error) {
	token := bearer(r.Header)
	if token == "" {
		return verdict{}, unauthenticated("say who calls: Authorization: Bearer, with a token of a Kubernetes service account")
	}
	if len(token) > maxTokenBytes {
		return verdict{}, unauthenticated("the bearer token is too long to be one of the API server's")
	}
	v, err := g.tokens.get(r.Context(), addressOf(r), sha256.Sum256([]byte(token)), token)
	switch {
	case err != nil:
		return verdict{}, g.unavailable(err)
	case !v.known:
		return verdict{}, unauthenticated("the API server does not know the bearer token, or its time is up, or it is meant for another audience")
	}
	return v, nil
}

// may says who the caller is, if it may do that, or refuses.
func (g *Gate) may(r *http.Request, what Deed) (Identity, error) {
	v, err := g.identify(r)
	if err == nil {
		err = what.named()
	}
	if err != nil {
		return Identity{}, err
	}
	allowed, err := g.deeds.get(r.Context(), addressOf(r), what.digest(v.digest), deedOf{v.who, what})
	switch {
	case err != nil:
		return Identity{}, g.unavailable(err)
	case !allowed:
		return Identity{}, forbidden(v.who.User, what)
	}
	return v.who, nil
}

// addressOf is where a call comes from. What has no address, as a test's recorder, takes one turn.
func addressOf(r *http.Request) string {
	from, _, _ := net.SplitHostPort(r.RemoteAddr)
	return from
}

// maxTokenBytes is more than any token has that reaches the API server: a service account's has about one
// KiB, an identity provider's with hundreds of groups about six.
const maxTokenBytes = 8 << 10

// bearer is the token of a request; empty: there is none.
func bearer(h http.Header) string {
	scheme, token, ok := strings.Cut(h.Get("Authorization"), " ")
	if !ok || !strings.EqualFold(scheme, "Bearer") {
		return ""
	}
	return strings.TrimSpace(token)
}

func unauthenticated(detail string) *router.Refusal {
	return &router.Refusal{Reason: ReasonUnauthenticated, Detail: detail}
}

// The reasons of refusals made here.
const (
	// ReasonUnauthenticated: the caller did not say who it is, or not so that it can be believed.
	ReasonUnauthenticated router.Reason = "Unauthenticated"
	// ReasonUnavailable: the API server could not be asked.
	ReasonUnavailable router.Reason = "AuthenticationUnavailable"
)

// unavailable says nothing of the error, which may hold addresses, to somebody who is not known.
func (g *Gate) unavailable(err error) *router.Refusal {
	if !errors.Is(err, context.Canceled) { // the client has gone
		g.failed(err)
	}
	return &router.Refusal{
		Reason: ReasonUnavailable, RetryAfter: time.Second,
		Detail: "the API server could not be asked who calls and what they may do: ask again",
	}
}

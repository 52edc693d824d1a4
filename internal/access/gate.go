package access

import (
	"context"
	"crypto/sha256"
	"errors"
	"net/http"
	"net/netip"
	"strings"
	"time"

	"github.com/berthmaster/berthmaster/internal/door"
	"github.com/berthmaster/berthmaster/internal/router"
)

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
	// Failed is told why the API server could not be asked, which no caller is: the first time, and then at most
	// once a minute, with how many times it was not told since; nil: nobody is.
	Failed func(err error, untold int)
	// Clock tells the time; nil: time.Now.
	Clock func() time.Time
	// Limits: the zero value of each field stands for its default.
	Limits Limits
}

// Gate lets callers in or refuses them. It is the Authorizer of the lease API and of the proxy. It is
// safe for concurrent use, and holds nothing that needs closing.
type Gate struct {
	pools  *router.Pools
	failed complaints
	clock  func() time.Time
	limits Limits
	tokens *memo[[sha256.Size]byte, string, verdict]
	deeds  *memo[[sha256.Size]byte, deedOf, bool]
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
		c.Failed = func(error, int) {}
	}
	g := &Gate{pools: c.Pools, failed: complaints{to: c.Failed}, clock: c.Clock, limits: c.Limits.withDefaults()}
	l, waiting := g.limits, newRoom(g.limits.Waiting)
	tokens := memory[verdict]{answers: l.Tokens, weigh: verdict.weight, bytes: l.IdentityBytes}
	g.tokens = newMemo[[sha256.Size]byte](tokens, newTurns(l.AtOnce), waiting, g.clock, func(ctx context.Context, token string) (verdict, span, error) {
		who, known, err := c.Reviewer.Identify(ctx, token)
		return verdict{known, who, digestOf(who)}, g.spanOf(known, who.Expires), err
	})
	deeds := memory[bool]{answers: l.Deeds}
	g.deeds = newMemo[[sha256.Size]byte](deeds, newTurns(l.AtOnce), waiting, g.clock, func(ctx context.Context, d deedOf) (bool, span, error) {
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

// Authorize says whether the caller may take and end leases of the pool as the sender, or, with no
// sender, read. It returns nil or a *router.Refusal.
func (g *Gate) Authorize(r *http.Request, pool router.PoolKey, sender router.SenderName) error {
	_, err := g.admit(r, pool, sender)
	return err
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
	v, err := g.tokens.get(r.Context(), homeOf(r), sha256.Sum256([]byte(token)), token)
	switch {
	case err != nil:
		return verdict{}, g.unavailable(err)
	case !v.known:
		return verdict{}, unauthenticated("the API server does not know the bearer token, or its time is up, or it is meant for another audience")
	}
	return v, nil
}

// may refuses whoever is not known, or may not do that.
func (g *Gate) may(r *http.Request, what Deed) error {
	v, err := g.identify(r)
	if err == nil {
		err = what.named()
	}
	if err != nil {
		return err
	}
	return g.permits(r.Context(), homeOf(r), v, what)
}

// permits refuses a caller who is known and may not do that.
func (g *Gate) permits(ctx context.Context, from netip.Prefix, v verdict, what Deed) error {
	allowed, err := g.deeds.get(ctx, from, what.digest(v.digest), deedOf{v.who, what})
	switch {
	case err != nil:
		return g.unavailable(err)
	case !allowed:
		return forbidden(v.who.User, what)
	}
	return nil
}

// homeOf is where a call comes from. Those that have no address, as a test's recorder, share one.
func homeOf(r *http.Request) netip.Prefix {
	from, _ := netip.ParseAddrPort(r.RemoteAddr)
	return door.Home(from.Addr())
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
		g.failed.tell(err, g.clock())
	}
	detail := "the API server could not be asked who calls and what they may do: ask again"
	if errors.Is(err, errCrowded) {
		detail = "too many calls, all together or from the caller's address, wait for the API server to judge them: ask again"
	}
	return &router.Refusal{Reason: ReasonUnavailable, RetryAfter: time.Second, Detail: detail}
}

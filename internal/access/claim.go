package access

import (
	"context"
	"net/http"
	"net/netip"

	"github.com/berthmaster/berthmaster/internal/router"
)

// Admit is Authorize for a call that lasts: still says whether its caller has the same rights later on. It asks for
// the rights of whom the token belonged to, and not for the token, whose time may be up by then: that keeps somebody
// from beginning anything, and ends nothing that has begun. still returns nil or a *router.Refusal, and is safe for
// concurrent use.
func (g *Gate) Admit(r *http.Request, pool router.PoolKey, sender router.SenderName) (still func(context.Context) error, err error) {
	c, err := g.admit(r, pool, sender)
	if err != nil {
		return nil, err
	}
	return c.holds, nil
}

// claim is that a caller may take and end leases of a pool, or read. It has no token.
type claim struct {
	gate   *Gate
	who    verdict
	from   netip.Prefix // the address that questions are asked in turn for
	what   Deed
	pool   router.PoolKey
	sender router.SenderName // empty: none
}

func (g *Gate) admit(r *http.Request, pool router.PoolKey, sender router.SenderName) (*claim, error) {
	c := &claim{gate: g, from: homeOf(r), what: Deed{Verb: verbOf(r, sender), Namespace: pool.Namespace, Pool: pool.Name}, pool: pool, sender: sender}
	var err error
	if c.who, err = g.identify(r); err != nil {
		return nil, err
	}
	if err := c.what.named(); err != nil {
		return nil, err
	}
	return c, c.holds(r.Context())
}

// holds refuses a claim that has no ground now.
func (c *claim) holds(ctx context.Context) error {
	err := c.gate.permits(ctx, c.from, c.who, c.what)
	if err == nil {
		err = knownSender(c.sender)
	}
	if err != nil || c.sender == "" {
		return err
	}
	table, ok := c.gate.pools.Get(c.pool)
	if !ok {
		return nil // what is not there is for the call itself to say
	}
	return table.Entitled(c.sender, router.Caller{User: c.who.who.User, Groups: c.who.who.Groups})
}

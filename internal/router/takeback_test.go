package router_test

import (
	"testing"

	"github.com/berthmaster/berthmaster/internal/router"
	"github.com/berthmaster/berthmaster/internal/router/routertest"
)

// R3, R5: a lease that several callers were given is taken back from those who are not told of it.

func TestALeaseStaysUntilItIsTakenBackFromAllThatWereGivenIt(t *testing.T) {
	for name, c := range map[string]struct {
		given int
		from  []int
		stays bool
	}{
		"from the only one":               {1, []int{0}, false},
		"from the first of two":           {2, []int{0}, true},
		"from the second of two":          {2, []int{1}, true},
		"from both, the first one first":  {2, []int{0, 1}, false},
		"from both, the second one first": {2, []int{1, 0}, false},
		"from two of three":               {3, []int{0, 1}, true},
		"from all three":                  {3, []int{2, 0, 1}, false},
	} {
		t.Run(name, func(t *testing.T) {
			p := routertest.New(t, routertest.Backends("a"))
			var grants []router.Grant
			for range c.given {
				grants = append(grants, p.Acquire("r", "s"))
			}
			for _, i := range c.from {
				p.Table.TakeBack(&grants[i], p.Now())
			}
			if n := p.Backend("a/1").Outstanding; (n == 1) != c.stays {
				t.Fatalf("%d counted, want it to stay: %v", n, c.stays)
			}
			if c.stays {
				p.Renew(grants[0], router.Started)
				return
			}
			if s := p.Snapshot(); s.Requests+s.Sessions != 0 || s.Totals.Grants != 0 {
				t.Errorf("%d records, %d sessions, %d grants", s.Requests, s.Sessions, s.Totals.Grants)
			}
			if again := p.Acquire("r", "s"); again.Again || again.Claim.RID == grants[0].Claim.RID {
				t.Errorf("the id is answered with what was taken back: %+v", again)
			}
		})
	}
}

func TestWhatTheHolderSaidOfALeaseIsNotTakenBack(t *testing.T) {
	p := routertest.New(t, routertest.Backends("a"))
	p.Acquire("r", "s")
	again := p.Acquire("r", "s")
	p.Release(again, router.Succeeded)
	p.Table.TakeBack(&again, p.Now())
	if r := p.Refuse(p.Request("r", "s"), router.ErrLeaseEnded); r.Outcome != router.Succeeded {
		t.Errorf("the id is answered %+v", r)
	}
}

// The token of an earlier term speaks for a holder that was given the lease there.
func TestALeaseIsNotTakenBackFromWhoeverHoldsItsTokenSinceAnEarlierTerm(t *testing.T) {
	p := routertest.New(t, routertest.Backends("a"))
	g := p.Acquire("r", "s")
	p.TakeOver(p.Fleet.Config.StartWindow)
	r := p.Request("r", "s")
	r.Prior = &g.Claim
	again := p.Grant(r)
	p.Table.TakeBack(&again, p.Now())
	p.Renew(g, router.Started)
	if n := p.Backend("a/1").Outstanding; n != 1 {
		t.Errorf("%d counted, want the one that its holder may begin", n)
	}
}

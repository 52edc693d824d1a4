package router_test

import (
	"errors"
	"testing"
	"time"

	"github.com/berthmaster/berthmaster/internal/router"
	"github.com/berthmaster/berthmaster/internal/router/routertest"
)

// One who takes over waits for the start windows that were open when the term was written; one whose
// leadership has run out must not open another.
func TestNoStartWindowOpensOnceLeadershipHasRunOut(t *testing.T) {
	p := routertest.New(t, routertest.Backends("a"))
	g := p.Acquire("r1", "s")
	p.Table.LeadUntil(p.Now(), p.Now())
	p.Refuse(p.Request("r1", "s"), router.ErrNoLeader)
	p.RefuseRenewal(g, router.ErrNoLeader)
	p.Renew(g, router.Started)
	p.Renew(g, router.NotStarted) // it has begun: no window is open, and none opens
	p.Table.LeadUntil(p.Now().Add(time.Hour), p.Now())
	p.Acquire("r2", "s")
}

// The next leader may have adopted the session with a token.
func TestTheEndOfASessionIsHeardByWhoeverLeads(t *testing.T) {
	p := routertest.New(t, routertest.Backends("a"))
	p.Acquire("r1", "s")
	p.Table.LeadUntil(p.Now(), p.Now())
	if err := p.Table.EndSession("s", "train", p.Now()); !errors.Is(err, router.ErrNoLeader) {
		t.Errorf("without authority: %v, want NoLeader", err)
	}
	p.Table.LeadUntil(p.Now().Add(time.Hour), p.Now())
	if err := p.Table.EndSession("s", "train", p.Now()); err != nil {
		t.Errorf("with authority: %v", err)
	}
}

// A client that reached the next leader renews there.
func TestWhatWasNotRenewedIsLeftAloneOnceLeadershipHasRunOut(t *testing.T) {
	p := routertest.New(t, routertest.Backends("a"))
	g := p.Acquire("r1", "s")
	p.Table.LeadUntil(p.Now(), p.Now())
	p.Pass(3 * time.Minute)
	for _, c := range p.Table.Chores(p.Now()) {
		if len(c.Abort) > 0 {
			t.Errorf("aborts %v", c.Abort)
		}
	}
	p.Table.LeadUntil(p.Now().Add(time.Hour), p.Now())
	p.Pass(time.Second)
	chores := p.Table.Chores(p.Now())
	if len(chores) != 1 || len(chores[0].Abort) != 1 || chores[0].Abort[0] != g.Claim.RID {
		t.Errorf("chores %+v, want the abort of what was lost", chores)
	}
}

// What another router grants meanwhile would make every proof void.
func TestNothingIsProvenWithoutATerm(t *testing.T) {
	p := routertest.New(t, routertest.Backends("a"))
	fleet := p.Fleet
	fleet.Members[0].Load = router.LoadUnknown
	fleet.Members[0].Drain = router.DrainMove
	fresh := router.NewTable("pool", nil, p.Now())
	if err := fresh.Apply(fleet, p.Now()); err != nil {
		t.Fatal(err)
	}
	inc := fleet.Members[0].Incarnation
	fresh.Observe(router.Observation{Incarnation: inc, Seq: 1, Health: router.Healthy, Capacity: 4}, p.Now())
	if chores := fresh.Chores(p.Now()); len(chores) > 0 {
		t.Errorf("chores %+v before there is a term", chores)
	}
	fresh.Lead(2, router.Takeover{Windows: 30 * time.Second}, p.Now())
	if chores := fresh.Chores(p.Now().Add(31 * time.Second)); len(chores) != 1 || !chores[0].ReadLoads {
		t.Errorf("chores %+v, want the load read once it leads", chores)
	}
}

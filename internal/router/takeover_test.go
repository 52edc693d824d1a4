package router_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/berthmaster/berthmaster/internal/router"
	"github.com/berthmaster/berthmaster/internal/router/routertest"
)

// R11: one authority, adoption, unknown load. R13: durable failure.

func TestNothingIsGrantedWithoutATermOrAfterLeadershipEnds(t *testing.T) {
	p := routertest.New(t, routertest.Backends("a"))
	g := p.Acquire("r0", "s")
	p.Table.LeadUntil(p.Now().Add(10*time.Second), p.Now())
	p.Pass(10*time.Second - 1)
	p.Acquire("r1", "s")
	p.Pass(1)
	p.Refuse(p.Request("r2", "s"), router.ErrNoLeader)
	p.Renew(g, router.Started)
	p.Table.LeadUntil(p.Now().Add(time.Second), p.Now())
	p.Acquire("r2", "s")
	p.Table.LeadUntil(p.Now(), p.Now())
	p.Refuse(p.Request("r3", "s"), router.ErrNoLeader)
	p.Table.LeadUntil(time.Time{}, p.Now())
	p.Acquire("r3", "s")

	fresh := router.NewTable("pool", nil, p.Now())
	if err := fresh.Apply(p.Fleet, p.Now()); err != nil {
		t.Fatal(err)
	}
	if _, err := fresh.Acquire(p.Request("r4", "s"), p.Now()); !errors.Is(err, router.ErrNoLeader) {
		t.Errorf("without a term: %v", err)
	}
}

func TestATakeOverAdoptsWhatClientsPresent(t *testing.T) {
	for name, present := range map[string]func(*routertest.Pool, router.Grant){
		"by a renewal": func(p *routertest.Pool, g router.Grant) { p.Renew(g, router.Started) },
		"by an acquire with the token": func(p *routertest.Pool, g router.Grant) {
			r := p.Request("r", "s")
			r.Prior = &g.Claim
			if again := p.Grant(r); again.Claim != g.Claim || !again.Again {
				t.Errorf("adopted as %+v, want %+v", again, g)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := routertest.New(t, routertest.Backends("a", "b"))
			g := p.Acquire("r", "s")
			p.TakeOver(30 * time.Second)
			present(p, g)
			if b := p.Backend(g.Claim.Incarnation); b.Outstanding != 1 {
				t.Errorf("counted where it runs: %d", b.Outstanding)
			}
			if n := p.Sender("train").Counted; n != 1 {
				t.Errorf("counted for its sender: %d", n)
			}
			if v, err := p.Table.Session("s"); err != nil || v.Incarnation != g.Claim.Incarnation || v.Choice.Why != "Adopted" {
				t.Errorf("its session lives on %q (%v), %v", v.Incarnation, v.Choice.Why, err)
			}
			p.Release(g, router.Succeeded)
			p.Release(g, router.Succeeded)
			if b := p.Backend(g.Claim.Incarnation); b.Outstanding != 0 {
				t.Errorf("after its release %d are counted", b.Outstanding)
			}
		})
	}
}

func TestAReleaseAfterATakeOverIsRecorded(t *testing.T) {
	p := routertest.New(t, routertest.Backends("a", "b"))
	g := p.Acquire("r", "s")
	p.TakeOver(30 * time.Second)
	p.Release(g, router.Succeeded)
	if r := p.Refuse(p.Request("r", "s"), router.ErrLeaseEnded); r.Outcome != router.Succeeded {
		t.Errorf("its id answers %+v", r)
	}
}

func TestATokenThatContradictsTheKnownLeaseIsAnOrphanWhereItRan(t *testing.T) {
	p := routertest.New(t, routertest.Backends("a", "b"))
	old := p.Acquire("r", "s")
	p.TakeOver(30 * time.Second)
	known := p.Acquire("r", "s") // by a caller that has lost its token
	p.RefuseRenewal(old, router.ErrExecutionLost)
	total := p.Backend("a/1").Outstanding + p.Backend("b/1").Outstanding
	if total != 2 || p.Backend(old.Claim.Incarnation).Held != 1 {
		t.Errorf("%d counted in all, %d held where the old one ran", total, p.Backend(old.Claim.Incarnation).Held)
	}
	p.Renew(known, router.Started)

	r := p.Request("r", "s")
	r.Prior = &old.Claim
	p.Refuse(r, router.ErrExecutionLost) // it is not given the other's lease
	if again := p.Acquire("r", "s"); again.Claim != known.Claim {
		t.Errorf("the known lease became %+v", again)
	}
}

func TestAnOrphanReleasedAsAmbiguousIsToldItsFate(t *testing.T) {
	p := routertest.New(t, routertest.Backends("a", "b"))
	old := p.Acquire("r", "s")
	p.TakeOver(30 * time.Second)
	p.Release(p.Acquire("r", "s"), router.Succeeded)
	if e := p.Release(old, router.Ambiguous); e.Settled {
		t.Fatalf("answered before anything is known: %+v", e)
	}
	p.Settle(time.Minute)
	e, err := p.Table.AwaitFate(context.Background(), old.Claim)
	if err != nil || e.Fate != router.FateDead {
		t.Errorf("told %+v, %v", e, err)
	}
	orphans := p.Snapshot().Totals.Orphaned
	if e := p.Release(old, router.Ambiguous); e.Fate != router.FateDead {
		t.Errorf("released again: %+v", e)
	}
	if n := p.Snapshot().Totals.Orphaned; n != orphans {
		t.Errorf("a repeated release was counted as %d more orphans", n-orphans)
	}
}

func TestUnknownLoadIsALatchThatOnlyProofClears(t *testing.T) {
	for name, c := range map[string]struct {
		clear func(*routertest.Pool)
		want  bool
	}{
		"time alone": {func(p *routertest.Pool) { p.Pass(time.Hour) }, true},
		"an empty engine total": {func(p *routertest.Pool) {
			p.See(router.Observation{Incarnation: "a/1", Health: router.Healthy, EngineTotal: 0})
		}, true},
		"its absence from the fleet": {func(p *routertest.Pool) {
			p.Change(func(f *router.Fleet) { f.Members = nil })
		}, true},
		"a refused connection": {func(p *routertest.Pool) { p.Table.ConnectionRefused("a/1", p.Now()) }, true},
		"its process ended":    {func(p *routertest.Pool) { p.Table.Gone([]router.Incarnation{"a/1"}, p.Now()) }, false},
		"quiescence when a fence waits for it": {func(p *routertest.Pool) {
			p.SetSender("train", fence)
			p.Settle(time.Minute)
		}, false},
		"a pause by abort after every start window": {func(p *routertest.Pool) {
			p.Pass(31 * time.Second)
			p.Table.PauseAborted("a/1", p.Now(), p.Now())
		}, false},
		"a pause by abort before the last start window closed": {func(p *routertest.Pool) {
			begun := p.Now().Add(30 * time.Second)
			p.Pass(31 * time.Second)
			p.Table.PauseAborted("a/1", begun, p.Now())
		}, true},
	} {
		t.Run(name, func(t *testing.T) {
			p := routertest.New(t, routertest.Backends("a"))
			p.TakeOver(30 * time.Second)
			c.clear(p)
			if got := p.Backend("a/1").UnknownLoad; got != c.want {
				t.Errorf("unknown load: %v, want %v", got, c.want)
			}
		})
	}
}

func TestStartWindowsOfEarlierTermsAreWaitedFor(t *testing.T) {
	for name, leadFirst := range map[string]bool{"a term before the first fleet": true, "a fleet before the term": false} {
		t.Run(name, func(t *testing.T) {
			p := routertest.New(t, routertest.Backends("a"))
			p.TakeOver(50 * time.Second)
			if !leadFirst {
				p.Table = router.NewTable("pool", nil, p.Now())
				p.Change(func(*router.Fleet) {})
				p.Table.Lead(3, router.Takeover{Windows: 50 * time.Second}, p.Now())
				p.HealAll()
			}
			p.SetMember("a", func(m *router.Member) { m.Drain = router.DrainMove })
			p.Settle(49 * time.Second)
			if p.Backend("a/1").Drained {
				t.Fatal("called drained while a client of the earlier term may still write")
			}
			p.Settle(5 * time.Second)
			if !p.Backend("a/1").Drained {
				t.Error("not drained after the windows closed")
			}
		})
	}
}

func TestATokenOfAnIncarnationThatLeftKeepsItsStartWindows(t *testing.T) {
	p := routertest.New(t, routertest.Backends("a", "b"))
	r := p.Request("r", "s")
	r.LastName, r.LastIncarnation = "a", "a/1"
	g := p.Grant(r)
	left := p.Fleet.Members
	p.Fleet.Members = p.Fleet.Members[1:]
	p.TakeOver(50 * time.Second)
	p.Release(g, router.Succeeded)
	p.Change(func(f *router.Fleet) { f.Members = left })
	p.SetMember("a", func(m *router.Member) { m.Drain = router.DrainMove })
	p.Settle(40 * time.Second)
	if p.Backend("a/1").Drained {
		t.Error("other clients of the earlier term may still write, and it is called drained")
	}
}

func TestATokenOfAnEndedProcessIsDeadAtOnce(t *testing.T) {
	p := routertest.New(t, routertest.Backends("a", "b"))
	g := p.Acquire("r", "s")
	p.TakeOver(30 * time.Second)
	p.Table.Gone([]router.Incarnation{g.Claim.Incarnation}, p.Now())
	if r := p.RefuseRenewal(g, router.ErrExecutionLost); r.Fate != router.FateDead {
		t.Errorf("its process has ended and it is %q", r.Fate)
	}
}

func TestTokensOfOtherPoolsEpochsAndTermsAreRefused(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*router.Claim)
		want   error
	}{
		"another pool of this name":  {func(c *router.Claim) { c.Pool = "other" }, router.ErrPoolNotFound},
		"a later term":               {func(c *router.Claim) { c.Term = 9 }, router.ErrNoLeader},
		"this term, never granted":   {func(c *router.Claim) { c.RID, c.Request, c.Term = "x", "x", 2 }, router.ErrLeaseUnknown},
		"an earlier term and epoch":  {func(c *router.Claim) { c.Epoch = 0 }, router.ErrStaleEpoch},
		"a later epoch than we know": {func(c *router.Claim) { c.Epoch = 7 }, router.ErrNoLeader},
	} {
		t.Run(name, func(t *testing.T) {
			p := routertest.New(t, routertest.Backends("a"))
			g := p.Acquire("r", "s")
			p.TakeOver(30 * time.Second)
			c.change(&g.Claim)
			p.RefuseRenewal(g, c.want)
			p.RefuseRelease(g, router.Succeeded, c.want)
			if n := p.Backend("a/1").Outstanding; n != 0 {
				t.Errorf("%d executions were counted by a refused token", n)
			}
		})
	}
}

func TestWhatATokenMadeKnownCountsForASenderDeclaredLater(t *testing.T) {
	p := routertest.New(t, routertest.Backends("a"), routertest.Senders("train", "eval"))
	r := p.Request("r", "s")
	r.Sender = "eval"
	g := p.Grant(r)
	p.Fleet.Senders = p.Fleet.Senders[:1]
	p.TakeOver(30 * time.Second)
	p.Renew(g, router.Started)
	p.Change(func(f *router.Fleet) {
		f.Senders = append(f.Senders, router.Sender{Name: "eval", Access: router.AccessFenced})
	})
	if s := p.Sender("eval"); s.Counted != 1 || s.Fenced {
		t.Errorf("its execution runs and the sender shows %+v", s)
	}
	p.Release(g, router.Succeeded)
	if s := p.Sender("eval"); s.Counted != 0 {
		t.Errorf("after its release the sender shows %+v", s)
	}
}

func TestALapsedRouterTakesOnlyOutcomesThatProveThemselves(t *testing.T) {
	for outcome, taken := range map[router.Outcome]bool{
		router.Succeeded: true, router.Aborted: true, router.NotSent: true, router.Rejected: true,
		router.Cancelled: false, router.Ambiguous: false,
	} {
		t.Run(string(outcome), func(t *testing.T) {
			p := routertest.New(t, routertest.Backends("a"))
			g := p.Acquire("r", "s")
			p.Table.LeadUntil(p.Now(), p.Now())
			if taken {
				p.Release(g, outcome)
				return
			}
			p.RefuseRelease(g, outcome, router.ErrNoLeader)
			p.Table.LeadUntil(time.Time{}, p.Now())
			p.Release(g, outcome)
			p.Settle(10 * time.Second)
			p.Table.LeadUntil(p.Now(), p.Now())
			p.RefuseRelease(g, outcome, router.ErrNoLeader) // not even what it takes for dead
		})
	}
}

func TestAFailureInStatusIsReadBeforeTheFirstGrant(t *testing.T) {
	p := routertest.New(t, routertest.Backends("a"))
	tab := router.NewTable("pool", nil, p.Now())
	tab.Lead(2, router.Takeover{Windows: time.Second, Failure: &router.Failure{Request: "r", Incarnation: "a/1"}}, p.Now())
	if err := tab.Apply(p.Fleet, p.Now()); err != nil {
		t.Fatal(err)
	}
	tab.Observe(router.Observation{Incarnation: "a/1", Seq: 1, Health: router.Healthy}, p.Now())
	if _, err := tab.Acquire(p.Request("x", "s"), p.Now()); !errors.Is(err, router.ErrPoolFailed) {
		t.Errorf("a failed pool answers %v", err)
	}
	if f := tab.Snapshot(p.Now()).Failure; f == nil || f.Request != "r" || !f.Recorded {
		t.Errorf("the failure is shown as %+v", f)
	}
}

package router_test

import (
	"context"
	"testing"
	"time"

	"github.com/berthmaster/berthmaster/internal/router"
	"github.com/berthmaster/berthmaster/internal/router/routertest"
)

// R4, R5, R13 and design 5.2, 5.3: at most once, the ledger, what is uncertain.

func TestAnAmbiguousExecutionIsDeadOnceItsEngineIsProvenQuiet(t *testing.T) {
	p := routertest.New(t, routertest.Backends("a", "b"))
	g := p.Acquire("r", "s")
	if e := p.Release(g, router.Ambiguous); e.Settled || e.Fate != router.FatePending {
		t.Fatalf("answered before anything is known: %+v", e)
	}
	if b := p.Backend(g.Claim.Incarnation); !b.Settling || b.Admissible || b.Held != 1 {
		t.Errorf("its incarnation does not settle: %+v", b)
	}
	if moved := p.Acquire("next", "s"); moved.Claim.Incarnation == g.Claim.Incarnation {
		t.Error("the session stays on an incarnation that settles")
	}
	p.Settle(10 * time.Second)
	if e := p.Release(g, router.Ambiguous); !e.Settled || e.Fate != router.FateDead {
		t.Errorf("after the engine was proven quiet: %+v", e)
	}
	if s := p.Snapshot(); s.Failure != nil {
		t.Errorf("the pool failed: %+v", s.Failure)
	}
	if r := p.Refuse(p.Request("r", "s"), router.ErrLeaseEnded); r.Fate != router.FateDead || r.Outcome != router.Ambiguous {
		t.Errorf("its id answers %+v", r)
	}
}

func TestWhatCannotBeMadeCertainFailsThePoolOrIsolatesTheBackend(t *testing.T) {
	for mode, fate := range map[router.Ambiguity]router.Fate{router.FailPool: router.FateFailed, router.IsolateBackend: router.FateIsolated} {
		for name, certainty := range map[string]time.Duration{"after its time": time.Minute, "at once when strict": 0} {
			t.Run(string(mode)+" "+name, func(t *testing.T) {
				p := routertest.New(t, routertest.Backends("a", "b"), routertest.With(func(c *router.Config) {
					c.OnAmbiguous, c.Certainty = mode, certainty
				}))
				g := p.Acquire("r", "s")
				p.Release(g, router.Ambiguous)
				if certainty > 0 {
					busyFor(p, certainty-time.Second)
					if e := p.Release(g, router.Ambiguous); e.Fate != router.FatePending {
						t.Fatalf("decided too early: %+v", e)
					}
					busyFor(p, time.Second)
				}
				e := p.Release(g, router.Ambiguous)
				if e.Fate != fate || e.Settled {
					t.Fatalf("the release is answered %+v before the fact is in status", e)
				}
				contained(t, p, g, mode)
			})
		}
	}
}

// busyFor lets time go by while every engine shows one execution.
func busyFor(p *routertest.Pool, d time.Duration) {
	for end := p.Now().Add(d); p.Now().Before(end); {
		p.Chores(1)
		p.Pass(500 * time.Millisecond)
	}
}

// contained demands what follows for the pool from an execution that stays uncertain.
func contained(t *testing.T, p *routertest.Pool, g router.Grant, mode router.Ambiguity) {
	t.Helper()
	if mode == router.IsolateBackend {
		if moved := p.Acquire("next", "s"); moved.Claim.Incarnation == g.Claim.Incarnation {
			t.Error("an isolated incarnation takes leases")
		}
		p.Table.IsolationRecorded(g.Claim.Incarnation, p.Now())
		if e := p.Release(g, router.Ambiguous); !e.Settled {
			t.Errorf("the isolation is in status and the caller still waits: %+v", e)
		}
		p.Settle(10 * time.Second)
		if b := p.Backend(g.Claim.Incarnation); b.Isolated || !b.Admissible {
			t.Errorf("the execution is gone and its backend stays isolated: %+v", b)
		}
		return
	}
	p.Refuse(p.Request("next", "other"), router.ErrPoolFailed)
	p.Table.FailureRecorded("r", p.Now())
	if e := p.Release(g, router.Ambiguous); !e.Settled {
		t.Errorf("the failure is in status and the caller still waits: %+v", e)
	}
	f := p.Snapshot().Failure
	if f == nil || f.Request != "r" || f.Session != "s" || f.Incarnation != g.Claim.Incarnation || !f.Recorded {
		t.Errorf("the failure names %+v", f)
	}
	p.Change(func(f *router.Fleet) { f.Epoch++ })
	p.Acquire("next", "other")
}

func TestALostLeaseNeverFailsThePool(t *testing.T) {
	for name, late := range map[string]router.Outcome{
		"its client is never heard of": "", "its client says Ambiguous too late": router.Ambiguous, "its client says Cancelled too late": router.Cancelled,
	} {
		t.Run(name, func(t *testing.T) {
			p := routertest.New(t, routertest.Backends("a", "b"))
			g := p.Acquire("r", "s")
			p.Pass(p.Fleet.Config.TTL)
			if r := p.Refuse(p.Request("r", "s"), router.ErrExecutionLost); r.Fate != router.FatePending {
				t.Errorf("a later acquire is told %+v", r)
			}
			if late != "" {
				p.Release(g, late)
			}
			busyFor(p, 3*time.Minute)
			if s := p.Snapshot(); s.Failure != nil || s.Totals.Lost != 1 {
				t.Errorf("failure %+v, %d lost", s.Failure, s.Totals.Lost)
			}
			if n := p.Backend(g.Claim.Incarnation).Outstanding; n != 1 {
				t.Errorf("it still runs and %d are counted", n)
			}
		})
	}
}

func TestALateTerminalOutcomeEndsALostLease(t *testing.T) {
	p := routertest.New(t, routertest.Backends("a"))
	g := p.Acquire("r", "s")
	p.Pass(p.Fleet.Config.TTL)
	if e := p.Release(g, router.Succeeded); e.Outcome != router.Succeeded || e.Fate != router.FateNone {
		t.Errorf("answered %+v", e)
	}
	if b := p.Backend("a/1"); b.Outstanding != 0 || b.Held != 0 {
		t.Errorf("%d stay counted, %d held", b.Outstanding, b.Held)
	}
}

func TestALeaseLivesExactlyAsLongAsItIsRenewed(t *testing.T) {
	p := routertest.New(t, routertest.Backends("a"))
	g := p.Acquire("r", "s")
	for range 5 {
		p.Pass(p.Fleet.Config.TTL - 1)
		p.Renew(g, router.Started)
	}
	p.Pass(p.Fleet.Config.TTL)
	p.RefuseRenewal(g, router.ErrExecutionLost)
}

func TestCancelledIsCountedUntilGoneAndFailsNothing(t *testing.T) {
	p := routertest.New(t, routertest.Backends("a", "b"))
	g := p.Acquire("r", "s")
	if e := p.Release(g, router.Cancelled); !e.Settled || e.Fate != router.FatePending {
		t.Errorf("answered %+v", e)
	}
	busyFor(p, 2*time.Minute)
	if b := p.Backend(g.Claim.Incarnation); b.Outstanding != 1 || p.Snapshot().Failure != nil {
		t.Errorf("%+v, failure %+v", b, p.Snapshot().Failure)
	}
	if r := p.Refuse(p.Request("r", "s"), router.ErrLeaseEnded); r.Fate != router.FatePending {
		t.Errorf("it may still run and is called %q", r.Fate)
	}
}

func TestTheAbortIsRepeatedUntilTheEngineAnswers(t *testing.T) {
	p := routertest.New(t, routertest.Backends("a"))
	g := p.Acquire("r", "s")
	p.Release(g, router.Cancelled)
	for range 3 {
		list := p.Table.Chores(p.Now())
		if len(list) != 1 || len(list[0].Abort) != 1 || list[0].Abort[0] != g.Claim.RID || list[0].URL != "http://a" {
			t.Fatalf("chores: %+v, want the abort of %s", list, g.Claim.RID)
		}
		p.Pass(time.Second)
	}
	p.Table.AbortAnswered("a/1", []router.RID{g.Claim.RID}, p.Now())
	for _, c := range p.Table.Chores(p.Now()) {
		if len(c.Abort) > 0 {
			t.Errorf("an answered abort is asked for again at once: %+v", c)
		}
	}
}

func TestTheClockOfCertaintyStandsStillWhileTheEnginePauses(t *testing.T) {
	for name, stop := range map[string]struct{ off, on func(*routertest.Pool) }{
		"paused by us": {
			func(p *routertest.Pool) { p.SetMember("a", func(m *router.Member) { m.Engine = router.EnginePaused }) },
			func(p *routertest.Pool) { p.SetMember("a", func(m *router.Member) { m.Engine = router.EngineRunning }) },
		},
		"being updated": {
			func(p *routertest.Pool) {
				p.SetMember("a", func(m *router.Member) { m.Engine = router.EngineUpdating })
			},
			func(p *routertest.Pool) { p.SetMember("a", func(m *router.Member) { m.Engine = router.EngineRunning }) },
		},
		"paused by someone else": {
			func(p *routertest.Pool) { p.Observe("a/1", router.SuspectedPaused) },
			func(p *routertest.Pool) { p.Observe("a/1", router.Healthy) },
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := routertest.New(t, routertest.Backends("a"))
			g := p.Acquire("r", "s")
			p.Release(g, router.Ambiguous)
			busyFor(p, 30*time.Second)
			stop.off(p)
			p.Settle(10 * time.Minute)
			if s := p.Snapshot(); s.Failure != nil || p.Backend("a/1").Held != 1 {
				t.Fatalf("decided while the engine did not run: %+v", s)
			}
			stop.on(p)
			busyFor(p, 29*time.Second)
			if s := p.Snapshot(); s.Failure != nil {
				t.Fatal("failed before its minute of running time was over")
			}
			busyFor(p, 2*time.Second)
			if s := p.Snapshot(); s.Failure == nil {
				t.Error("its time is over and nothing was decided")
			}
		})
	}
}

func TestLostOnAPausedEngineIsUnresolvedUntilItRuns(t *testing.T) {
	p := routertest.New(t, routertest.Backends("a"))
	p.Acquire("r", "s")
	p.SetMember("a", func(m *router.Member) { m.Engine = router.EnginePaused })
	p.Pass(p.Fleet.Config.TTL)
	if r := p.Refuse(p.Request("r", "s"), router.ErrExecutionLost); r.Fate != router.FateUnresolved {
		t.Errorf("while paused it is %q", r.Fate)
	}
	p.SetMember("a", func(m *router.Member) { m.Engine = router.EngineRunning })
	if r := p.Refuse(p.Request("r", "s"), router.ErrExecutionLost); r.Fate != router.FatePending {
		t.Errorf("running again it is %q", r.Fate)
	}
}

func TestAwaitFateEndsWhenTheFateIsKnown(t *testing.T) {
	p := routertest.New(t, routertest.Backends("a", "b"))
	g := p.Acquire("r", "s")
	p.Release(g, router.Ambiguous)
	answer := make(chan router.Ending, 1)
	go func() {
		e, err := p.Table.AwaitFate(context.Background(), g.Claim)
		if err != nil {
			t.Error(err)
		}
		answer <- e
	}()
	p.Table.Gone([]router.Incarnation{g.Claim.Incarnation}, p.Now())
	select {
	case e := <-answer:
		if e.Fate != router.FateDead {
			t.Errorf("told %+v", e)
		}
	case <-time.After(time.Minute):
		t.Fatal("nobody was told")
	}
}

func TestAwaitFateSaysHowThingsStandWhenItsCallerLeaves(t *testing.T) {
	p := routertest.New(t, routertest.Backends("a"))
	g := p.Acquire("r", "s")
	p.Release(g, router.Ambiguous)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if e, err := p.Table.AwaitFate(ctx, g.Claim); err != nil || e.Settled || e.Fate != router.FatePending {
		t.Errorf("told %+v, %v", e, err)
	}
}

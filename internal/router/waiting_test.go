package router_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/berthmaster/berthmaster/internal/router"
	"github.com/berthmaster/berthmaster/internal/router/routertest"
)

// Waiting, in virtual time: a waiter is woken by the event, in its turn, or for good.

// waiters are clients that wait for leases of one pool.
type waiters struct {
	p *routertest.Pool

	mu     sync.Mutex
	served []router.RequestID         // guarded by mu
	errs   map[router.RequestID]error // guarded by mu; read after synctest.Wait only
}

func newWaiters(p *routertest.Pool) *waiters {
	return &waiters{p: p, errs: map[router.RequestID]error{}}
}

// wait begins to wait for a lease, and returns how to hang up. It is to be called in a synctest
// bubble.
func (w *waiters) wait(r router.Request) context.CancelFunc {
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		_, err := w.p.Table.AcquireWait(ctx, r, w.p.Now)
		w.mu.Lock()
		defer w.mu.Unlock()
		if err != nil {
			w.errs[r.ID] = err
		} else {
			w.served = append(w.served, r.ID)
		}
	}()
	synctest.Wait()
	return cancel
}

// expect demands who has been served so far, in order.
func (w *waiters) expect(t *testing.T, want ...router.RequestID) {
	t.Helper()
	synctest.Wait()
	if !slices.Equal(w.served, want) {
		t.Fatalf("served so far: %v, want %v (errors: %v)", w.served, want, w.errs)
	}
}

func TestAWaiterIsWokenByTheEventThatHelps(t *testing.T) {
	for name, c := range map[string]struct{ stop, event func(*routertest.Pool) }{
		"leasing opens": {
			func(p *routertest.Pool) { p.Change(func(f *router.Fleet) { f.Leasing = router.LeasingHeld }) },
			func(p *routertest.Pool) { p.Change(func(f *router.Fleet) { f.Leasing = router.LeasingOpen }) },
		},
		"the fence is lifted": {
			func(p *routertest.Pool) { p.SetSender("train", fence) },
			func(p *routertest.Pool) {
				p.SetSender("train", func(s *router.Sender) { s.Access = router.AccessOpen })
			},
		},
		"a backend gets well": {
			func(p *routertest.Pool) { p.Observe("a/1", router.Unhealthy) },
			func(p *routertest.Pool) { p.Observe("a/1", router.Healthy) },
		},
		"leadership is renewed": {
			func(p *routertest.Pool) { p.Table.LeadUntil(p.Now(), p.Now()) },
			func(p *routertest.Pool) { p.Table.LeadUntil(p.Now().Add(time.Minute), p.Now()) },
		},
		"a record is forgotten at the cap": {
			func(p *routertest.Pool) {
				p.Release(p.Acquire("old", "old"), router.Succeeded)
				p.Change(func(f *router.Fleet) { f.Config.MaxRequests = 1 })
			},
			func(p *routertest.Pool) { p.Pass(p.Fleet.Config.Retention) },
		},
		"its version is confirmed": {
			func(p *routertest.Pool) { p.Change(func(f *router.Fleet) { f.Published = "v1" }) },
			func(p *routertest.Pool) { p.HealAll() },
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := routertest.New(t, routertest.Backends("a"))
				c.stop(p)
				w := newWaiters(p)
				defer w.wait(p.Request("r", "s"))()
				w.expect(t)
				c.event(p)
				w.expect(t, "r")
			})
		})
	}
}

func TestWaitersAreServedFirstComeFirstServedAtTheAdmissionLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := routertest.New(t, routertest.Backends("a", "b"), routertest.Capacities(2, 2), routertest.With(func(c *router.Config) { c.AdmissionPercent = 100 }))
		var held []router.Grant
		for i := range 4 {
			held = append(held, p.Acquire(router.RequestID(fmt.Sprint("h", i)), router.SessionID(fmt.Sprint("h", i))))
		}
		w := newWaiters(p)
		for _, id := range []router.RequestID{"w1", "w2", "w3"} {
			defer w.wait(p.Request(id, router.SessionID(id)))()
		}
		w.expect(t)
		p.Release(held[3], router.Succeeded) // a slot anywhere is used at once
		w.expect(t, "w1")
		p.Release(held[0], router.Succeeded)
		w.expect(t, "w1", "w2")
		p.Release(held[1], router.Succeeded)
		w.expect(t, "w1", "w2", "w3")
	})
}

func TestNewcomersDoNotOvertakeAWaiterThatNeedsMore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := routertest.New(t, routertest.Backends("a"), routertest.Capacities(4), routertest.With(func(c *router.Config) { c.AdmissionPercent = 100 }))
		one, two := p.Acquire("h1", "h1"), p.Acquire("h2", "h2")
		w := newWaiters(p)
		big := p.Request("big", "big")
		big.Executions = 4
		defer w.wait(big)()
		p.Refuse(p.Request("small", "small"), router.ErrContended)
		p.Release(one, router.Succeeded)
		p.Refuse(p.Request("small", "small"), router.ErrContended)
		p.Release(two, router.Succeeded)
		w.expect(t, "big")
	})
}

func TestHangingUpLetsThoseBehindThrough(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := routertest.New(t, routertest.Backends("a"), routertest.Capacities(4), routertest.With(func(c *router.Config) { c.AdmissionPercent = 100 }))
		p.Acquire("h", "h")
		w := newWaiters(p)
		big := p.Request("big", "big")
		big.Executions = 4
		hangUp := w.wait(big)
		defer w.wait(p.Request("small", "small"))()
		w.expect(t)
		hangUp()
		w.expect(t, "small")
		if !errors.Is(w.errs["big"], router.ErrContended) {
			t.Errorf("the one that hung up was told %v", w.errs["big"])
		}
	})
}

func TestAWaiterWhoseHomeIsFullIsPassedOverNotMoved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := routertest.New(t, routertest.Backends("a", "b"), routertest.Capacities(2, 2), routertest.With(func(c *router.Config) { c.AdmissionPercent = 100 }))
		p.Release(p.Acquire("first", "s"), router.Succeeded)
		v, err := p.Table.Session("s")
		if err != nil {
			t.Fatal(err)
		}
		var held []router.Grant
		for i := range 4 {
			held = append(held, p.Acquire(router.RequestID(fmt.Sprint("h", i)), router.SessionID(fmt.Sprint("h", i))))
		}
		w := newWaiters(p)
		defer w.wait(p.Request("home", "s"))()
		defer w.wait(p.Request("any", "new"))()
		release(p, held, func(g router.Grant) bool { return g.Claim.Incarnation != v.Incarnation })
		w.expect(t, "any")
		release(p, held, func(g router.Grant) bool { return g.Claim.Incarnation == v.Incarnation })
		w.expect(t, "any", "home")
		if now, _ := p.Table.Session("s"); now.Incarnation != v.Incarnation {
			t.Errorf("its session moved from %s to %s", v.Incarnation, now.Incarnation)
		}
	})
}

// release ends the first of the leases that fit.
func release(p *routertest.Pool, held []router.Grant, fits func(router.Grant) bool) {
	for _, g := range held {
		if fits(g) {
			p.Release(g, router.Succeeded)
			return
		}
	}
}

func TestAWaiterWhoseHomeBecomesInadmissibleGoesElsewhereAtOnce(t *testing.T) {
	for name, fall := range map[string]func(*routertest.Pool, router.Incarnation){
		"unhealthy":            func(p *routertest.Pool, inc router.Incarnation) { p.Observe(inc, router.Unhealthy) },
		"a refused connection": func(p *routertest.Pool, inc router.Incarnation) { p.Table.ConnectionRefused(inc, p.Now()) },
		"drained": func(p *routertest.Pool, inc router.Incarnation) {
			p.SetMember(router.BackendName(inc[:1]), func(m *router.Member) { m.Drain = router.DrainMove })
		},
		"its process ended": func(p *routertest.Pool, inc router.Incarnation) { p.Table.Gone([]router.Incarnation{inc}, p.Now()) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := routertest.New(t, routertest.Backends("a", "b"), routertest.Capacities(1, 1), routertest.With(func(c *router.Config) { c.AdmissionPercent = 100 }))
				g := p.Acquire("busy", "s")
				w := newWaiters(p)
				defer w.wait(p.Request("branch", "s"))()
				w.expect(t)
				fall(p, g.Claim.Incarnation)
				w.expect(t, "branch")
			})
		})
	}
}

func TestAWaiterThatPredatesAFenceGetsNothing(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*router.Fleet)
		want   error
	}{
		"the generation was raised": {func(f *router.Fleet) { f.Senders[0].MinGeneration = 1 }, router.ErrStaleGeneration},
		"the epoch was raised":      {func(f *router.Fleet) { f.Epoch = 2 }, router.ErrStaleEpoch},
		"the sender left the spec":  {func(f *router.Fleet) { f.Senders = nil }, router.ErrSenderUnknown},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := routertest.New(t, routertest.Backends("a"))
				p.Change(func(f *router.Fleet) { f.Leasing = router.LeasingHeld })
				w := newWaiters(p)
				for i := range 3 { // also those behind others
					defer w.wait(p.Request(router.RequestID(fmt.Sprint("r", i)), "s"))()
				}
				p.Change(func(f *router.Fleet) {
					c.change(f)
					f.Leasing = router.LeasingOpen
				})
				w.expect(t)
				for i := range 3 {
					if err := w.errs[router.RequestID(fmt.Sprint("r", i))]; !errors.Is(err, c.want) {
						t.Errorf("waiter %d was told %v, want %v", i, err, c.want)
					}
				}
			})
		})
	}
}

func TestAWaiterBehindOthersIsRefusedForGoodAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := routertest.New(t, routertest.Backends("a"))
		p.Change(func(f *router.Fleet) { f.Leasing = router.LeasingHeld })
		w := newWaiters(p)
		ahead := p.Request("ahead", "s")
		ahead.SenderGeneration = 1
		defer w.wait(ahead)()
		defer w.wait(p.Request("behind", "s"))()
		p.SetSender("train", func(s *router.Sender) { s.MinGeneration = 1 })
		w.expect(t)
		if !errors.Is(w.errs["behind"], router.ErrStaleGeneration) || w.errs["ahead"] != nil {
			t.Errorf("told %v; the one ahead %v", w.errs["behind"], w.errs["ahead"])
		}
	})
}

func TestAFenceBeforeTheSlotIsFreedIsSeenInTheGrantingStep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := routertest.New(t, routertest.Backends("a"), routertest.Capacities(1), routertest.With(func(c *router.Config) { c.AdmissionPercent = 100 }))
		g := p.Acquire("h", "h")
		w := newWaiters(p)
		defer w.wait(p.Request("r", "s"))()
		p.SetSender("train", fence)
		p.Release(g, router.Succeeded)
		w.expect(t)
		p.SetSender("train", func(s *router.Sender) { s.Access = router.AccessOpen })
		w.expect(t, "r")
	})
}

func TestAFailureRefusesEveryWaiterForGood(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := routertest.New(t, routertest.Backends("a"), routertest.With(func(c *router.Config) { c.Certainty = 0 }))
		g := p.Acquire("h", "h")
		p.Change(func(f *router.Fleet) { f.Leasing = router.LeasingHeld })
		w := newWaiters(p)
		defer w.wait(p.Request("r", "s"))()
		p.Release(g, router.Ambiguous)
		w.expect(t)
		if !errors.Is(w.errs["r"], router.ErrPoolFailed) {
			t.Errorf("told %v", w.errs["r"])
		}
	})
}

func TestAClientThatGoesAwayLeavesNoTrace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := routertest.New(t, routertest.Backends("a"))
		p.Change(func(f *router.Fleet) { f.Leasing = router.LeasingHeld })
		w := newWaiters(p)
		hangUp := w.wait(p.Request("r", "s"))
		if n := p.Snapshot().Waiting; n != 1 {
			t.Fatalf("%d wait, want 1", n)
		}
		hangUp()
		w.expect(t)
		p.Change(func(f *router.Fleet) { f.Leasing = router.LeasingOpen })
		if s := p.Snapshot(); s.Waiting+s.Requests+s.Sessions != 0 || s.Totals.Grants != 0 {
			t.Errorf("%d wait, %d records, %d sessions, %d grants", s.Waiting, s.Requests, s.Sessions, s.Totals.Grants)
		}
		p.Acquire("r", "s")
	})
}

func TestConcurrentAcquiresOfOneIDShareOneGrant(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := routertest.New(t, routertest.Backends("a", "b"))
		p.Change(func(f *router.Fleet) { f.Leasing = router.LeasingHeld })
		w := newWaiters(p)
		for range 5 {
			defer w.wait(p.Request("r", "s"))()
		}
		p.Change(func(f *router.Fleet) { f.Leasing = router.LeasingOpen })
		w.expect(t, "r", "r", "r", "r", "r")
		if s := p.Snapshot(); s.Totals.Grants != 1 || p.Backend("a/1").Outstanding+p.Backend("b/1").Outstanding != 1 {
			t.Errorf("%d grants", s.Totals.Grants)
		}
	})
}

func TestWhoeverWaitsUnderAnIDIsToldWhenItIsSpent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := routertest.New(t, routertest.Backends("a"))
		p.Change(func(f *router.Fleet) { f.Leasing = router.LeasingHeld })
		w := newWaiters(p)
		defer w.wait(p.Request("before", "s"))()
		defer w.wait(p.Request("r", "s"))()
		if _, err := p.Table.Forgo(p.Request("r", "s"), p.Now()); err != nil {
			t.Fatal(err)
		}
		w.expect(t)
		if !errors.Is(w.errs["r"], router.ErrLeaseEnded) {
			t.Errorf("told %v", w.errs["r"])
		}
	})
}

func TestAClientThatHangsUpAsItIsServedLeavesNoTrace(t *testing.T) {
	for range 50 { // which of the two is seen first is drawn by chance
		synctest.Test(t, func(t *testing.T) {
			p := routertest.New(t, routertest.Backends("a"))
			p.Change(func(f *router.Fleet) { f.Leasing = router.LeasingHeld })
			w := newWaiters(p)
			hangUp := w.wait(p.Request("r1", "s1"))
			hangUp()
			p.Change(func(f *router.Fleet) { f.Leasing = router.LeasingOpen })
			synctest.Wait()
			if s := p.Snapshot(); len(w.served) > 0 || s.Requests > 0 || s.Backends[0].Outstanding > 0 {
				t.Fatalf("served %v; %d records, %d outstanding", w.served, s.Requests, s.Backends[0].Outstanding)
			}
		})
	}
}

func TestWhoeverWaitsForALookAtItsHomeDelaysNobodyElse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := routertest.New(t, routertest.Backends("a", "b"))
		p.TakeOverBlind(30 * time.Second)
		w := newWaiters(p)
		r := p.Request("home", "t")
		r.LastIncarnation, r.LastName = "a/1", "a"
		w.wait(r)
		w.wait(p.Request("anywhere", "s"))
		w.expect(t)
		p.Observe("b/1", router.Healthy)
		w.expect(t, "anywhere")
		p.Observe("a/1", router.Healthy)
		w.expect(t, "anywhere", "home")
		if n := p.Backend("a/1").Sessions; n != 1 {
			t.Errorf("%d sessions are at home on a, want 1", n)
		}
	})
}

func TestAFirstLookThatTellsNothingEndsTheWaitForIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := routertest.New(t, routertest.Backends("a", "b"))
		p.TakeOverBlind(30 * time.Second)
		p.Observe("b/1", router.Healthy)
		w := newWaiters(p)
		r := p.Request("home", "s")
		r.LastIncarnation, r.LastName = "a/1", "a"
		w.wait(r)
		w.expect(t)
		p.Observe("a/1", router.HealthUnknown)
		w.expect(t, "home")
	})
}

func TestWaitersAreDealtOutOverAllThatIsKnownOfANewFleet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := routertest.New(t, routertest.Backends("a", "b", "c"))
		fleet, now := p.Fleet, p.Now()
		p.Table = router.NewTable("pool", nil, now)
		p.Table.Lead(2, router.Takeover{}, now)
		w := newWaiters(p)
		for i := range 6 {
			w.wait(p.Request(router.RequestID(fmt.Sprint("r", i)), router.SessionID(fmt.Sprint("s", i))))
		}
		var known []router.Observation
		for _, m := range fleet.Members {
			known = append(known, router.Observation{Incarnation: m.Incarnation, Seq: 1, Health: router.Healthy, EngineTotal: -1})
		}
		if err := p.Table.Apply(fleet, now, known...); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		for _, m := range fleet.Members {
			if n := p.Backend(m.Incarnation).Outstanding; n != 2 {
				t.Errorf("%s was given %d of the 6 that waited, want 2", m.Name, n)
			}
		}
	})
}

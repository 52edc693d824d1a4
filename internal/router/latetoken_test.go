package router_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/berthmaster/berthmaster/internal/router"
	"github.com/berthmaster/berthmaster/internal/router/routertest"
)

// What a token of an earlier term may still do that comes late (R5, R7, R8, R11): nothing, where all
// that earlier terms left is known to be gone.

// without takes a backend out of the fleet.
func without(p *routertest.Pool, name router.BackendName) {
	p.Change(func(f *router.Fleet) {
		for i := range f.Members {
			if f.Members[i].Name == name {
				f.Members = append(f.Members[:i], f.Members[i+1:]...)
				return
			}
		}
	})
}

// on gets a lease on a backend.
func on(p *routertest.Pool, name router.BackendName, id router.RequestID) router.Grant {
	r := p.Request(id, router.SessionID("session-of-"+id))
	r.LastName, r.LastIncarnation = name, routertest.Incarnation(name, 1)
	return p.Grant(r)
}

func TestTheEndOfAProcessIsRememberedAfterItHasLeftTheFleet(t *testing.T) {
	end := func(p *routertest.Pool) { p.Table.Gone([]router.Incarnation{"a/1"}, p.Now()) }
	for name, takeOver := range map[string]func(*routertest.Pool){
		"it ended while the new leader followed": func(p *routertest.Pool) {
			p.Fleet.Members = p.Fleet.Members[1:]
			p.TakeOver(30 * time.Second)
			end(p)
		},
		"the new leader had met it": func(p *routertest.Pool) {
			p.TakeOver(30 * time.Second)
			end(p)
			without(p, "a")
		},
		"it left the fleet before it ended": func(p *routertest.Pool) {
			p.TakeOver(30 * time.Second)
			without(p, "a")
			end(p)
		},
		"others under its id know nothing of it": func(p *routertest.Pool) {
			p.Fleet.Members = p.Fleet.Members[1:]
			p.TakeOver(30 * time.Second)
			end(p)
			p.Release(p.Acquire("r", "session-of-r"), router.Succeeded)
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := routertest.New(t, routertest.Backends("a", "b"))
			g := on(p, "a", "r")
			takeOver(p)
			if e := p.Release(g, router.Ambiguous); !e.Settled || e.Fate != router.FateDead {
				t.Errorf("its process has ended, and an ambiguous release is answered %+v", e)
			}
			if p.Knows("a/1") {
				t.Errorf("something is counted on it or feared: %+v", p.Backend("a/1"))
			}
			p.Pass(2 * time.Minute)
			if f := p.Snapshot().Failure; f != nil {
				t.Errorf("the pool has failed: %+v", f)
			}
			p.Acquire("later", "s")
		})
	}
}

func TestAFenceClosesWhateverTokensOfEndedProcessesSay(t *testing.T) {
	p := routertest.New(t, routertest.Backends("a", "b"))
	g := on(p, "a", "r")
	p.Fleet.Members = p.Fleet.Members[1:]
	p.TakeOver(30 * time.Second)
	p.Table.Gone([]router.Incarnation{"a/1"}, p.Now())
	p.RefuseRenewal(g, router.ErrExecutionLost)
	p.SetSender("train", fence)
	p.Settle(time.Minute)
	if !p.Sender("train").Fenced {
		t.Error("the fence waits for a process that has ended")
	}
}

// A fleet may have been read before the end of one of its processes was heard of.
func TestAProcessThatHasEndedDoesNotServeFromAFleetThatWasReadBefore(t *testing.T) {
	p := routertest.New(t, routertest.Backends("a", "b"))
	p.Table.Gone([]router.Incarnation{"c/1"}, p.Now())
	p.Change(func(f *router.Fleet) {
		f.Members = append(f.Members, routertest.Member("c", 1))
		f.Members[2].Load = router.LoadUnknown
	})
	p.HealAll()
	if b := p.Backend("c/1"); b.Admissible || b.Reason != "ProcessEnded" || b.UnknownLoad {
		t.Errorf("it is shown as %+v", b)
	}
}

func TestTheEndsThatAreRememberedAreBounded(t *testing.T) {
	p := routertest.New(t, routertest.Backends("a"))
	r := p.Request("r", "s")
	first := p.Grant(r).Claim
	p.TakeOver(30 * time.Second)
	life := func(i int) router.Incarnation { return router.Incarnation(fmt.Sprint("z/", i)) }
	const more = 5000
	for i := range more {
		p.Table.Gone([]router.Incarnation{life(i)}, p.Now())
	}
	last := first
	first.Incarnation, last.Incarnation, last.RID = life(0), life(more-1), "another"
	if r := p.RefuseRenewal(router.Grant{Claim: last}, router.ErrExecutionLost); r.Fate != router.FateDead {
		t.Errorf("the latest end is forgotten: %q", r.Fate)
	}
	first.Request = "first"
	p.Renew(router.Grant{Claim: first}, router.NotStarted)
	if b := p.Backend(life(0)); b.Outstanding != 1 || !b.UnknownLoad {
		t.Errorf("of the oldest end, of which nothing is remembered, more is known than of any: %+v", b)
	}
}

// What was called complete stays so: a client that has slept over the take-over, and over its start
// window, holds the right to write nothing.
func TestWhatIsCompleteIsNotOpenedByATokenOfAnEarlierTerm(t *testing.T) {
	held := func(p *routertest.Pool) bool {
		s := p.Snapshot()
		return s.Leasing == router.LeasingHeld && s.Backends[0].Outstanding == 0 && !s.Backends[0].UnknownLoad
	}
	drain := func(how router.Drain) func(*routertest.Pool) {
		return func(p *routertest.Pool) { p.SetMember("a", func(m *router.Member) { m.Drain = how }) }
	}
	drained := func(p *routertest.Pool) bool { return p.Backend("a/1").Drained }
	abortPause := func(p *routertest.Pool) {
		p.SetSender("train", fence)
		p.Pass(31 * time.Second)
		p.Table.PauseAborted("a/1", p.Now(), p.Now())
	}
	fenced := func(p *routertest.Pool) bool { return p.Sender("train").Fenced }
	for name, c := range map[string]struct {
		begin    func(*routertest.Pool)
		complete func(*routertest.Pool) bool
	}{
		"a fence":                          {func(p *routertest.Pool) { p.SetSender("train", fence) }, fenced},
		"a fence, proven by a pause":       {abortPause, fenced},
		"a hold":                           {func(p *routertest.Pool) { p.Change(func(f *router.Fleet) { f.Leasing = router.LeasingHeld }) }, held},
		"a drain that moves":               {drain(router.DrainMove), drained},
		"a drain that aborts":              {drain(router.DrainAbort), drained},
		"a drain whose sessions may stay":  {drain(router.DrainKeep), drained},
		"a drain whose pinned ones do":     {drain(router.DrainPinned), drained},
		"a fence whose backend left after": {func(p *routertest.Pool) { p.SetSender("train", fence); p.Settle(time.Minute); without(p, "a") }, fenced},
	} {
		for how, present := range lateCalls() {
			t.Run(name+", "+how, func(t *testing.T) {
				p := routertest.New(t, routertest.Backends("a"))
				g := p.Acquire("r", "s")
				p.TakeOver(30 * time.Second)
				c.begin(p)
				p.Settle(time.Minute)
				if !c.complete(p) {
					t.Fatal("not complete with nobody about")
				}
				present(t, p, g)
				if !c.complete(p) {
					t.Error("complete, and then not any more")
				}
				p.Settle(time.Minute)
				if s := p.Snapshot(); !c.complete(p) || s.Failure != nil {
					t.Errorf("complete, and later not any more, or failed: %+v", s.Failure)
				}
			})
		}
	}
}

// lateCalls are the ways in which a client presents a token, with what it must be told.
func lateCalls() map[string]func(*testing.T, *routertest.Pool, router.Grant) {
	release := func(o router.Outcome) func(*testing.T, *routertest.Pool, router.Grant) {
		return func(t *testing.T, p *routertest.Pool, g router.Grant) {
			if e := p.Release(g, o); !e.Settled || e.Outcome != o || e.Fate != router.FateDead {
				t.Errorf("answered %+v", e)
			}
			p.Release(g, o)
		}
	}
	dead := func(t *testing.T, r *router.Refusal) {
		if r.Fate != router.FateDead {
			t.Errorf("its fate is %q", r.Fate)
		}
	}
	return map[string]func(*testing.T, *routertest.Pool, router.Grant){
		"by a renewal": func(t *testing.T, p *routertest.Pool, g router.Grant) {
			dead(t, p.RefuseRenewal(g, router.ErrExecutionLost))
		},
		"by an acquire with the token": func(t *testing.T, p *routertest.Pool, g router.Grant) {
			r := p.Request("r", "s")
			r.Prior = &g.Claim
			dead(t, p.Refuse(r, router.ErrExecutionLost))
		},
		"by a release as Ambiguous": release(router.Ambiguous),
		"by a release as NotSent":   release(router.NotSent),
	}
}

// As long as it is not complete, what is presented is counted, and waited for.
func TestAFenceThatIsNotCompleteWaitsForWhatATokenTells(t *testing.T) {
	p := routertest.New(t, routertest.Backends("a"))
	g := p.Acquire("r", "s")
	p.TakeOver(30 * time.Second)
	p.SetSender("train", fence)
	p.Settle(20 * time.Second)
	p.Renew(g, router.NotStarted)
	p.Settle(time.Minute)
	if p.Sender("train").Fenced {
		t.Fatal("called fenced while a client of the sender may write")
	}
	p.Renew(g, router.Started)
	p.Release(g, router.Succeeded)
	p.Settle(time.Minute)
	if !p.Sender("train").Fenced {
		t.Error("not fenced once it has ended")
	}
}

// That start windows are over proves nothing: what was written before runs on.
func TestATokenOfABackendOfWhichNothingIsProvenIsAdopted(t *testing.T) {
	p := routertest.New(t, routertest.Backends("a"))
	g := p.Acquire("r", "s")
	p.TakeOver(30 * time.Second)
	p.Settle(time.Minute) // nobody waits for proof
	p.Renew(g, router.Started)
	if b := p.Backend("a/1"); b.Outstanding != 1 {
		t.Errorf("it runs, and is shown as %+v", b)
	}
}

func TestAPauseProvesNothingBeforeATermHasBegun(t *testing.T) {
	p := routertest.New(t, routertest.Backends("a"))
	g := p.Acquire("r", "s")
	p.TakeOver(50 * time.Second)
	p.Table = router.NewTable("pool", nil, p.Now())
	p.Change(func(*router.Fleet) {})
	p.Pass(40 * time.Second)
	p.Table.PauseAborted("a/1", p.Now(), p.Now())
	p.Table.Lead(3, router.Takeover{Windows: 50 * time.Second}, p.Now())
	if !p.Backend("a/1").UnknownLoad {
		t.Error("its load is taken for known, and clients of an earlier term may still write")
	}
	p.Renew(g, router.Started)
}

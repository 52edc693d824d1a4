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
	first, last := p.Grant(r).Claim, router.Claim{}
	p.TakeOver(30 * time.Second)
	life := func(i int) router.Incarnation { return router.Incarnation(fmt.Sprint("z/", i)) }
	const more = 5000
	for i := range more {
		p.Table.Gone([]router.Incarnation{life(i)}, p.Now())
	}
	last = first
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

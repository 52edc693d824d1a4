package router_test

import (
	"testing"
	"time"

	"github.com/berthmaster/berthmaster/internal/router"
	"github.com/berthmaster/berthmaster/internal/router/routertest"
)

// left is a pool whose backend a has left the fleet with something counted, and the fleet as it was.
func left(t *testing.T) (*routertest.Pool, []router.Member) {
	t.Helper()
	p := routertest.New(t, routertest.Backends("a", "b"))
	p.Change(func(f *router.Fleet) { f.Published = "v1" })
	p.HealAll()
	r := p.Request("r", "s")
	r.LastName, r.LastIncarnation = "a", "a/1"
	p.Grant(r)
	before := p.Fleet.Members
	p.Change(func(f *router.Fleet) { f.Members = f.Members[1:] })
	return p, before
}

// Nobody has looked at the engine while it was out of the fleet (R9).
func TestAnIncarnationThatComesBackIsSeenAnewBeforeItServes(t *testing.T) {
	p, before := left(t)
	p.Change(func(f *router.Fleet) { f.Members = before })
	if b := p.Backend("a/1"); b.Admissible || b.Version != "" || b.Outstanding != 1 {
		t.Errorf("it serves on what was known before it left: %+v", b)
	}
	p.Observe("a/1", router.Healthy)
	if b := p.Backend("a/1"); !b.Admissible {
		t.Errorf("seen healthy and confirmed, it does not serve: %s", b.Reason)
	}
}

// The pool that had it in between may have left executions there (R11).
func TestAnIncarnationThatComesBackFromAnotherPoolHasUnknownLoad(t *testing.T) {
	p, before := left(t)
	p.Change(func(f *router.Fleet) {
		f.Members = append([]router.Member(nil), before...)
		f.Members[0].Load = router.LoadUnknown
	})
	if b := p.Backend("a/1"); !b.UnknownLoad {
		t.Errorf("its load is taken for known: %+v", b)
	}
}

// Its client may still write what the other pool granted a moment ago.
func TestAnEngineOfAnotherPoolIsNotProvenEmptyBeforeAStartWindowHasPassed(t *testing.T) {
	p := routertest.New(t, routertest.Backends("a"))
	p.Change(func(f *router.Fleet) {
		b := routertest.Member("b", 1)
		b.Load, b.Drain = router.LoadUnknown, router.DrainMove
		f.Members = append(f.Members, b)
	})
	p.Observe("b/1", router.Healthy)
	p.Settle(p.Fleet.Config.StartWindow - time.Second)
	if b := p.Backend("b/1"); !b.UnknownLoad {
		t.Error("its load is known while a start window may be open there")
	}
	p.Settle(5 * time.Second)
	if b := p.Backend("b/1"); b.UnknownLoad {
		t.Error("every window has closed, it is empty, and its load stays unknown")
	}
}

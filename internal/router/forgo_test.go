package router_test

import (
	"errors"
	"testing"
	"time"

	"github.com/berthmaster/berthmaster/internal/router"
	"github.com/berthmaster/berthmaster/internal/router/routertest"
)

// 5.3 (a): an outcome ends an execution that may run only under the lease's token. Who holds none may say
// that nothing was sent, and is believed as long as nothing speaks against it.

func TestWithoutATokenNobodyEndsWhatMayRun(t *testing.T) {
	for name, c := range map[string]struct {
		before func(*routertest.Pool, router.Grant)
		held   int64
	}{
		"its request was written": {func(p *routertest.Pool, g router.Grant) { p.Renew(g, router.Started) }, 0},
		"it was lost":             {func(p *routertest.Pool, _ router.Grant) { p.Pass(p.Fleet.Config.TTL) }, 1},
		"it was written and lost": {func(p *routertest.Pool, g router.Grant) {
			p.Renew(g, router.Started)
			p.Pass(p.Fleet.Config.TTL)
		}, 1},
		"its epoch is over": {func(p *routertest.Pool, _ router.Grant) {
			p.Change(func(f *router.Fleet) { f.Epoch++ })
		}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			p := routertest.New(t, routertest.Backends("a"))
			g, r := p.Acquire("r", "s"), p.Request("r", "s")
			c.before(p, g)
			if _, err := p.Table.Forgo(r, p.Now()); !errors.Is(err, router.ErrRequestConflict) {
				t.Errorf("forgoing: %v, want a conflict", err)
			}
			if b := p.Backend("a/1"); b.Outstanding != 1 || b.Held != c.held {
				t.Errorf("it may run, and %d are counted, %d of them held", b.Outstanding, b.Held)
			}
			if p.Release(g, router.Succeeded); p.Backend("a/1").Outstanding != 0 {
				t.Error("its token does not end it any more")
			}
		})
	}
}

func TestWhatIsKnownToBeGoneMayBeForgoneUnlessItWasWritten(t *testing.T) {
	for name, c := range map[string]struct {
		begun router.Start
		want  error
	}{
		"nothing was written": {router.NotStarted, nil},
		"it was written":      {router.Started, router.ErrRequestConflict},
	} {
		t.Run(name, func(t *testing.T) {
			p := routertest.New(t, routertest.Backends("a"))
			p.Renew(p.Acquire("r", "s"), c.begun)
			p.Pass(p.Fleet.Config.TTL)
			p.Settle(time.Minute)
			p.Table.Gone([]router.Incarnation{"a/1"}, p.Now())
			if _, err := p.Table.Forgo(p.Request("r", "s"), p.Now()); !errors.Is(err, c.want) {
				t.Errorf("forgoing: %v, want %v", err, c.want)
			}
		})
	}
}

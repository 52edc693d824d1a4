package router_test

import (
	"testing"
	"time"

	"github.com/berthmaster/berthmaster/internal/router"
	"github.com/berthmaster/berthmaster/internal/router/routertest"
)

// TestAHoldWaitsForWhatNoClientAnswersFor: a hold is complete when nothing is counted or unknown,
// which would never be if nobody asked the engines.
func TestAHoldWaitsForWhatNoClientAnswersFor(t *testing.T) {
	for name, begin := range map[string]func(*routertest.Pool){
		"load of an earlier term": func(p *routertest.Pool) { p.TakeOver(time.Second) },
		"a lost lease": func(p *routertest.Pool) {
			p.Acquire("r", "s")
			p.Pass(3 * time.Minute)
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := routertest.New(t, routertest.Backends("a", "b"), routertest.Capacities(1000, 1000))
			begin(p)
			p.Settle(time.Minute)
			if idle(p) {
				t.Fatal("what is open settles for nobody; this test proves nothing")
			}
			p.Change(func(f *router.Fleet) { f.Leasing = router.LeasingHeld })
			p.Settle(time.Minute)
			if !idle(p) {
				t.Errorf("a minute on idle engines, and still %+v", p.Snapshot().Backends)
			}
		})
	}
}

// idle reports whether nothing is counted or unknown on any backend.
func idle(p *routertest.Pool) bool {
	for _, b := range p.Snapshot().Backends {
		if b.Outstanding > 0 || b.UnknownLoad {
			return false
		}
	}
	return true
}

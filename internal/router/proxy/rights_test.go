package proxy_test

import (
	"net/http"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/berthmaster/berthmaster/internal/router"
	"github.com/berthmaster/berthmaster/internal/router/proxy"
)

// revocable lets everybody in until it is told not to.
type revocable struct{ revoked atomic.Bool }

func (v *revocable) Authorize(*http.Request, router.PoolKey, router.SenderName) error {
	if v.revoked.Load() {
		return &router.Refusal{Reason: router.ReasonSessionForbidden}
	}
	return nil
}

func TestWhoeverLosesItsRightsWhileItIsHeldGetsNoLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var rights revocable
		g := newCalm(t, proxy.Config{Authorizer: &rights}, atOnce)
		g.apply(func(f *router.Fleet) { f.Leasing = router.LeasingHeld })
		a := g.post("s")
		synctest.Wait()
		if a.over() {
			t.Fatalf("answered %d while held", a.Code)
		}
		rights.revoked.Store(true)
		g.apply(func(f *router.Fleet) { f.Leasing = router.LeasingOpen })
		if !a.over() || a.Code != http.StatusForbidden {
			t.Errorf("answered: %t, with %d; want 403", a.over(), a.Code)
		}
		if n := len(g.order()); n != 0 {
			t.Errorf("%d generations for a caller without rights", n)
		}
		if n := g.snapshot().Backends[0].Outstanding; n != 0 {
			t.Errorf("%d executions stay counted", n)
		}
	})
}

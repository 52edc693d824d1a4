package router_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/berthmaster/berthmaster/internal/router"
	"github.com/berthmaster/berthmaster/internal/router/routertest"
)

// Waiting for what nobody does: time alone lets a session leave its full home.

// full makes a pool of two backends of 16 executions each, so that one that is lost makes none settle, whose
// admission limit is their capacity.
func full(t *testing.T, change func(*router.Config)) *routertest.Pool {
	return routertest.New(t, routertest.Backends("a", "b"), routertest.Capacities(16, 16), routertest.With(func(c *router.Config) {
		c.AdmissionPercent = 100
		change(c)
	}))
}

func TestAWaiterMayLeaveItsFullHomeOnceItsCoolDownIsOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := full(t, func(c *router.Config) { c.Mode, c.TTL = router.Rebalance, time.Hour })
		turn(p, t, "earlier", "a", 50_000, 50_000)
		turn(p, t, "s", "a", 1_000, 100)
		fill(p, "a/1", 16)
		w := newWaiters(p)
		defer w.wait(p.Request("r", "s"))()
		p.Pass(p.Fleet.Config.Moving.CoolDown - time.Second)
		w.expect(t)
		p.Pass(time.Second)
		w.expect(t, "r")
	})
}

func TestAWaiterMayLeaveItsFullHomeOnceItsSessionsOtherLeaseIsLost(t *testing.T) {
	for name, pass := range map[string]func(*routertest.Pool){
		"the table is told of the time":   func(p *routertest.Pool) { p.Pass(time.Second) },
		"somebody looks at the pool":      func(p *routertest.Pool) { later(p) },
		"the engines' chores are fetched": func(p *routertest.Pool) { p.Table.Chores(p.Now().Add(time.Second)) },
	} {
		t.Run("and "+name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := full(t, func(c *router.Config) { c.AfterPublish = router.ResetHomes })
				onA(p, "first", "s", 1)
				long := onA(p, "long", "long", 15)
				p.Change(func(f *router.Fleet) { f.Published = "v1" })
				p.HealAll()
				w := newWaiters(p)
				defer w.wait(p.Request("r", "s"))()
				p.Pass(p.Fleet.Config.TTL - time.Second)
				p.Renew(long, router.Started)
				w.expect(t)
				pass(p)
				w.expect(t, "r")
			})
		})
	}
}

// onA gets a lease of so many executions on the backend a.
func onA(p *routertest.Pool, id router.RequestID, session router.SessionID, n int64) router.Grant {
	r := p.Request(id, session)
	r.LastIncarnation, r.LastName, r.Executions = "a/1", "a", n
	return p.Grant(r)
}

// later looks at the pool a second from now.
func later(p *routertest.Pool) { p.Table.Snapshot(p.Now().Add(time.Second)) }

package router_test

import (
	"testing"
	"testing/synctest"

	"github.com/berthmaster/berthmaster/internal/router"
	"github.com/berthmaster/berthmaster/internal/router/routertest"
)

func TestWhoeverCameFirstIsServedFirstWhicheverSenderItIsOf(t *testing.T) {
	for name, order := range map[string][]router.SenderName{
		"train first": {"train", "eval", "train"}, "eval first": {"eval", "train", "eval"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := routertest.New(t, routertest.Backends("a"), routertest.Capacities(3), routertest.Senders("train", "eval"),
					routertest.With(func(c *router.Config) { c.AdmissionPercent = 100 }))
				held := []router.Grant{p.Acquire("h1", "h1"), p.Acquire("h2", "h2"), p.Acquire("h3", "h3")}
				ids := []router.RequestID{"w1", "w2", "w3"}
				w := newWaiters(p)
				for i, id := range ids {
					r := p.Request(id, router.SessionID(id))
					r.Sender = order[i]
					defer w.wait(r)()
				}
				w.expect(t)
				for i, g := range held {
					p.Release(g, router.Succeeded)
					w.expect(t, ids[:i+1]...)
				}
			})
		})
	}
}

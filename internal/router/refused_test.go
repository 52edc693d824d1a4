package router_test

import (
	"testing"

	"github.com/berthmaster/berthmaster/internal/router"
	"github.com/berthmaster/berthmaster/internal/router/routertest"
)

// R9: what was read of an engine before somebody was refused there says nothing of the engine since.

func TestAProbeUnderWayDoesNotConfirmTheVersionOfBeforeARefusedConnection(t *testing.T) {
	for name, before := range map[string]router.Health{
		"of a healthy engine":                 router.Healthy,
		"of one that refused the last probe":  router.Refused,
		"of one that was unhealthy until now": router.Unhealthy,
	} {
		t.Run(name, func(t *testing.T) {
			p := routertest.New(t, routertest.Backends("a"))
			p.Change(func(f *router.Fleet) { f.Published = "v7" })
			p.HealAll()
			p.See(router.Observation{Incarnation: "a/1", Health: before, Version: "v7"})
			landing := router.Observation{Incarnation: "a/1", Health: router.Healthy, Version: "v7"}
			p.Table.ConnectionRefused("a/1", p.Now()) // after the probe's /model_info
			p.See(landing)
			if b := p.Backend("a/1"); b.Admissible || b.Reason != "VersionUnconfirmed" {
				t.Errorf("admissible %v, reason %q, on the word of a probe that was under way", b.Admissible, b.Reason)
			}
			p.Refuse(p.Request("r1", "s"), router.ErrNoBackend)
			p.See(landing)
			if g := p.Acquire("r2", "s"); g.Claim.Version != "v7" {
				t.Errorf("the lease says %q", g.Claim.Version)
			}
		})
	}
}

package router_test

import (
	"testing"

	"github.com/berthmaster/berthmaster/internal/router"
	"github.com/berthmaster/berthmaster/internal/router/routertest"
)

// vouch has the controller vouch for a version of backend a, knowing what was observed so far.
func vouch(p *routertest.Pool, v router.Version, seq uint64) {
	p.SetMember("a", func(m *router.Member) { m.Vouched, m.VouchedAt = v, seq })
}

func TestWhatTheControllerVouchesForCountsUntilTheNextOutage(t *testing.T) {
	see := func(p *routertest.Pool, seq uint64, health router.Health, v router.Version) {
		p.Table.Observe(router.Observation{Incarnation: "a/1", Seq: seq, Health: health, Version: v, EngineTotal: -1, Capacity: 8}, p.Now())
	}
	for name, c := range map[string]struct {
		do   func(p *routertest.Pool)
		want router.Version
	}{
		"before the prober has read it": {func(p *routertest.Pool) {
			see(p, 10, router.Healthy, "")
			vouch(p, "v2", 10)
		}, "v2"},
		"whatever the engine reports": {func(p *routertest.Pool) {
			see(p, 10, router.Healthy, "default")
			vouch(p, "v2", 10)
			see(p, 11, router.Healthy, "default")
		}, "v2"},
		"not of an outage that the controller did not know of": {func(p *routertest.Pool) {
			see(p, 10, router.Healthy, "v1")
			see(p, 11, router.Refused, "")
			see(p, 12, router.Healthy, "")
			vouch(p, "v2", 10)
		}, ""},
		"not after an outage": {func(p *routertest.Pool) {
			see(p, 10, router.Healthy, "v1")
			vouch(p, "v2", 10)
			see(p, 11, router.Unhealthy, "")
			see(p, 12, router.Healthy, "")
		}, ""},
		"not after a refused connection": {func(p *routertest.Pool) {
			see(p, 10, router.Healthy, "v1")
			vouch(p, "v2", 10)
			p.Table.ConnectionRefused("a/1", p.Now())
		}, ""},
		"not of a controller that knows what a probe under way has seen": {func(p *routertest.Pool) {
			see(p, 10, router.Healthy, "v1")
			p.Table.ConnectionRefused("a/1", p.Now())
			see(p, 11, router.Healthy, "")
			vouch(p, "v2", 11)
		}, ""},
		"again once the controller knows of a later probe": {func(p *routertest.Pool) {
			see(p, 10, router.Healthy, "v1")
			p.Table.ConnectionRefused("a/1", p.Now())
			see(p, 11, router.Healthy, "")
			see(p, 12, router.Healthy, "")
			vouch(p, "v2", 12)
		}, "v2"},
		"again once the controller vouches anew": {func(p *routertest.Pool) {
			see(p, 10, router.Refused, "")
			see(p, 11, router.Healthy, "")
			vouch(p, "v2", 11)
		}, "v2"},
	} {
		t.Run(name, func(t *testing.T) {
			p := routertest.New(t, routertest.Backends("a"))
			c.do(p)
			if got := p.Backend("a/1").Version; got != c.want {
				t.Errorf("version %q, want %q", got, c.want)
			}
		})
	}
}

func TestALeaseSaysTheVersionThatWasVouchedForAndIsMixedAfterAnother(t *testing.T) {
	p := routertest.New(t, routertest.Backends("a"))
	p.Change(func(f *router.Fleet) { f.Published = "v1" })
	p.Table.Observe(router.Observation{Incarnation: "a/1", Seq: 10, Health: router.Healthy, EngineTotal: -1, Capacity: 8}, p.Now())
	vouch(p, "v1", 10)
	grant := p.Acquire("r", "s")
	if grant.Claim.Version != "v1" {
		t.Errorf("the lease says %q, want v1", grant.Claim.Version)
	}
	vouch(p, "v2", 10)
	if !p.Renew(grant, router.Started).Mixed {
		t.Error("a lease that lived across a change of what is vouched for does not say mixed")
	}
}

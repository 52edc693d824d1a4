package router_test

import (
	"testing"

	"github.com/berthmaster/berthmaster/internal/router"
	"github.com/berthmaster/berthmaster/internal/router/routertest"
)

// versionOf is the version that the router takes the first backend to run.
func versionOf(p *routertest.Pool) router.Version {
	return p.Table.Snapshot(p.Now()).Backends[0].Version
}

func TestAReloadedEngineRunsWhatItWasToldWhateverAnEarlierProbeSays(t *testing.T) {
	p := routertest.New(t, routertest.Backends("a"))
	life := p.Fleet.Members[0].Incarnation
	probe := func(seq uint64, v router.Version) {
		p.Table.Observe(router.Observation{Incarnation: life, Seq: seq, Health: router.Healthy, Capacity: 4, Version: v}, p.Now())
	}
	probe(10, "v1")
	g := p.Acquire("r1", "s")
	p.Table.Reloaded(life, "v2", p.Now())
	if renewal := p.Renew(g, router.Started); !renewal.Mixed {
		t.Error("a lease that lived across the reload does not say so")
	}
	probe(11, "v1") // it was under way
	if got := versionOf(p); got != "v2" {
		t.Errorf("after a probe that was under way: %q, want v2", got)
	}
	probe(12, "v3")
	if got := versionOf(p); got != "v3" {
		t.Errorf("after a later probe: %q, want v3", got)
	}
}

func TestAReloadThatFailedLeavesTheVersionUnknownUntilItIsReadAnew(t *testing.T) {
	p := routertest.New(t, routertest.Backends("a"))
	life := p.Fleet.Members[0].Incarnation
	p.Table.Observe(router.Observation{Incarnation: life, Seq: 10, Health: router.Healthy, Capacity: 4, Version: "v1"}, p.Now())
	p.Table.Reloaded(life, "", p.Now())
	p.Table.Observe(router.Observation{Incarnation: life, Seq: 11, Health: router.Healthy, Capacity: 4, Version: "v1"}, p.Now())
	if got := versionOf(p); got != "" {
		t.Errorf("version %q, want none", got)
	}
	p.Table.Observe(router.Observation{Incarnation: life, Seq: 12, Health: router.Healthy, Capacity: 4, Version: "v1"}, p.Now())
	if got := versionOf(p); got != "v1" {
		t.Errorf("version %q, want what was read anew", got)
	}
	p.Table.Reloaded("nobody", "v2", p.Now()) // an engine that is gone changes nothing
}

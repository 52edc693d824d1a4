package router_test

import (
	"testing"
	"time"

	"github.com/berthmaster/berthmaster/internal/router"
	"github.com/berthmaster/berthmaster/internal/router/routertest"
)

// R9 across a take-over, and of leases that nobody answers for: who reads a reply must know whether the
// weights changed under it.

// runs has the first backend report a version.
func runs(v router.Version) func(*routertest.Pool, router.Grant) {
	return func(p *routertest.Pool, _ router.Grant) {
		p.See(router.Observation{Incarnation: "a/1", Health: router.Healthy, Version: v, EngineTotal: -1})
	}
}

func renews(p *routertest.Pool, g router.Grant) { p.Renew(g, router.Started) }

func takesOver(p *routertest.Pool, _ router.Grant) { p.TakeOverBlind(30 * time.Second) }

func TestALeaseSaysMixedWhoeverLedWhileTheWeightsChanged(t *testing.T) {
	outage := func(p *routertest.Pool, _ router.Grant) {
		p.See(router.Observation{Incarnation: "a/1", Health: router.Unhealthy})
	}
	lapse := func(p *routertest.Pool, _ router.Grant) { p.Pass(121 * time.Second) }
	cancel := func(p *routertest.Pool, g router.Grant) { p.Release(g, router.Cancelled) }
	others := func(p *routertest.Pool, _ router.Grant) {
		p.Change(func(f *router.Fleet) { f.Published = "v6" })
		p.Acquire("r", "s")
	}
	proven := func(p *routertest.Pool, _ router.Grant) {
		p.SetSender("train", fence)
		p.Settle(time.Minute)
	}
	for name, c := range map[string]struct {
		steps   []func(*routertest.Pool, router.Grant)
		outcome router.Outcome
		want    bool
	}{
		"it is adopted before the new leader has looked at its backend": {
			steps: []func(*routertest.Pool, router.Grant){takesOver, renews, runs("v6")}, want: true},
		"it is adopted after": {
			steps: []func(*routertest.Pool, router.Grant){takesOver, runs("v6"), renews}, want: true},
		"it is adopted after, in an outage": {
			steps: []func(*routertest.Pool, router.Grant){takesOver, runs("v6"), outage, renews, runs("v6")}, want: true},
		"the weights changed back before it was adopted": {
			steps: []func(*routertest.Pool, router.Grant){takesOver, runs("v6"), runs("v5"), renews}, want: true},
		"it contradicts what is known, and is held": {
			steps: []func(*routertest.Pool, router.Grant){takesOver, runs("v6"), others}, want: true},
		"all was proven to be gone before it was told of": {
			steps: []func(*routertest.Pool, router.Grant){takesOver, runs("v6"), proven}, want: true},
		"it was lost before the weights changed": {
			steps: []func(*routertest.Pool, router.Grant){renews, lapse, runs("v6")}, want: true},
		"it was cancelled before the weights changed": {
			steps: []func(*routertest.Pool, router.Grant){renews, cancel, runs("v6")}, outcome: router.Cancelled, want: true},
		"it was adopted, and lost before anybody had looked": {
			steps: []func(*routertest.Pool, router.Grant){takesOver, renews, lapse, runs("v6")}, want: true},
		"nothing changed": {
			steps: []func(*routertest.Pool, router.Grant){takesOver, renews, runs("v5"), outage, runs("v5")}},
		"nothing changed, and it was lost": {
			steps: []func(*routertest.Pool, router.Grant){renews, lapse, outage, runs("v5")}},
	} {
		t.Run(name, func(t *testing.T) {
			p := routertest.New(t, routertest.Backends("a"))
			p.Change(func(f *router.Fleet) { f.Published = "v5" })
			p.HealAll()
			g := p.Acquire("r", "s")
			for _, step := range c.steps {
				step(p, g)
			}
			outcome := c.outcome
			if outcome == router.OutcomeNone {
				outcome = router.Succeeded
			}
			if e := p.Release(g, outcome); e.Mixed != c.want {
				t.Errorf("it says mixed: %v, want %v", e.Mixed, c.want)
			}
		})
	}
}

func TestALeaseThatPromisedNoVersionIsNotMixedByTheFirstLook(t *testing.T) {
	p := routertest.New(t, routertest.Backends("a"))
	g := p.Acquire("r", "s")
	p.TakeOverBlind(30 * time.Second)
	p.Renew(g, router.Started)
	runs("v6")(p, g)
	if p.Release(g, router.Succeeded).Mixed {
		t.Error("it says mixed, and nobody knows of a change")
	}
}

package router_test

import (
	"testing"
	"time"

	"github.com/berthmaster/berthmaster/internal/router"
	"github.com/berthmaster/berthmaster/internal/router/routertest"
)

// R9: weight versions. R10: pauses are free.

func TestOnlyConfirmedVersionsAreAdmissible(t *testing.T) {
	for name, c := range map[string]struct {
		published, target, confirmed router.Version
		want                         bool
		reason                       string
	}{
		"nothing is published":                  {"", "", "", true, ""},
		"nothing is published, whatever it has": {"", "", "v1", true, ""},
		"the published one":                     {"v2", "", "v2", true, ""},
		"an older one":                          {"v2", "", "v1", false, "VersionStale"},
		"unconfirmed":                           {"v2", "", "", false, "VersionUnconfirmed"},
		"the target of a rolling rollout":       {"v2", "v3", "v3", true, ""},
		"neither of both":                       {"v2", "v3", "v1", false, "VersionStale"},
		"unconfirmed with an empty target":      {"v2", "", "", false, "VersionUnconfirmed"},
	} {
		t.Run(name, func(t *testing.T) {
			p := routertest.New(t, routertest.Backends("a"))
			p.Change(func(f *router.Fleet) { f.Published, f.Target = c.published, c.target })
			p.See(router.Observation{Incarnation: "a/1", Health: router.Healthy, Version: c.confirmed})
			if b := p.Backend("a/1"); b.Admissible != c.want || b.Reason != c.reason {
				t.Errorf("admissible %v, reason %q; want %v, %q", b.Admissible, b.Reason, c.want, c.reason)
			}
			if !c.want {
				p.Refuse(p.Request("r", "s"), router.ErrNoBackend)
				return
			}
			want := c.confirmed
			if c.published == "" {
				want = ""
			}
			if g := p.Acquire("r", "s"); g.Claim.Version != want {
				t.Errorf("the lease says %q, want %q", g.Claim.Version, want)
			}
		})
	}
}

func TestAConfirmationIsReadAgainAfterEveryOutage(t *testing.T) {
	for name, outage := range map[string]func(*routertest.Pool){
		"unhealthy": func(p *routertest.Pool) {
			p.See(router.Observation{Incarnation: "a/1", Health: router.Unhealthy})
			p.See(router.Observation{Incarnation: "a/1", Health: router.Healthy})
		},
		"a refused connection": func(p *routertest.Pool) {
			p.Table.ConnectionRefused("a/1", p.Now())
			p.See(router.Observation{Incarnation: "a/1", Health: router.Healthy})
		},
		"a new incarnation": func(p *routertest.Pool) {
			p.Change(func(f *router.Fleet) { f.Members[0] = routertest.Member("a", 2) })
			p.See(router.Observation{Incarnation: "a/2", Health: router.Healthy})
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := routertest.New(t, routertest.Backends("a"))
			p.Change(func(f *router.Fleet) { f.Published = "v7" })
			p.HealAll()
			p.Release(p.Acquire("r1", "s"), router.Succeeded)
			outage(p)
			p.Refuse(p.Request("r2", "s"), router.ErrNoBackend)
			p.HealAll()
			p.Acquire("r3", "s")
		})
	}
}

func TestALeaseThatLivedAcrossAnUpdateSaysMixed(t *testing.T) {
	p := routertest.New(t, routertest.Backends("a"))
	p.Change(func(f *router.Fleet) { f.Published, f.Target = "v1", "v2" })
	p.See(router.Observation{Incarnation: "a/1", Health: router.Healthy, Version: "v1"})
	before := p.Acquire("r1", "s")
	if p.Renew(before, router.Started).Mixed {
		t.Error("mixed before anything changed")
	}
	p.See(router.Observation{Incarnation: "a/1", Health: router.Healthy})
	p.See(router.Observation{Incarnation: "a/1", Health: router.Healthy, Version: "v1"})
	if p.Renew(before, router.Started).Mixed {
		t.Error("mixed after an outage that changed no weights")
	}
	p.See(router.Observation{Incarnation: "a/1", Health: router.Healthy, Version: "v2"})
	after := p.Acquire("r2", "s")
	if !p.Renew(before, router.Started).Mixed || !p.Release(before, router.Succeeded).Mixed {
		t.Error("a lease that lived across the update does not say mixed")
	}
	if p.Release(after, router.Succeeded).Mixed || after.Claim.Version != "v2" {
		t.Errorf("a lease granted after the update is mixed, or of %q", after.Claim.Version)
	}
}

func TestAReplyOfAnotherVersionIsRecorded(t *testing.T) {
	p := routertest.New(t, routertest.Backends("a"))
	p.Change(func(f *router.Fleet) { f.Published = "v1" })
	p.HealAll()
	for i, version := range []router.Version{"v1", "v0", ""} {
		id := router.RequestID("r" + string(rune('0'+i)))
		g := p.Acquire(id, "s")
		if _, err := p.Table.Release(g.Claim, router.Succeeded, router.Reply{Version: version}, p.Now()); err != nil {
			t.Fatal(err)
		}
	}
	if n := p.Snapshot().Totals.VersionMismatches; n != 1 {
		t.Errorf("%d mismatches, want 1", n)
	}
}

func TestAnOlderObservationChangesNothing(t *testing.T) {
	p := routertest.New(t, routertest.Backends("a"))
	p.Observe("a/1", router.Healthy)
	for _, seq := range []uint64{0, 1, 2} {
		p.Table.Observe(router.Observation{Incarnation: "a/1", Seq: seq, Health: router.Unhealthy}, p.Now())
	}
	p.Acquire("r", "s")
}

func TestTheIdleClockStandsStillWhilePausedOrHeld(t *testing.T) {
	for name, c := range map[string]struct{ stop, run func(*router.Fleet) }{
		"leasing is held": {
			func(f *router.Fleet) { f.Leasing = router.LeasingHeld }, func(f *router.Fleet) { f.Leasing = router.LeasingOpen },
		},
		"an engine is paused": {
			func(f *router.Fleet) { f.Members[1].Engine = router.EnginePaused }, func(f *router.Fleet) { f.Members[1].Engine = router.EngineRunning },
		},
		"an engine is updated": {
			func(f *router.Fleet) { f.Members[1].Engine = router.EngineUpdating }, func(f *router.Fleet) { f.Members[1].Engine = router.EngineRunning },
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := routertest.New(t, routertest.Backends("a", "b"), routertest.With(func(c *router.Config) { c.IdleTimeout = 10 * time.Minute }))
			p.Release(p.Acquire("r", "s"), router.Succeeded)
			p.Pass(6 * time.Minute)
			p.Change(c.stop)
			p.Pass(5 * time.Hour)
			if p.Snapshot().Sessions != 1 {
				t.Fatal("the session was forgotten while its clock should stand still")
			}
			p.Change(c.run)
			p.Pass(4*time.Minute - time.Second)
			if p.Snapshot().Sessions != 1 {
				t.Fatal("the session was forgotten a second early")
			}
			p.Pass(time.Second)
			if p.Snapshot().Sessions != 0 {
				t.Error("the session was kept beyond its idle time")
			}
		})
	}
}

func TestLeasesRunOnAndAreRenewedInEveryState(t *testing.T) {
	for name, change := range map[string]func(*router.Fleet){
		"leasing is held":       func(f *router.Fleet) { f.Leasing = router.LeasingHeld },
		"the sender is fenced":  func(f *router.Fleet) { f.Senders[0].Access = router.AccessFenced },
		"the engine is paused":  func(f *router.Fleet) { f.Members[0].Engine = router.EnginePaused },
		"the backend drains":    func(f *router.Fleet) { f.Members[0].Drain = router.DrainMove },
		"the backend is gone":   func(f *router.Fleet) { f.Members = nil },
		"another version is up": func(f *router.Fleet) { f.Published = "v9" },
	} {
		t.Run(name, func(t *testing.T) {
			p := routertest.New(t, routertest.Backends("a"))
			kept, left := p.Acquire("r1", "s1"), p.Acquire("r2", "s2")
			p.Change(change)
			for range 3 {
				p.Pass(p.Fleet.Config.TTL / 2)
				p.Renew(kept, router.Started)
			}
			p.RefuseRenewal(left, router.ErrExecutionLost)
			p.Release(kept, router.Succeeded)
		})
	}
}

func TestHeldLeasingGrantsNothingAndAnswersWhatIsGranted(t *testing.T) {
	p := routertest.New(t, routertest.Backends("a"))
	g := p.Acquire("r1", "s")
	p.Change(func(f *router.Fleet) { f.Leasing = router.LeasingHeld })
	if r := p.Refuse(p.Request("r2", "s"), router.ErrLeasingHeld); r.RetryAfter <= 0 {
		t.Error("no word of when to come back")
	}
	if again := p.Acquire("r1", "s"); again.Claim != g.Claim {
		t.Errorf("the lease of before answers %+v", again)
	}
	if r := p.Renew(g, router.NotStarted); r.Pool.Leasing != router.LeasingHeld || r.Pool.Access != router.AccessOpen || r.Pool.Failed {
		t.Errorf("a renewal says of the pool %+v", r.Pool)
	}
}

package router_test

import (
	"testing"
	"time"

	"github.com/berthmaster/berthmaster/internal/router"
	"github.com/berthmaster/berthmaster/internal/router/routertest"
)

// R2: stickiness. In each test the session "s" begins on a and b would be the better pick.

// atHome makes a pool of a and b in which session "s" lives on a, and a is busier than b.
func atHome(t *testing.T, options ...routertest.Option) *routertest.Pool {
	p := routertest.New(t, routertest.Backends("a", "b"), options...)
	r := p.Request("home", "s")
	r.LastIncarnation, r.LastName = "a/1", "a"
	p.Release(p.Grant(r), router.Succeeded)
	fill(p, "a/1", 2)
	return p
}

func TestAcquireReturnsHomeWhileHomeIsAdmissible(t *testing.T) {
	p := atHome(t)
	if g := p.Acquire("r", "s"); g.Claim.Incarnation != "a/1" {
		t.Errorf("sent to %s", g.Claim.Incarnation)
	}
}

func TestParallelBranchesOfASessionGoHome(t *testing.T) {
	p := atHome(t)
	for _, id := range []router.RequestID{"r1", "r2", "r3", "r4"} {
		if g := p.Acquire(id, "s"); g.Claim.Incarnation != "a/1" {
			t.Errorf("branch %s was sent to %s", id, g.Claim.Incarnation)
		}
	}
}

func TestASessionIsRehomedAtOnceWhenItsHomeIsInadmissible(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*routertest.Pool)
		reason string
	}{
		"unhealthy": {func(p *routertest.Pool) { p.Observe("a/1", router.Unhealthy) }, "Unhealthy"},
		"it refused a connection": {func(p *routertest.Pool) {
			p.Table.ConnectionRefused("a/1", p.Now())
		}, "Refused"},
		"someone else paused it": {func(p *routertest.Pool) { p.Observe("a/1", router.SuspectedPaused) }, "SuspectedPaused"},
		"drained with Move":      {func(p *routertest.Pool) { p.SetMember("a", func(m *router.Member) { m.Drain = router.DrainMove }) }, "Draining"},
		"drained with Abort":     {func(p *routertest.Pool) { p.SetMember("a", func(m *router.Member) { m.Drain = router.DrainAbort }) }, "Draining"},
		"paused":                 {func(p *routertest.Pool) { p.SetMember("a", func(m *router.Member) { m.Engine = router.EnginePaused }) }, "EnginePaused"},
		"being updated": {func(p *routertest.Pool) {
			p.SetMember("a", func(m *router.Member) { m.Engine = router.EngineUpdating })
		}, "EngineUpdating"},
		"excluded":          {func(p *routertest.Pool) { p.SetMember("a", func(m *router.Member) { m.Excluded = "PodNotReady" }) }, "PodNotReady"},
		"its process ended": {func(p *routertest.Pool) { p.Table.Gone([]router.Incarnation{"a/1"}, p.Now()) }, "ProcessEnded"},
		"its version is stale": {func(p *routertest.Pool) {
			p.Change(func(f *router.Fleet) { f.Published = "v2" })
			p.See(router.Observation{Incarnation: "a/1", Health: router.Healthy, Version: "v1"})
			p.See(router.Observation{Incarnation: "b/1", Health: router.Healthy, Version: "v2"})
		}, "VersionStale"},
	} {
		t.Run(name, func(t *testing.T) {
			p := atHome(t)
			c.change(p)
			if b := p.Backend("a/1"); b.Admissible || b.Reason != c.reason {
				t.Errorf("a is admissible: %v, reason %q, want %q", b.Admissible, b.Reason, c.reason)
			}
			if g := p.Acquire("r", "s"); g.Claim.Incarnation != "b/1" {
				t.Errorf("sent to %s", g.Claim.Incarnation)
			}
		})
	}
}

func TestWhatRunsOnTheOldHomeStaysCountedThere(t *testing.T) {
	p := atHome(t)
	g := p.Acquire("running", "s")
	p.Observe("a/1", router.Unhealthy)
	p.Acquire("r", "s")
	if n := p.Backend("a/1").Outstanding; n != 3 {
		t.Errorf("3 executions were on a when it became unhealthy, %d are counted", n)
	}
	p.Release(g, router.Succeeded)
	if n := p.Backend("a/1").Outstanding; n != 2 {
		t.Errorf("one of them was released, %d are counted", n)
	}
}

func TestASessionDoesNotGoBackByItself(t *testing.T) {
	p := atHome(t)
	p.Observe("a/1", router.Unhealthy)
	p.Release(p.Acquire("r1", "s"), router.Succeeded)
	p.Observe("a/1", router.Healthy)
	fill(p, "b/1", 7)
	if g := p.Acquire("r2", "s"); g.Claim.Incarnation != "b/1" {
		t.Errorf("it moved back to %s", g.Claim.Incarnation)
	}
}

func TestANewIncarnationUnderTheSameNameIsNotHome(t *testing.T) {
	p := atHome(t)
	p.Change(func(f *router.Fleet) { f.Members[0] = routertest.Member("a", 2) })
	p.HealAll()
	fill(p, "a/2", 7)
	if g := p.Acquire("r", "s"); g.Claim.Incarnation != "b/1" {
		t.Errorf("sent to %s", g.Claim.Incarnation)
	}
}

func TestTheLastBackendIsHonouredForUnknownSessions(t *testing.T) {
	for name, c := range map[string]struct {
		name router.BackendName
		inc  router.Incarnation
		want router.Incarnation
	}{
		"the incarnation serves":            {"a", "a/1", "a/1"},
		"the name is not the incarnation's": {"b", "a/1", "b/1"},
		"an earlier incarnation":            {"a", "a/0", "b/1"},
		"none":                              {"", "", "b/1"},
	} {
		t.Run(name, func(t *testing.T) {
			p := atHome(t)
			r := p.Request("r", "unknown")
			r.LastName, r.LastIncarnation = c.name, c.inc
			if g := p.Grant(r); g.Claim.Incarnation != c.want {
				t.Errorf("sent to %s, want %s", g.Claim.Incarnation, c.want)
			}
		})
	}
	t.Run("a known session stays at home", func(t *testing.T) {
		p := atHome(t)
		r := p.Request("r", "s")
		r.LastName, r.LastIncarnation = "b", "b/1"
		if g := p.Grant(r); g.Claim.Incarnation != "a/1" {
			t.Errorf("sent to %s", g.Claim.Incarnation)
		}
	})
}

func TestResetMovesASessionOnceAtATurnBoundary(t *testing.T) {
	p := atHome(t, routertest.With(func(c *router.Config) { c.AfterPublish = router.ResetHomes }))
	running := p.Acquire("running", "s")
	p.Change(func(f *router.Fleet) { f.Published = "v1" })
	p.HealAll()
	if g := p.Acquire("branch", "s"); g.Claim.Incarnation != "a/1" {
		t.Errorf("a branch of a running turn was sent to %s", g.Claim.Incarnation)
	} else {
		p.Release(g, router.Succeeded)
	}
	p.Release(running, router.Succeeded)
	p.Release(p.Acquire("next", "s"), router.Succeeded)
	v, err := p.Table.Session("s")
	if err != nil || v.Incarnation != "b/1" {
		t.Fatalf("after the publication the session lives on %s, %v", v.Incarnation, err)
	}
	fill(p, "b/1", 7)
	if g := p.Acquire("later", "s"); g.Claim.Incarnation != "b/1" {
		t.Errorf("it moved once more, to %s", g.Claim.Incarnation)
	}
}

func TestResetThatFindsTheSamePlaceBestIsSpent(t *testing.T) {
	p := routertest.New(t, routertest.Backends("a", "b"), routertest.With(func(c *router.Config) { c.AfterPublish = router.ResetHomes }))
	home := p.Acquire("r1", "s")
	p.Release(home, router.Succeeded)
	other := router.Incarnation("a/1")
	if home.Claim.Incarnation == other {
		other = "b/1"
	}
	fill(p, other, 4)
	p.Change(func(f *router.Fleet) { f.Published = "v1" })
	p.HealAll()
	p.Release(p.Acquire("r2", "s"), router.Succeeded)
	fill(p, home.Claim.Incarnation, 6)
	if g := p.Acquire("r3", "s"); g.Claim.Incarnation != home.Claim.Incarnation {
		t.Errorf("two turns after the publication it moved to %s", g.Claim.Incarnation)
	}
}

func TestASessionSaysWhereItLivesAndWhy(t *testing.T) {
	p := atHome(t)
	p.Acquire("r", "new")
	v, err := p.Table.Session("new")
	if err != nil {
		t.Fatal(err)
	}
	want := router.Choice{
		Why: "Placed", Candidates: 2,
		Chosen:   router.Score{Backend: "b", Outstanding: 0, Capacity: 8, Sessions: 0},
		RunnerUp: router.Score{Backend: "a", Outstanding: 2, Capacity: 8, Sessions: 2},
	}
	if v.Choice != want || v.Active != 1 || v.Sender != "train" {
		t.Errorf("got %+v, want the choice %+v", v, want)
	}
	if _, err := p.Table.Session("never"); err == nil {
		t.Error("a session that never was has a view")
	}
}

// After a take-over the leader looks at the backends one after the other.
func TestASessionIsNotMovedBeforeItsHomeHasBeenLookedAt(t *testing.T) {
	named := func(p *routertest.Pool, _ router.Grant) router.Request {
		r := p.Request("next", "s")
		r.LastIncarnation, r.LastName = "a/1", "a"
		return r
	}
	adopted := func(p *routertest.Pool, running router.Grant) router.Request {
		p.Renew(running, router.Started)
		return p.Request("next", "s")
	}
	for name, c := range map[string]struct {
		ask  func(*routertest.Pool, router.Grant) router.Request
		seen router.Health
		want router.Incarnation
	}{
		"the home named as the last backend turns out healthy":   {named, router.Healthy, "a/1"},
		"the home named as the last backend turns out unhealthy": {named, router.Unhealthy, "b/1"},
		"nobody can tell yet whether it is healthy":              {named, router.HealthUnknown, "b/1"},
		"the home known by a token turns out healthy":            {adopted, router.Healthy, "a/1"},
		"the home known by a token turns out unhealthy":          {adopted, router.Unhealthy, "b/1"},
	} {
		t.Run(name, func(t *testing.T) {
			p := atHome(t)
			running := p.Acquire("running", "s")
			p.TakeOverBlind(30 * time.Second)
			p.Observe("b/1", router.Healthy)
			r := c.ask(p, running)
			p.Refuse(r, router.ErrNoBackend)
			p.Observe("a/1", c.seen)
			if g := p.Grant(r); g.Claim.Incarnation != c.want {
				t.Errorf("sent to %s, want %s", g.Claim.Incarnation, c.want)
			}
		})
	}
}

func TestNobodyWaitsForALookAtAHomeThatIsClosedAnyway(t *testing.T) {
	for name, change := range map[string]func(*router.Member){
		"drained":       func(m *router.Member) { m.Drain = router.DrainKeep },
		"excluded":      func(m *router.Member) { m.Excluded = "PodNotReady" },
		"paused":        func(m *router.Member) { m.Engine = router.EnginePaused },
		"another's now": func(m *router.Member) { m.Name = "other" },
	} {
		t.Run(name, func(t *testing.T) {
			p := atHome(t)
			p.TakeOverBlind(30 * time.Second)
			p.SetMember("a", change)
			p.Observe("b/1", router.Healthy)
			r := p.Request("next", "s")
			r.LastIncarnation, r.LastName = "a/1", "a"
			if g := p.Grant(r); g.Claim.Incarnation != "b/1" {
				t.Errorf("sent to %s", g.Claim.Incarnation)
			}
		})
	}
}

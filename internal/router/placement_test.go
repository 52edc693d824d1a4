package router_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berthmaster/berthmaster/internal/router"
	"github.com/berthmaster/berthmaster/internal/router/routertest"
)

// R1: least normalised load.

func TestANewSessionGoesWhereTheLeastIsOutstandingPerCapacity(t *testing.T) {
	for name, c := range map[string]struct {
		capacities []int64
		// before are executions on a, b and c, put there by sessions of one request each.
		before     []int64
		executions int64
		want       router.BackendName
	}{
		"the emptiest of equals":                {[]int64{8, 8, 8}, []int64{2, 1, 2}, 1, "b"},
		"the order of the list does not matter": {[]int64{8, 8, 8}, []int64{5, 3, 4}, 1, "b"},
		"a bigger backend with more on it":      {[]int64{4, 64, 4}, []int64{1, 15, 1}, 1, "b"},
		"what the request adds counts too":      {[]int64{2, 16, 4}, []int64{0, 4, 1}, 4, "b"},
	} {
		t.Run(name, func(t *testing.T) {
			p := routertest.New(t, routertest.Backends("a", "b", "c"), routertest.Capacities(c.capacities...))
			for i, n := range c.before {
				fill(p, p.Fleet.Members[i].Incarnation, n)
			}
			r := p.Request("r", "s")
			r.Executions = c.executions
			if g := p.Grant(r); g.Claim.Backend != c.want {
				t.Errorf("placed on %s, want %s", g.Claim.Backend, c.want)
			}
		})
	}
}

func TestFractionsThatNoFloatTellsApartAreComparedExactly(t *testing.T) {
	p := routertest.New(t, routertest.Backends("a", "b"), routertest.Capacities(1<<31-1, 1<<31-2))
	fill(p, "a/1", 2000) // two sessions on a, one on b: the tie-break would say b
	fill(p, "a/1", 2000)
	fill(p, "b/1", 4000)
	if g := p.Acquire("r", "s"); g.Claim.Backend != "a" {
		t.Errorf("4001/(2^31-2) was taken for no more than 4001/(2^31-1): placed on %s", g.Claim.Backend)
	}
}

// fill puts executions on an incarnation by naming it as the last backend of new sessions.
func fill(p *routertest.Pool, inc router.Incarnation, n int64) {
	if n == 0 {
		return
	}
	id := fmt.Sprintf("fill-%s-%d", inc[:1], p.Snapshot().Requests)
	r := p.Request(router.RequestID(id), router.SessionID(id))
	r.LastIncarnation, r.LastName = inc, router.BackendName(inc[:1])
	r.Executions = n
	if g := p.Grant(r); g.Claim.Incarnation != inc {
		panic("not placed on " + inc)
	}
}

func TestTiesGoToTheFewestResidentSessionsPerCapacity(t *testing.T) {
	p := routertest.New(t, routertest.Backends("a", "b", "c"))
	for i, inc := range []router.Incarnation{"a/1", "a/1", "b/1", "c/1", "c/1"} {
		r := p.Request(router.RequestID(fmt.Sprint("r", i)), router.SessionID(fmt.Sprint("s", i)))
		r.LastIncarnation, r.LastName = inc, router.BackendName(inc[:1])
		p.Release(p.Grant(r), router.Succeeded)
	}
	if g := p.Acquire("new", "new"); g.Claim.Backend != "b" {
		t.Errorf("with nothing outstanding and fewest residents on b, placed on %s", g.Claim.Backend)
	}
}

func TestTiesBeyondThatGoToTheLeastRecentlyChosen(t *testing.T) {
	p := routertest.New(t, routertest.Backends("a", "b", "c", "d"))
	chosen := map[router.BackendName]int{}
	for i := range 200 {
		id := fmt.Sprint(i)
		g := p.Acquire(router.RequestID(id), router.SessionID(id))
		p.Release(g, router.Succeeded)
		if err := p.Table.EndSession(g.Claim.Session, "train", p.Now()); err != nil {
			t.Fatal(err)
		}
		chosen[g.Claim.Backend]++
	}
	want := map[router.BackendName]int{"a": 50, "b": 50, "c": 50, "d": 50}
	if diff := cmp.Diff(want, chosen); diff != "" {
		t.Errorf("200 sessions one after the other (-want +got):\n%s", diff)
	}
}

func TestATurnAtHomeIsNoChoice(t *testing.T) {
	p := routertest.New(t, routertest.Backends("a", "b", "c"))
	p.Change(func(f *router.Fleet) { f.Config.Policy = router.RoundRobin })
	first := p.Acquire("r0", "settled")
	p.Release(first, router.Succeeded)
	var turns []router.BackendName
	for i := range 6 {
		p.Release(p.Acquire(router.RequestID(fmt.Sprint("home", i)), "settled"), router.Succeeded)
		id := fmt.Sprint("new", i)
		turns = append(turns, p.Acquire(router.RequestID(id), router.SessionID(id)).Claim.Backend)
	}
	for i, b := range turns {
		if i >= 3 && b != turns[i-3] || i < 3 && b == first.Claim.Backend && i != 2 {
			t.Fatalf("after %s, new sessions went to %v: not in turn", first.Claim.Backend, turns)
		}
	}
}

func TestUnequalBackendsFillInProportion(t *testing.T) {
	names := make([]router.BackendName, 16)
	capacities := make([]int64, 16)
	for i := range names {
		names[i], capacities[i] = router.BackendName(rune('a'+i)), 64
		if i >= 12 {
			capacities[i] = 32
		}
	}
	p := routertest.New(t, routertest.Backends(names...), routertest.Capacities(capacities...))
	for i := range 12*64 + 4*32 {
		p.Acquire(router.RequestID(fmt.Sprint(i)), router.SessionID(fmt.Sprint(i)))
		for _, b := range p.Snapshot().Backends {
			if i%100 == 0 && (b.Outstanding*64 > int64(i+1)*b.Capacity*64/896+64 || b.Outstanding*64 < int64(i+1)*b.Capacity*64/896-64) {
				t.Fatalf("after %d: %s of capacity %d has %d", i+1, b.Name, b.Capacity, b.Outstanding)
			}
		}
	}
	for _, b := range p.Snapshot().Backends {
		if b.Outstanding != b.Capacity {
			t.Errorf("%s of capacity %d has %d at saturation", b.Name, b.Capacity, b.Outstanding)
		}
	}
}

func TestABurstIsSpreadEvenly(t *testing.T) {
	names := []router.BackendName{"a", "b", "c", "d", "e", "f", "g", "h"}
	p := routertest.New(t, routertest.Backends(names...))
	least, most := int64(64), int64(0)
	for i := range 64 {
		p.Acquire(router.RequestID(fmt.Sprint(i)), router.SessionID(fmt.Sprint(i)))
	}
	for _, b := range p.Snapshot().Backends {
		least, most = min(least, b.Outstanding), max(most, b.Outstanding)
	}
	if most-least > 1 {
		t.Errorf("64 sessions at once on 8 backends: between %d and %d each", least, most)
	}
}

func TestCapacityUnknownIsInadmissibleUnlessTheSpecGivesOne(t *testing.T) {
	for name, c := range map[string]struct {
		fixed, said, fallback int64
		want                  int64
	}{
		"nobody knows it":                       {0, 0, 0, 0},
		"the engine says it":                    {0, 5, 0, 5},
		"the engine's word beats the fallback":  {0, 5, 9, 5},
		"the fallback serves until it is known": {0, 0, 9, 9},
		"the spec's figure beats the engine's":  {3, 5, 9, 3},
	} {
		t.Run(name, func(t *testing.T) {
			f := routertest.Backends("a")
			f.Members[0].Capacity, f.Members[0].FallbackCapacity = c.fixed, c.fallback
			p := routertest.New(t, f)
			p.See(router.Observation{Incarnation: "a/1", Health: router.Healthy, Capacity: c.said})
			b := p.Backend("a/1")
			if b.Capacity != c.want || b.Admissible != (c.want > 0) {
				t.Errorf("capacity %d, admissible %v (%s), want capacity %d", b.Capacity, b.Admissible, b.Reason, c.want)
			}
			if c.want == 0 {
				p.Refuse(p.Request("r", "s"), router.ErrNoBackend)
			}
		})
	}
}

func TestLoweringACapacityRevokesNothing(t *testing.T) {
	p := routertest.New(t, routertest.Backends("a"))
	g := p.Acquire("r1", "s1")
	p.Acquire("r2", "s2")
	p.SetMember("a", func(m *router.Member) { m.Capacity = 1 })
	p.Renew(g, router.NotStarted)
	if b := p.Backend("a/1"); b.Outstanding != 2 || !b.Admissible {
		t.Errorf("after the capacity was lowered to 1: %+v", b)
	}
}

func TestASaturatedBackendDoesNotKeepDrawingWhatHashesToIt(t *testing.T) {
	p := routertest.New(t, routertest.Backends("a", "b", "c", "d"), routertest.With(func(c *router.Config) { c.Policy = router.ConsistentHash }))
	home := p.Acquire("probe", "popular").Claim.Incarnation
	fill(p, home, 40)
	if err := p.Table.EndSession("popular", "train", p.Now()); err != nil {
		t.Fatal(err)
	}
	if g := p.Acquire("again", "popular"); g.Claim.Incarnation == home {
		t.Errorf("a new session went to %s, which holds 41 of 8", home)
	}
}

func TestConsistentHashSendsASessionBackToTheSameName(t *testing.T) {
	hash := routertest.With(func(c *router.Config) { c.Policy = router.ConsistentHash })
	homes := map[router.BackendName]bool{}
	for i := range 40 {
		s := router.SessionID(fmt.Sprint("s", i))
		one := routertest.New(t, routertest.Backends("a", "b", "c", "d"), hash, routertest.Capacities(1000, 1000, 1000, 1000))
		fill(one, "a/1", 9) // load that keeps every backend within the bound of the mean
		fill(one, "b/1", 9)
		fill(one, "c/1", 9)
		fill(one, "d/1", 9)
		at := one.Acquire("r", s).Claim.Backend
		two := routertest.New(t, routertest.Backends("d", "b", "a", "c"), hash)
		two.Change(func(f *router.Fleet) { f.Members[2] = routertest.Member("a", 2) })
		two.HealAll()
		fill(two, "d/1", 4)
		fill(two, "b/1", 4)
		fill(two, "a/2", 4)
		fill(two, "c/1", 4)
		if g := two.Acquire("r", s); g.Claim.Backend != at {
			t.Fatalf("session %s hashes to %s, and in another order with a new incarnation to %s", s, at, g.Claim.Backend)
		}
		homes[at] = true
	}
	if len(homes) != 4 {
		t.Errorf("40 sessions hash to %d of 4 backends", len(homes))
	}
}

func TestOtherPoliciesFollowTheirOwnOrder(t *testing.T) {
	for policy, want := range map[router.Policy]router.BackendName{
		router.LeastOutstanding: "c", router.LeastSessions: "b", router.RoundRobin: "a",
	} {
		t.Run(string(policy), func(t *testing.T) {
			// a was chosen first and is busy; b has no resident but is busy; c is idle with two.
			p := routertest.New(t, routertest.Backends("a", "b", "c"))
			fill(p, "a/1", 3)
			fill(p, "b/1", 2)
			if err := p.Table.EndSession("fill-b-1", "train", p.Now()); err != nil {
				t.Fatal(err)
			}
			for _, id := range []string{"x", "y"} {
				r := p.Request(router.RequestID(id), router.SessionID(id))
				r.LastIncarnation, r.LastName = "c/1", "c"
				p.Release(p.Grant(r), router.Succeeded)
			}
			p.Change(func(f *router.Fleet) { f.Config.Policy = policy })
			if g := p.Acquire("new", "new"); g.Claim.Backend != want {
				t.Errorf("placed on %s, want %s", g.Claim.Backend, want)
			}
		})
	}
}

func TestSiblingsShareABackendWithinTheSlack(t *testing.T) {
	for name, c := range map[string]struct {
		slack int64
		load  int64
		want  bool
	}{
		"equally loaded":               {50, 1, true},
		"within the slack":             {100, 1, true},
		"beyond the slack":             {50, 4, false},
		"groups are not looked at":     {0, 1, false},
		"any load with a lot of slack": {10_000, 20, true},
	} {
		t.Run(name, func(t *testing.T) {
			p := routertest.New(t, routertest.Backends("a", "b"), routertest.With(func(cfg *router.Config) { cfg.GroupSlackPercent = c.slack }))
			r := p.Request("r1", "s1")
			r.Group = "g"
			first := p.Grant(r)
			p.Release(first, router.Succeeded)
			other := router.Incarnation("a/1")
			if first.Claim.Incarnation == other {
				other = "b/1"
			}
			fill(p, first.Claim.Incarnation, c.load)
			if c.load == 1 {
				fill(p, other, 1)
			}
			r = p.Request("r2", "s2")
			r.Group = "g"
			if got := p.Grant(r).Claim.Incarnation == first.Claim.Incarnation; got != c.want {
				t.Errorf("beside its sibling: %v, want %v", got, c.want)
			}
		})
	}
}

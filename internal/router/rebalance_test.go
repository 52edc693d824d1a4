package router_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/berthmaster/berthmaster/internal/router"
	"github.com/berthmaster/berthmaster/internal/router/routertest"
)

// rebalancing is a pool of two backends of eight, "a" and "b", under Rebalance.
func rebalancing(t *testing.T) *routertest.Pool {
	return routertest.New(t, routertest.Backends("a", "b"), routertest.With(func(c *router.Config) {
		c.Mode, c.TTL = router.Rebalance, time.Hour
	}))
}

// turn is one turn of a session that names its last backend, with what the reply reports.
func turn(p *routertest.Pool, t *testing.T, session router.SessionID, on string, prompt, output int64) router.Incarnation {
	t.Helper()
	p.Pass(time.Millisecond) // so that each turn has an id of its own
	r := p.Request(router.RequestID(fmt.Sprintf("%s-%d", session, p.Now().UnixMilli())), session)
	r.LastIncarnation, r.LastName = router.Incarnation(on+"/1"), router.BackendName(on)
	g := p.Grant(r)
	reply := router.Reply{PromptTokens: prompt, OutputTokens: output}
	if _, err := p.Table.Release(g.Claim, router.Succeeded, reply, p.Now()); err != nil {
		t.Fatal(err)
	}
	return g.Claim.Incarnation
}

func TestRebalanceMovesASessionOnlyToCloseAGapThatIsWorthIt(t *testing.T) {
	for name, c := range map[string]struct {
		served, prompt, output int64
		pass                   time.Duration
		busy                   int64 // executions on b when the session comes again
		running                bool
		want                   router.Incarnation
	}{
		"the home has served far more":                   {served: 50_000, prompt: 1_000, output: 100, pass: 2 * time.Minute, want: "b/1"},
		"by no more than the context":                    {served: 50_000, prompt: 60_000, output: 100, pass: 2 * time.Minute, want: "a/1"},
		"by no more than the session's next turns":       {served: 50_000, prompt: 1_000, output: 5_000, pass: 2 * time.Minute, want: "a/1"},
		"still in its cool-down":                         {served: 50_000, prompt: 1_000, output: 100, pass: time.Second, want: "a/1"},
		"another turn of the session still runs":         {served: 50_000, prompt: 1_000, output: 100, pass: 2 * time.Minute, running: true, want: "a/1"},
		"the other backend is busier":                    {served: 50_000, prompt: 1_000, output: 100, pass: 2 * time.Minute, busy: 1, want: "a/1"},
		"the client does not report what its turns cost": {served: 50_000, pass: 2 * time.Minute, want: "a/1"},
		"nothing was served":                             {prompt: 1_000, output: 100, pass: 2 * time.Minute, want: "a/1"},
	} {
		t.Run(name, func(t *testing.T) {
			p := rebalancing(t)
			if c.served > 0 {
				turn(p, t, "earlier", "a", c.served, c.served)
			}
			turn(p, t, "s", "a", c.prompt, c.output)
			if c.busy > 0 {
				fill(p, "b/1", c.busy)
			}
			if c.running {
				p.Acquire("running", "s")
			}
			p.Pass(c.pass)
			if got := p.Acquire("next", "s").Claim.Incarnation; got != c.want {
				t.Errorf("sent to %s, want %s", got, c.want)
			}
		})
	}
}

func TestTheGapIsPerCapacity(t *testing.T) {
	f := routertest.Backends("a", "b")
	f.Members[0].Capacity, f.Members[1].Capacity = 16, 4
	p := routertest.New(t, f, routertest.With(func(c *router.Config) { c.Mode, c.TTL = router.Rebalance, time.Hour }))
	turn(p, t, "long", "a", 1, 40_000)
	turn(p, t, "other", "b", 1, 10_000)
	turn(p, t, "s", "a", 1, 1)
	fill(p, "a/1", 4) // so that b is the less loaded
	p.Pass(2 * time.Minute)
	if at := turn(p, t, "s", "a", 1, 1); at != "a/1" {
		t.Errorf("four times as much on four times the capacity moved the session to %s", at)
	}
}

func TestABackendThatWasAwayIsNotOwedWhatItMissed(t *testing.T) {
	p := rebalancing(t)
	drain := func(to router.Drain) {
		p.SetMember("b", func(m *router.Member) { m.Drain = to })
	}
	drain(router.DrainMove)
	turn(p, t, "s", "a", 1_000, 100)
	turn(p, t, "long", "a", 1_000, 1_000_000)
	drain(router.NotDraining)
	p.Pass(2 * time.Minute)
	if at := turn(p, t, "s", "a", 1_000, 100); at != "a/1" {
		t.Fatalf("the session was moved to %s, which had been drained", at)
	}
	turn(p, t, "long", "a", 1_000, 1_000_000)
	p.Pass(2 * time.Minute)
	if at := turn(p, t, "s", "a", 1_000, 100); at != "b/1" {
		t.Errorf("the session stayed on %s, though a gap has opened since", at)
	}
}

func TestABackendOfANewCapacityBeginsWithTheOthers(t *testing.T) {
	p := rebalancing(t)
	turn(p, t, "on-a", "a", 1_000, 100)
	turn(p, t, "long", "b", 1_000, 1_000_000)
	turn(p, t, "on-b", "b", 1_000, 100)
	p.SetMember("a", func(m *router.Member) { m.Capacity *= 2 })
	p.Pass(2 * time.Minute)
	if at := turn(p, t, "on-b", "b", 1_000, 100); at != "b/1" {
		t.Errorf("the session was moved to %s, whose capacity is new", at)
	}
}

func TestAmongTheLeastLoadedTheOneThatServedLeastIsMovedTo(t *testing.T) {
	p := routertest.New(t, routertest.Backends("a", "b", "c"), routertest.With(func(c *router.Config) { c.Mode = router.Rebalance }))
	turn(p, t, "on-b", "b", 1, 20_000)
	turn(p, t, "on-c", "c", 1, 1_000) // chosen after b
	turn(p, t, "long", "a", 1, 50_000)
	turn(p, t, "s", "a", 1_000, 100)
	p.Pass(2 * time.Minute)
	if at := turn(p, t, "s", "a", 1_000, 100); at != "c/1" {
		t.Errorf("the session was moved to %s, want c, which has served less than b", at)
	}
}

func TestNobodyIsMovedToABackendBusierThanTheHome(t *testing.T) {
	p := rebalancing(t)
	turn(p, t, "long", "a", 1, 50_000)
	turn(p, t, "s", "a", 1_000, 100)
	// The home of those who live there, and no candidate for others.
	p.SetMember("a", func(m *router.Member) { m.Drain = router.DrainKeep })
	fill(p, "b/1", 1)
	p.Pass(2 * time.Minute)
	if at := turn(p, t, "s", "a", 1_000, 100); at != "a/1" {
		t.Errorf("the session was moved to %s", at)
	}
}

func TestStickyMovesNobodyWhateverTheGap(t *testing.T) {
	p := routertest.New(t, routertest.Backends("a", "b"))
	turn(p, t, "long", "a", 1, 50_000)
	turn(p, t, "s", "a", 1_000, 100)
	p.Pass(2 * time.Minute)
	if at := turn(p, t, "s", "a", 1_000, 100); at != "a/1" {
		t.Errorf("the session was moved to %s", at)
	}
}

package router_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/berthmaster/berthmaster/internal/router"
	"github.com/berthmaster/berthmaster/internal/router/routertest"
)

// Design 5.3: when an incarnation settles, and what proves that it is quiet.

// ranks is a snapshot of ranks that show the same clock and total.
func ranks(n int, clock float64, total int64) []router.RankLoad {
	out := make([]router.RankLoad, n)
	for i := range out {
		out[i] = router.RankLoad{Rank: i, Clock: clock, Total: total}
	}
	return out
}

// settling makes a pool of one backend that has just answered the abort of an ambiguous
// execution, and waits for a load snapshot under the returned stamp.
func settling(t *testing.T) (*routertest.Pool, uint64) {
	t.Helper()
	p := routertest.New(t, routertest.Backends("a", "b"))
	r := p.Request("r", "s")
	r.LastName, r.LastIncarnation = "a", "a/1"
	p.Release(p.Grant(r), router.Ambiguous)
	p.Chores(0)
	p.Pass(time.Second)
	list := p.Table.Chores(p.Now())
	if len(list) != 1 || !list[0].ReadLoads || len(list[0].Abort) != 0 {
		t.Fatalf("after the abort was answered: chores %+v", list)
	}
	return p, list[0].Stamp
}

func TestQuiescenceNeedsASecondNewerSnapshotThatIsEmptyOnEveryRank(t *testing.T) {
	for name, c := range map[string]struct {
		first, second []router.RankLoad
		want          bool
	}{
		"empty and newer":                    {ranks(2, 1, 1), ranks(2, 2, 0), true},
		"empty twice by the same clock":      {ranks(2, 1, 0), ranks(2, 1, 0), false},
		"empty and older":                    {ranks(2, 2, 0), ranks(2, 1, 0), false},
		"something on one rank":              {ranks(2, 1, 0), []router.RankLoad{{Rank: 0, Clock: 2}, {Rank: 1, Clock: 2, Total: 1}}, false},
		"one rank not newer":                 {ranks(2, 1, 0), []router.RankLoad{{Rank: 0, Clock: 2}, {Rank: 1, Clock: 1}}, false},
		"a rank is missing":                  {ranks(2, 1, 0), ranks(1, 2, 0), false},
		"one rank twice instead of both":     {ranks(2, 1, 0), []router.RankLoad{{Rank: 0, Clock: 2}, {Rank: 0, Clock: 2}}, false},
		"another rank instead":               {ranks(2, 1, 0), []router.RankLoad{{Rank: 0, Clock: 2}, {Rank: 2, Clock: 2}}, false},
		"no rank at all":                     {ranks(2, 1, 0), nil, false},
		"a first snapshot without any ranks": {nil, ranks(2, 2, 0), false},
	} {
		t.Run(name, func(t *testing.T) {
			p, stamp := settling(t)
			p.Table.LoadsRead("a/1", stamp, c.first, p.Now())
			if p.Backend("a/1").Held == 0 {
				t.Fatal("one snapshot was taken for proof")
			}
			p.Table.LoadsRead("a/1", stamp, c.second, p.Now())
			if got := p.Backend("a/1").Held == 0; got != c.want {
				t.Errorf("proven quiet: %v, want %v", got, c.want)
			}
		})
	}
}

func TestAnAnswerAskedForUnderAnEarlierStampProvesNothing(t *testing.T) {
	p, stamp := settling(t)
	p.Table.LoadsRead("a/1", stamp, ranks(1, 1, 0), p.Now())
	p.SetMember("a", func(m *router.Member) { m.Engine = router.EnginePaused })
	p.SetMember("a", func(m *router.Member) { m.Engine = router.EngineRunning })
	for clock := range 5 {
		p.Table.LoadsRead("a/1", stamp, ranks(1, float64(clock+2), 0), p.Now())
	}
	if p.Backend("a/1").Held != 1 {
		t.Error("answers from before a pause proved what is after it")
	}
	p.Settle(5 * time.Second)
	if p.Backend("a/1").Held != 0 {
		t.Error("fresh answers prove nothing either")
	}
}

func TestAnExecutionHeldLaterBeginsTheProofAnew(t *testing.T) {
	p := routertest.New(t, routertest.Backends("a", "b"))
	r := p.Request("r1", "s1")
	r.LastName, r.LastIncarnation = "a", "a/1"
	first := p.Grant(r)
	r = p.Request("r2", "s2")
	r.LastName, r.LastIncarnation = "a", "a/1"
	second := p.Grant(r)
	p.Release(first, router.Ambiguous)
	p.Chores(0)
	p.Pass(time.Second)
	stamp := p.Table.Chores(p.Now())[0].Stamp
	p.Table.LoadsRead("a/1", stamp, ranks(1, 1, 0), p.Now())
	p.Release(second, router.Ambiguous)
	p.Table.LoadsRead("a/1", stamp, ranks(1, 2, 0), p.Now())
	if n := p.Backend("a/1").Held; n != 2 {
		t.Errorf("%d held, want 2: the snapshot may be older than the second one's abort", n)
	}
}

func TestNothingIsProvenWhileAStartWindowIsOpenOrTheEngineStandsStill(t *testing.T) {
	for name, c := range map[string]struct {
		open  func(*routertest.Pool)
		close func(*routertest.Pool)
	}{
		"an orphan whose client may still begin": {
			func(p *routertest.Pool) { p.Change(func(f *router.Fleet) { f.Epoch++ }) },
			func(p *routertest.Pool) { p.Pass(30 * time.Second) },
		},
		"a paused engine": {
			func(p *routertest.Pool) {
				p.SetMember("a", func(m *router.Member) { m.Engine, m.Drain = router.EnginePaused, router.DrainMove })
				p.Pass(2 * time.Minute)
			},
			func(p *routertest.Pool) { p.SetMember("a", func(m *router.Member) { m.Engine = router.EngineRunning }) },
		},
		"an engine that someone else paused": {
			func(p *routertest.Pool) {
				p.Pass(2 * time.Minute)
				p.Observe("a/1", router.SuspectedPaused)
			},
			func(p *routertest.Pool) { p.Observe("a/1", router.Healthy) },
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := routertest.New(t, routertest.Backends("a"))
			r := p.Request("r", "s")
			r.Executions = 8 // more than a tenth of the capacity: it settles when lost
			p.Grant(r)
			c.open(p)
			p.Settle(5 * time.Second)
			if n := p.Backend("a/1").Held; n != 8 {
				t.Fatalf("%d held, want 8", n)
			}
			c.close(p)
			p.Settle(5 * time.Second)
			if n := p.Backend("a/1").Held; n != 0 {
				t.Errorf("%d held, want none", n)
			}
		})
	}
}

func TestWritingClosesTheStartWindowForGood(t *testing.T) {
	p := routertest.New(t, routertest.Backends("a"))
	r := p.Request("r", "s")
	r.Executions = 8
	g := p.Grant(r)
	p.Renew(g, router.Started)
	p.Renew(g, router.NotStarted)
	p.Change(func(f *router.Fleet) { f.Epoch++ })
	p.Settle(5 * time.Second)
	if n := p.Backend("a/1").Held; n != 0 {
		t.Errorf("%d held: a window that was closed by writing was waited for", n)
	}
}

func TestAPauseByAbortProvesNothingOfWhatWasWrittenAfterItBegan(t *testing.T) {
	p := routertest.New(t, routertest.Backends("a"))
	g := p.Acquire("r", "s")
	begun := p.Now()
	p.Pass(time.Second)
	p.Renew(g, router.Started) // written while the pause was under way: it waits on the engine
	p.Release(g, router.Cancelled)
	p.Table.PauseAborted("a/1", begun, p.Now())
	if n := p.Backend("a/1").Held; n != 1 {
		t.Errorf("%d held, want 1", n)
	}
	begun = p.Now().Add(time.Second)
	p.Pass(2 * time.Second)
	p.Table.PauseAborted("a/1", begun, p.Now())
	if n := p.Backend("a/1").Held; n != 0 {
		t.Errorf("%d held after a later pause, want none", n)
	}
}

func TestAnIncarnationSettlesOnlyForAReason(t *testing.T) {
	for name, c := range map[string]struct {
		held, capacity int64
		change         func(*routertest.Pool)
		want           bool
	}{
		"a tenth of the capacity is lost":           {10, 100, func(*routertest.Pool) {}, false},
		"more than a tenth is lost":                 {11, 100, func(*routertest.Pool) {}, true},
		"a fence waits for what is lost":            {1, 100, func(p *routertest.Pool) { p.SetSender("train", fence) }, true},
		"the fence of another sender does not wait": {1, 100, func(p *routertest.Pool) { p.SetSender("eval", fence) }, false},
		"a drain waits for what is lost": {1, 100, func(p *routertest.Pool) {
			p.SetMember("a", func(m *router.Member) { m.Drain = router.DrainMove })
		}, true},
		"a lowered capacity makes it more than a tenth": {10, 100, func(p *routertest.Pool) {
			p.SetMember("a", func(m *router.Member) { m.Capacity = 99 })
		}, true},
		"nothing is lost": {0, 100, func(p *routertest.Pool) { p.SetSender("train", fence) }, false},
	} {
		t.Run(name, func(t *testing.T) {
			p := routertest.New(t, routertest.Backends("a"), routertest.Capacities(c.capacity), routertest.Senders("train", "eval"))
			fill(p, "a/1", c.held)
			p.Pass(p.Fleet.Config.TTL)
			c.change(p)
			if b := p.Backend("a/1"); b.Settling != c.want || b.Held != c.held {
				t.Errorf("settles %v with %d held, want %v with %d", b.Settling, b.Held, c.want, c.held)
			}
		})
	}
}

func TestAtMostAQuarterSettlesAtOnceThoseWaitedForFirst(t *testing.T) {
	names := []router.BackendName{"a", "b", "c", "d", "e", "f", "g", "h"}
	p := routertest.New(t, routertest.Backends(names...), routertest.Senders("train", "eval"))
	for _, n := range names {
		fill(p, routertest.Incarnation(n, 1), 8)
	}
	p.Pass(p.Fleet.Config.TTL) // all is lost: each is beyond a tenth
	if got := settlingNow(p); len(got) != 2 {
		t.Fatalf("%v settle, want a quarter of 8", got)
	}
	r := p.Request("ambiguous", "ambiguous")
	g := p.Grant(r)
	p.Release(g, router.Ambiguous)
	if got := settlingNow(p); len(got) != 2 || !slices.Contains(got, g.Claim.Incarnation) {
		t.Errorf("%v settle, want two with %s, which a caller waits for", got, g.Claim.Incarnation)
	}
	for range 20 {
		p.Settle(3 * time.Second)
	}
	if got := settlingNow(p); len(got) != 0 {
		t.Errorf("%v settle in the end", got)
	}
	for _, b := range p.Snapshot().Backends {
		if b.Outstanding != 0 {
			t.Errorf("%s never had its turn: %+v", b.Name, b)
		}
	}
}

func settlingNow(p *routertest.Pool) []router.Incarnation {
	var out []router.Incarnation
	for _, b := range p.Snapshot().Backends {
		if b.Settling {
			out = append(out, b.Incarnation)
		}
	}
	return out
}

func TestASmallPoolSettlesOneAtATime(t *testing.T) {
	p := routertest.New(t, routertest.Backends("a", "b", "c"))
	for _, inc := range []router.Incarnation{"a/1", "b/1", "c/1"} {
		fill(p, inc, 8)
	}
	p.Pass(p.Fleet.Config.TTL)
	if got := settlingNow(p); len(got) != 1 {
		t.Errorf("%v settle, want one", got)
	}
}

func TestAKeptDrainSettlesOnceItsLastSessionEnds(t *testing.T) {
	p := routertest.New(t, routertest.Backends("a"), routertest.Capacities(100))
	p.Acquire("r1", "s1")
	p.Release(p.Acquire("r2", "s2"), router.Cancelled)
	p.Pass(p.Fleet.Config.TTL)
	p.SetMember("a", func(m *router.Member) { m.Drain = router.DrainKeep })
	if p.Backend("a/1").Settling {
		t.Error("it settles while sessions stay there")
	}
	for _, s := range []router.SessionID{"s1", "s2"} {
		if err := p.Table.EndSession(s, "train", p.Now()); err != nil {
			t.Fatal(err)
		}
	}
	p.Settle(5 * time.Second)
	if b := p.Backend("a/1"); !b.Drained {
		t.Errorf("nobody is at home and it is not drained: %+v", b)
	}
}

func TestChoresAreBoundedAndPaced(t *testing.T) {
	p := routertest.New(t, routertest.Backends("a"), routertest.Capacities(1000))
	for i := range 100 {
		p.Release(p.Acquire(router.RequestID(fmt.Sprint(i)), "s"), router.Cancelled)
	}
	list := p.Table.Chores(p.Now())
	if len(list) != 1 || len(list[0].Abort) != 64 {
		t.Fatalf("the first chore has %d aborts, want 64", len(list[0].Abort))
	}
	if again := p.Table.Chores(p.Now().Add(499 * time.Millisecond)); len(again) != 0 {
		t.Errorf("asked again within half a second: %+v", again)
	}
	p.Table.AbortAnswered("a/1", list[0].Abort, p.Now())
	list = p.Table.Chores(p.Now().Add(500 * time.Millisecond))
	if len(list) != 1 || len(list[0].Abort) != 36 {
		t.Errorf("the second chore has %d aborts, want the other 36", len(list[0].Abort))
	}
}

// The answer that would have told the client of a shorter window may have been lost.
func TestAStartWindowOnceGivenIsNotTakenBack(t *testing.T) {
	const given = 100 * time.Second
	p := routertest.New(t, routertest.Backends("a", "b"), routertest.With(func(c *router.Config) {
		c.StartWindow, c.TTL, c.Certainty = given, given, 0
	}))
	g := p.Acquire("r", "s")
	p.Change(func(f *router.Fleet) { f.Config.StartWindow, f.Config.TTL = time.Second, time.Second })
	p.Renew(g, router.NotStarted)
	p.Pass(time.Second)
	p.SetMember(g.Claim.Backend, func(m *router.Member) { m.Drain = router.DrainMove })
	p.Settle(given - 3*time.Second)
	if r := p.Refuse(p.Request("r", "s"), router.ErrExecutionLost); r.Fate != router.FatePending {
		t.Errorf("its client may still write it, and its fate is %s", r.Fate)
	}
	p.Settle(5 * time.Second)
	if r := p.Refuse(p.Request("r", "s"), router.ErrExecutionLost); r.Fate != router.FateDead {
		t.Errorf("once the window has closed its fate is %s", r.Fate)
	}
}

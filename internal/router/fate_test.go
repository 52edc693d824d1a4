package router_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/berthmaster/berthmaster/internal/router"
	"github.com/berthmaster/berthmaster/internal/router/routertest"
)

// await waits for the fate of a lease in the background; the answer comes through the channel.
func await(t *testing.T, p *routertest.Pool, g router.Grant) <-chan router.Ending {
	answer := make(chan router.Ending, 1)
	go func() {
		e, err := p.Table.AwaitFate(t.Context(), g.Claim)
		if err != nil {
			t.Errorf("the fate of %s: %v", g.Claim.Request, err)
		}
		answer <- e
	}()
	synctest.Wait()
	return answer
}

// told demands that whoever waits has been answered, with a settled fate.
func told(t *testing.T, answer <-chan router.Ending, want router.Fate) {
	t.Helper()
	synctest.Wait()
	select {
	case e := <-answer:
		if !e.Settled || e.Fate != want {
			t.Errorf("told %+v, want %s, settled", e, want)
		}
	default:
		t.Errorf("nobody was told, want %s", want)
	}
}

// What failed or isolated before is in status already: nothing else comes that would wake them.
func TestWhoeverIsGivenUpOnAfterTheFirstIsToldAtOnce(t *testing.T) {
	for mode, fate := range map[router.Ambiguity]router.Fate{router.FailPool: router.FateFailed, router.IsolateBackend: router.FateIsolated} {
		t.Run(string(mode), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := routertest.New(t, routertest.Backends("a"), routertest.With(func(c *router.Config) { c.OnAmbiguous = mode }))
				first, second := p.Acquire("r1", "s"), p.Acquire("r2", "s")
				p.Release(first, router.Ambiguous)
				p.Pass(30 * time.Second)
				p.Release(second, router.Ambiguous)
				p.Pass(30 * time.Second)
				p.Table.FailureRecorded("r1", p.Now())
				p.Table.IsolationRecorded("a/1", p.Now())
				waiting := await(t, p, second)
				p.Pass(30 * time.Second)
				told(t, waiting, fate)
			})
		})
	}
}

func TestAFateThatBecameKnownWithoutAuthorityIsToldOnceThereIsAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := routertest.New(t, routertest.Backends("a"))
		g := p.Acquire("r", "s")
		p.Release(g, router.Ambiguous)
		waiting := await(t, p, g)
		p.Table.LeadUntil(p.Now(), p.Now())
		p.Table.Gone([]router.Incarnation{"a/1"}, p.Now())
		synctest.Wait()
		if len(waiting) > 0 {
			t.Errorf("told %+v without authority", <-waiting)
		}
		p.Table.LeadUntil(p.Now().Add(time.Hour), p.Now())
		told(t, waiting, router.FateDead)
	})
}

// Nobody pauses for us what has left the fleet; whoever waits for its certainty must not wait for ever.
func TestCertaintyEndsOnAPausedIncarnationThatLeftTheFleetWhateverALateProbeSays(t *testing.T) {
	p := routertest.New(t, routertest.Backends("a", "b"))
	r := p.Request("r", "s")
	r.LastName, r.LastIncarnation = "a", "a/1"
	p.Release(p.Grant(r), router.Ambiguous)
	p.SetMember("a", func(m *router.Member) { m.Engine = router.EnginePaused })
	p.Change(func(f *router.Fleet) { f.Members = f.Members[1:] })
	p.Observe("a/1", router.SuspectedPaused) // a probe that was under way
	p.Pass(p.Fleet.Config.Certainty)
	if p.Snapshot().Failure == nil {
		t.Error("its time is over and nothing was decided")
	}
}

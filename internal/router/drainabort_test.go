package router_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/berthmaster/berthmaster/internal/router"
	"github.com/berthmaster/berthmaster/internal/router/routertest"
)

func TestADrainPastItsDeadlineAbortsAllThatIsLeftHoweverMuch(t *testing.T) {
	const n = 200
	p := routertest.New(t, routertest.Backends("a"), routertest.Capacities(n))
	for i := range n {
		p.Acquire(router.RequestID(fmt.Sprint("r", i)), "s")
	}
	p.SetMember("a", func(m *router.Member) { m.Drain = router.DrainAbort })
	asked := map[router.RID]int{}
	for range 60 {
		for _, c := range p.Chores(n) { // they are answered, and the clients are slow to say so
			for _, rid := range c.Abort {
				asked[rid]++
			}
		}
		p.Pass(time.Second)
	}
	for rid, times := range asked {
		if times < 2 {
			t.Errorf("the abort of %s was asked for %d times in a minute, want it repeated", rid, times)
		}
	}
	if len(asked) != n {
		t.Errorf("%d of %d were aborted", len(asked), n)
	}
}

// Whoever leads now may have ended the drain.
func TestADrainAbortsNothingOnceLeadershipHasRunOut(t *testing.T) {
	p := routertest.New(t, routertest.Backends("a"))
	p.Acquire("r", "s")
	p.SetMember("a", func(m *router.Member) { m.Drain = router.DrainAbort })
	p.Table.LeadUntil(p.Now(), p.Now())
	for _, c := range p.Table.Chores(p.Now()) {
		if len(c.Abort) > 0 {
			t.Errorf("aborts %v", c.Abort)
		}
	}
}

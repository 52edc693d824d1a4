package metrics_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/berthmaster/berthmaster/internal/metrics"
	"github.com/berthmaster/berthmaster/internal/prober"
	"github.com/berthmaster/berthmaster/internal/router"
	"github.com/berthmaster/berthmaster/internal/router/routertest"
)

const (
	manyBackends = 1000
	manySessions = 1_000_000
)

// fleet has that many backends, of which each has lived that many lives.
func fleet(n, life int) []router.Member {
	members := make([]router.Member, 0, n)
	for i := range n {
		m := routertest.Member(router.BackendName(fmt.Sprintf("sglang-%d", i)), life)
		m.Capacity = 8192
		members = append(members, m)
	}
	return members
}

func TestSeriesGrowWithBackendsAndWithNothingElse(t *testing.T) {
	p := routertest.New(t, router.Fleet{
		Epoch: 1, Config: router.DefaultConfig(), Leasing: router.LeasingOpen, Members: fleet(manyBackends, 1),
		Senders: []router.Sender{{Name: "train", Access: router.AccessOpen}, {Name: "eval", Access: router.AccessOpen}},
	}, routertest.With(func(c *router.Config) { c.MaxRequests = 2 * manySessions }))
	c, registry := house(t, p, func(from *metrics.Sources) {
		from.Probed = func(string) map[string]prober.Observation {
			seen := map[string]prober.Observation{}
			for i := range manyBackends {
				seen[string(routertest.Incarnation(router.BackendName(fmt.Sprintf("sglang-%d", i)), 1))] = prober.Observation{Verdict: prober.Healthy}
			}
			return seen
		}
	})
	for _, result := range prober.Results() {
		c.Probed(prober.Key{Pool: string(p.Snapshot().Pool)}, result, time.Second)
	}
	few := series(t, registry)
	for i := range manySessions {
		id := fmt.Sprint("turn-", i)
		g, err := p.Table.Acquire(p.Request(router.RequestID(id), router.SessionID(id)), p.Now())
		if err != nil {
			t.Fatal(err)
		}
		if i%3 > 0 { // of each three sessions, one goes on
			p.Release(g, router.Succeeded)
		}
	}
	// Every backend restarts under another version, while a third of what ran there is counted.
	p.Change(func(f *router.Fleet) { f.Members, f.Published = fleet(manyBackends, 2), "step-1" })
	p.HealAll()
	many := series(t, registry)
	if got := p.Snapshot(); got.Sessions != manySessions || len(got.Backends) != 2*manyBackends {
		t.Fatalf("%d sessions on %d lives, want a million on two thousand", got.Sessions, len(got.Backends))
	}
	// A backend may now say whether its weights are current; backends and senders are what they were.
	const perBackend, perPool = 8, 120
	if most := few + manyBackends + 4; many > most || many > manyBackends*perBackend+perPool {
		t.Errorf("%d series, %d before the sessions: want at most %d, and %d for each backend", many, few, most, perBackend)
	}
	t.Logf("%d series for %d backends and %d sessions", many, manyBackends, manySessions)
}

// series counts what a scrape returns, a histogram as one.
func series(t *testing.T, registry prometheus.Gatherer) int {
	t.Helper()
	values, _ := gather(t, registry)
	return len(values)
}

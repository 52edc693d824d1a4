package metrics

import (
	"slices"
	"sync"
	"time"

	"github.com/berthmaster/berthmaster/internal/prober"
	"github.com/berthmaster/berthmaster/internal/router"
)

// callBounds are the classes of probes and engine calls, in seconds. A probe's /health may take as
// long as its time-out, 25 s by default.
func callBounds() []float64 {
	return []float64{0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60}
}

// durations counts by disjoint classes.
type durations struct {
	counts []uint64
	sum    float64
}

func (d *durations) add(took time.Duration) {
	bounds := callBounds()
	if d.counts == nil {
		d.counts = make([]uint64, len(bounds)+1)
	}
	class, _ := slices.BinarySearch(bounds, took.Seconds())
	d.counts[class]++
	d.sum += took.Seconds()
}

type probeKey struct {
	pool   string // UID
	result prober.Result
}

type engineKey struct{ route, code string }

type writeKey struct {
	pool   router.PoolKey
	result writeResult
}

// tally is what nobody else counts. What it counted of a pool that is gone it forgets at the next
// scrape.
type tally struct {
	mu     sync.Mutex
	probes map[probeKey]*durations  // guarded by mu
	calls  map[engineKey]*durations // guarded by mu
	writes map[writeKey]int64       // guarded by mu
}

func newTally() *tally {
	return &tally{probes: map[probeKey]*durations{}, calls: map[engineKey]*durations{}, writes: map[writeKey]int64{}}
}

// Probed counts a probe that landed.
func (t *tally) Probed(target prober.Key, result prober.Result, took time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	count(t.probes, probeKey{target.Pool, result}, took)
}

func (t *tally) called(route, code string, took time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	count(t.calls, engineKey{route, code}, took)
}

// Wrote counts a write of a pool's status, which may have failed.
func (t *tally) Wrote(pool router.PoolKey, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.writes[writeKey{pool, resultOf(err)}]++
}

func count[K comparable](in map[K]*durations, key K, took time.Duration) {
	d := in[key]
	if d == nil {
		d = &durations{}
		in[key] = d
	}
	d.add(took)
}

// tell writes down what was counted. uids are the pools there are.
func (t *tally) tell(s sheet, uids map[string]router.PoolKey) {
	t.mu.Lock()
	defer t.mu.Unlock()
	bounds := callBounds()
	for key, d := range t.probes {
		pool, lives := uids[key.pool]
		if !lives {
			delete(t.probes, key)
			continue
		}
		s.classes(probeDuration, bounds, d.counts, d.sum, pool.Namespace, pool.Name, string(key.result))
	}
	for key, d := range t.calls {
		s.classes(engineDuration, bounds, d.counts, d.sum, key.route, key.code)
	}
	t.tellWrites(s, uids)
}

// tellWrites is part of tell, whose caller holds mu.
func (t *tally) tellWrites(s sheet, uids map[string]router.PoolKey) {
	lives := make(map[router.PoolKey]struct{}, len(uids))
	for _, pool := range uids {
		lives[pool] = struct{}{}
	}
	for key, n := range t.writes {
		if _, ok := lives[key.pool]; !ok {
			delete(t.writes, key)
			continue
		}
		s.put(statusWrites, float64(n), key.pool.Namespace, key.pool.Name, string(key.result))
	}
}

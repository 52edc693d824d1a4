package server

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/berthmaster/berthmaster/internal/router"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience bounds every wait for a condition; no test's outcome depends on it.
const patience = time.Minute

// world is a served pool that a test drives from both sides: over HTTP, and as the controller
// and the prober would.
type world struct {
	t      *testing.T
	pools  *router.Pools
	table  *router.Table
	server *Server
	client *http.Client
	// base is the URL of the server, pool the URL of the pool.
	base, pool string
	key        router.PoolKey
	fleet      router.Fleet
	seq        uint64
	stop       func() error

	mu   sync.Mutex
	now  time.Time
	wall bool // time is the machine's, for tests with engines
}

// newWorld serves a pool of n healthy backends of capacity 64, with senders train and eval;
// change adapts the configuration and the fleet first.
func newWorld(t *testing.T, n int, change ...func(*Config, *router.Fleet)) *world {
	t.Helper()
	w := &world{t: t, pools: router.NewPools(), key: router.PoolKey{Namespace: "rl", Name: "policy"}, now: time.Unix(1_700_000_000, 0)}
	w.fleet = router.Fleet{
		Epoch: 1, Leasing: router.LeasingOpen, Config: router.DefaultConfig(),
		Senders: []router.Sender{{Name: "train", Access: router.AccessOpen, MinGeneration: 3}, {Name: "eval", Access: router.AccessOpen}},
	}
	for i := range n {
		w.fleet.Members = append(w.fleet.Members, member(i))
	}
	c := Config{Pools: w.pools, Keys: Keys{Current: key(7)}, Clock: w.clock, Hosts: []string{"a", "x"}} // what raw calls are addressed to
	for _, f := range change {
		f(&c, &w.fleet)
	}
	w.table = router.NewTable("uid-1", nil, w.now)
	w.table.Lead(1, router.Takeover{}, w.now)
	w.apply()
	w.healthy()
	w.pools.Put(w.key, w.table)
	w.serve(c)
	return w
}

func member(i int) router.Member {
	return router.Member{
		Name: router.BackendName(fmt.Sprintf("b%d", i)), Incarnation: router.Incarnation(fmt.Sprintf("pod-%d/c-1", i)),
		URL: fmt.Sprintf("http://127.0.0.1:%d", 30000+i), Capacity: 64,
	}
}

// serve starts the server on a port of its own, and stops it with the test.
func (w *world) serve(c Config) {
	w.t.Helper()
	s, err := New(c)
	if err != nil {
		w.t.Fatal(err)
	}
	var lc net.ListenConfig
	l, err := lc.Listen(w.t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		w.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Serve(ctx, l) }()
	w.stop = sync.OnceValue(func() error { cancel(); return <-done })
	w.server, w.base = s, "http://"+l.Addr().String()
	w.pool = w.base + "/v1alpha1/namespaces/rl/inferencepools/policy"
	transport := &http.Transport{MaxIdleConnsPerHost: 64}
	w.client = &http.Client{Transport: transport, Timeout: patience}
	w.t.Cleanup(func() {
		transport.CloseIdleConnections() // Shutdown gives connections without a call five seconds
		if err := w.stop(); err != nil {
			w.t.Error(err)
		}
		if n := s.large.size(); n != 0 {
			w.t.Errorf("%d bytes of the shared room are never given back", n)
		}
	})
}

func (w *world) clock() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.wall {
		return time.Now()
	}
	return w.now
}

func (w *world) sleep(d time.Duration) {
	w.mu.Lock()
	w.now = w.now.Add(d)
	w.mu.Unlock()
	w.table.Tick(w.clock())
}

func (w *world) apply() {
	w.t.Helper()
	if err := w.table.Apply(w.fleet, w.clock()); err != nil {
		w.t.Fatal(err)
	}
}

// change edits the fleet and applies it.
func (w *world) change(f func(*router.Fleet)) {
	w.t.Helper()
	f(&w.fleet)
	w.apply()
}

// healthy lets the prober say that every member answers, with the published version.
func (w *world) healthy() {
	for _, m := range w.fleet.Members {
		w.observe(m.Incarnation, router.Healthy)
	}
}

func (w *world) observe(inc router.Incarnation, h router.Health) {
	w.seq++
	w.table.Observe(router.Observation{Incarnation: inc, Seq: w.seq, Health: h, Version: w.fleet.Published, EngineTotal: -1}, w.clock())
}

func (w *world) snapshot() router.Snapshot { return w.table.Snapshot(w.clock()) }

func (w *world) outstanding() int64 {
	var n int64
	for _, b := range w.snapshot().Backends {
		n += b.Outstanding
	}
	return n
}

// eventually polls until ok, on a ticker and not on the test's clock.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	deadline := time.NewTimer(patience)
	defer deadline.Stop()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for !ok() {
		select {
		case <-tick.C:
		case <-deadline.C:
			t.Fatal("in vain: ", what)
		}
	}
}

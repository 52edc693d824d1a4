package traces

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/berthmaster/berthmaster/client"
	"github.com/berthmaster/berthmaster/internal/enginesim"
	"github.com/berthmaster/berthmaster/internal/enginesim/execlog"
	"github.com/berthmaster/berthmaster/internal/router"
	"github.com/berthmaster/berthmaster/internal/router/server"
	"github.com/berthmaster/berthmaster/internal/simulate/workload"
	"github.com/berthmaster/berthmaster/internal/tracing"
	"github.com/berthmaster/berthmaster/test/traffic"
)

const (
	speed = 20
	// byHand is the request that is surely renewed: a generation may end before its first renewal.
	byHand = "made-by-hand"
)

// contexts are the trace contexts that engines saw.
type contexts struct {
	mu   sync.Mutex
	seen []string // guarded by mu
}

func (c *contexts) saw(r *http.Request) {
	if r.URL.Path != "/generate" {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.seen = append(c.seen, r.Header.Get("Traceparent"))
}

// serve starts a pool of two engines whose calls about leases are traced; the result is its URL.
func serve(t *testing.T, traces *tracing.Tracing, engines *contexts) string {
	t.Helper()
	table := router.NewTable("uid", nil, time.Now())
	fleet := router.Fleet{
		Epoch: 1, Leasing: router.LeasingOpen, Config: router.DefaultConfig(), Senders: []router.Sender{{Name: "train", Access: router.AccessOpen}},
	}
	for i := range 2 {
		name := fmt.Sprint("e", i)
		engine, err := enginesim.New(enginesim.Config{Name: name, Speed: speed})
		if err != nil {
			t.Fatal(err)
		}
		served := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			engines.saw(r)
			engine.ServeHTTP(w, r)
		}))
		t.Cleanup(func() {
			served.Close()
			engine.Close()
		})
		fleet.Members = append(fleet.Members, router.Member{
			Name: router.BackendName(name), Incarnation: router.Incarnation(name + "/1"), URL: served.URL, Capacity: 8,
		})
	}
	table.Lead(1, router.Takeover{}, time.Now())
	if err := table.Apply(fleet, time.Now()); err != nil {
		t.Fatal(err)
	}
	for _, m := range fleet.Members {
		table.Observe(router.Observation{Incarnation: m.Incarnation, Seq: 1, Health: router.Healthy, EngineTotal: -1}, time.Now())
	}
	pools := router.NewPools()
	pools.Put(router.PoolKey{Namespace: "rl", Name: "policy"}, table)
	api, err := server.New(server.Config{Pools: pools, Keys: server.Keys{Current: []byte(strings.Repeat("k", 32))}, Observer: traces})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(api.Close)
	served := httptest.NewServer(api)
	t.Cleanup(served.Close)
	return served.URL + "/v1alpha1/namespaces/rl/inferencepools/policy"
}

// play runs a small workload to its end, and then one request by hand that is renewed; it returns how
// many requests there were.
func play(t *testing.T, url string) int {
	t.Helper()
	sessions, err := workload.Limits{Sessions: 8, Turns: 4, Output: 64}.Generate(1)
	if err != nil {
		t.Fatal(err)
	}
	pool, err := client.New(client.Config{BaseURL: url})
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	log, err := execlog.Open(filepath.Join(t.TempDir(), "clients.jsonl"), 0)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = log.Close() }()
	player, err := traffic.New(traffic.Config{Pool: pool, Sessions: sessions, Epoch: 1, Speed: speed, Log: log, Sender: func(int) string { return "train" }})
	if err != nil {
		t.Fatal(err)
	}
	if err := player.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	lease, err := pool.Acquire(t.Context(), client.AcquireRequest{RequestID: byHand, SessionID: "by-hand", Sender: "train", Epoch: 1, Wait: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	if err := lease.Renew(t.Context(), client.NotStarted); err != nil {
		t.Fatal(err)
	}
	if _, err := lease.Release(t.Context(), client.Report{Outcome: client.NotSent}); err != nil {
		t.Fatal(err)
	}
	return workload.Requests(sessions) + 1
}

func TestEachRequestOfTheDemoIsOneTraceFromAcquireToReleaseThatItsEngineSaw(t *testing.T) {
	received, engines := newReceiver(t), &contexts{}
	traces, err := tracing.New(t.Context(), tracing.Config{Endpoint: received.url, Percent: 100})
	if err != nil {
		t.Fatal(err)
	}
	turns := play(t, serve(t, traces, engines))
	if err := traces.Close(context.WithoutCancel(t.Context())); err != nil {
		t.Fatal(err)
	}
	byTrace := received.byTrace()
	if len(byTrace) != turns {
		t.Errorf("%d traces for %d requests", len(byTrace), turns)
	}
	for trace, spans := range byTrace {
		checkOne(t, trace, spans)
	}
	if len(engines.seen) < turns-1 {
		t.Errorf("engines saw %d requests, want %d", len(engines.seen), turns)
	}
	for _, context := range engines.seen {
		parts := strings.Split(context, "-")
		if len(parts) != 4 || len(byTrace[parts[1]]) == 0 {
			t.Errorf("an engine saw the context %q, which is of no trace", context)
		}
	}
}

// checkOne demands that a trace is one request's: a root that acquires, and what followed below it.
func checkOne(t *testing.T, trace string, spans []span) {
	t.Helper()
	count, roots := map[string]int{}, map[string]bool{}
	requests := map[string]bool{}
	for _, s := range spans {
		count[s.name]++
		if s.parent == "" {
			roots[s.id] = s.name == "acquire"
		}
		if s.name != "wait" {
			requests[s.attributes["berthmaster.request"]] = true
		}
	}
	if len(roots) != 1 || len(requests) != 1 || count["acquire"] < 1 || count["wait"] < 1 || count["release"] != 1 {
		t.Fatalf("trace %s has %v, of requests %v, with roots %v", trace, count, requests, roots)
	}
	if requests[byHand] && count["renew"] != 1 {
		t.Errorf("the request that was renewed has %v", count)
	}
	for _, s := range spans {
		if s.parent != "" && !roots[s.parent] {
			t.Errorf("%s of trace %s does not hang on its acquire", s.name, trace)
		}
	}
}

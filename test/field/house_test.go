package field

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/berthmaster/berthmaster/client"
	"github.com/berthmaster/berthmaster/internal/enginesim"
	"github.com/berthmaster/berthmaster/internal/enginesim/execlog"
	"github.com/berthmaster/berthmaster/internal/prober"
	"github.com/berthmaster/berthmaster/internal/router"
	"github.com/berthmaster/berthmaster/internal/router/server"
	"github.com/berthmaster/berthmaster/internal/settler"
	"github.com/berthmaster/berthmaster/internal/sglang"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	leaseAPI = "router.test:80"
	poolUID  = "uid-1"
)

// budget is how long an engine of these tests may fail: the ten seconds of the report.
const budget = 10 * time.Second

// house is a pool with all who take part in it.
type house struct {
	t       *testing.T
	net     *network
	table   *router.Table
	prober  *prober.Prober
	pool    *client.Pool
	control *http.Transport // of the operator's own calls to engines
	fleet   router.Fleet
	targets []prober.Target

	mu      sync.Mutex
	engines map[string]*engine // guarded by mu; by backend name
}

// engine is one simulated engine and what it saw.
type engine struct {
	*enginesim.Server
	name string

	mu      sync.Mutex
	records []execlog.Record // guarded by mu
	probes  []time.Time      // guarded by mu; when /health was asked
	late    <-chan struct{}  // guarded by mu; when the next probe is answered 503, nil if as it should be
}

// Append keeps a line of the execution log.
func (e *engine) Append(record any) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if r, ok := record.(execlog.Record); ok {
		e.records = append(e.records, r)
	}
	return nil
}

// ServeHTTP notes probes and lets the engine answer.
func (e *engine) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/health" && e.failLate(r.Context()) {
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	}
	e.Server.ServeHTTP(w, r)
}

// answerLate has the next probe hang until the channel is closed, and then answered 503.
func (e *engine) answerLate() chan<- struct{} {
	late := make(chan struct{})
	e.mu.Lock()
	defer e.mu.Unlock()
	e.late = late
	return late
}

// failLate notes a probe. It is true once a probe that is to fail late should be answered.
func (e *engine) failLate(ctx context.Context) bool {
	e.mu.Lock()
	late := e.late
	e.late, e.probes = nil, append(e.probes, time.Now())
	e.mu.Unlock()
	if late == nil {
		return false
	}
	select {
	case <-late:
	case <-ctx.Done():
	}
	return true
}

// started counts the sequences that the engine began to generate.
func (e *engine) started() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	n := 0
	for _, r := range e.records {
		if r.Event == execlog.Start {
			n++
		}
	}
	return n
}

// probed counts the probes that came so far.
func (e *engine) probed() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(e.probes)
}

// inHouse tells a story of a pool in virtual time.
func inHouse(t *testing.T, story func(*house)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		h := &house{t: t, net: &network{listeners: map[string]*listener{}}, engines: map[string]*engine{}}
		h.fleet = router.Fleet{
			Epoch: 1, Leasing: router.LeasingOpen, Config: router.DefaultConfig(),
			Senders: []router.Sender{{Name: "train", Access: router.AccessOpen}},
		}
		h.table = router.NewTable(poolUID, nil, time.Now())
		h.table.Lead(1, router.Takeover{}, time.Now())
		h.control = h.transport()
		h.prober = prober.New(h, prober.Config{Transport: h.transport(), Jitter: func() float64 { return 0.5 }})
		t.Cleanup(h.prober.Close)
		h.settle()
		h.serve()
		story(h)
	})
}

// transport is one of the product's own, over the network in memory.
func (h *house) transport() *http.Transport {
	transport := sglang.NewTransport()
	transport.DialContext = h.net.Dial
	h.t.Cleanup(transport.CloseIdleConnections)
	return transport
}

// settle runs the settler until the test ends.
func (h *house) settle() {
	ctx, cancel := context.WithCancel(context.Background())
	var work sync.WaitGroup
	transport := h.transport()
	work.Go(func() { settler.Run(ctx, h.table, settler.Config{Transport: transport}) })
	h.t.Cleanup(func() {
		cancel()
		work.Wait()
	})
}

// serve puts the lease API and a client into the house.
func (h *house) serve() {
	pools := router.NewPools()
	pools.Put(router.PoolKey{Namespace: "rl", Name: "policy"}, h.table)
	api, err := server.New(server.Config{Pools: pools, Keys: server.Keys{Current: make([]byte, 32)}})
	if err != nil {
		h.t.Fatal(err)
	}
	h.net.serve(h.t, leaseAPI, api)
	h.t.Cleanup(api.Close)
	h.pool, err = client.New(client.Config{
		BaseURL:   "http://" + leaseAPI + "/v1alpha1/namespaces/rl/inferencepools/policy",
		Transport: h.transport(), Dial: h.net.Dial, Attempts: 1,
	})
	if err != nil {
		h.t.Fatal(err)
	}
	h.t.Cleanup(h.pool.Close)
}

// Observe hands a probe's result to the router, as the controller does.
func (h *house) Observe(o prober.Observation) {
	version := router.Version("")
	if o.VersionConfirmed {
		version = router.Version(o.WeightVersion)
	}
	h.table.Observe(router.Observation{
		Incarnation: router.Incarnation(o.Incarnation), Seq: o.Seq, Health: verdicts[o.Verdict], Version: version,
		Capacity: o.Capacity, EngineTotal: o.EngineTotal, Reason: string(o.Reason),
	}, o.At)
}

var verdicts = map[prober.Verdict]router.Health{
	prober.Unknown: router.HealthUnknown, prober.Healthy: router.Healthy, prober.Unhealthy: router.Unhealthy,
	prober.SuspectedPaused: router.SuspectedPaused, prober.Refused: router.Refused,
}

// add brings a backend up and into the pool.
func (h *house) add(name string, cfg enginesim.Config) *engine {
	h.t.Helper()
	e := &engine{name: name}
	cfg.Name, cfg.Log = name, e
	var err error
	if e.Server, err = enginesim.New(cfg); err != nil {
		h.t.Fatal(err)
	}
	h.t.Cleanup(e.Server.Close)
	h.net.serve(h.t, name+":30000", e)
	h.mu.Lock()
	h.engines[name] = e
	h.mu.Unlock()
	h.join(name)
	return e
}

// join names a backend in the spec, whether anybody answers there or not.
func (h *house) join(name string) {
	h.t.Helper()
	url, err := sglang.ParseBaseURL("http://" + name + ":30000/")
	if err != nil {
		h.t.Fatal(err)
	}
	h.fleet.Members = append(h.fleet.Members, router.Member{
		Name: router.BackendName(name), Incarnation: router.Incarnation(name), URL: url.String(), FallbackCapacity: 64,
	})
	h.targets = append(h.targets, prober.Target{
		Incarnation: name, URL: url, Period: 5 * time.Second, Timeout: 25 * time.Second, FailureThreshold: 3, Budget: budget,
	})
	h.apply()
}

// apply hands the spec over, as a reconcile does.
func (h *house) apply() {
	h.t.Helper()
	if err := h.table.Apply(h.fleet, time.Now()); err != nil {
		h.t.Fatal(err)
	}
	h.prober.Set(poolUID, h.targets)
}

// mode tells the router what the operator has done to an engine.
func (h *house) mode(name string, m router.EngineMode) {
	h.t.Helper()
	for i := range h.fleet.Members {
		if string(h.fleet.Members[i].Name) == name {
			h.fleet.Members[i].Engine = m
		}
	}
	h.apply()
}

// engineClient is the operator's own client of an engine.
func (h *house) engineClient(name string) *sglang.Client {
	h.t.Helper()
	url, err := sglang.ParseBaseURL("http://" + name + ":30000")
	if err != nil {
		h.t.Fatal(err)
	}
	return sglang.New(url, h.control, nil)
}

// fault has an engine misbehave.
func (h *house) fault(name, fault string) {
	h.t.Helper()
	h.mu.Lock()
	e := h.engines[name]
	h.mu.Unlock()
	post(h.t, e, "/sim/faults", fault)
}

// turn plays one turn of a session and says on which backend it was leased.
func (h *house) turn(session string, tokens int) (*client.Result, error) {
	s := h.pool.Session(client.SessionConfig{ID: session, Sender: "train", Epoch: 1})
	return s.Generate(h.t.Context(), client.Request{Body: map[string]any{
		"text": "hello " + session, "sampling_params": map[string]any{"max_new_tokens": tokens, "ignore_eos": true},
	}})
}

// backend is what the live view says of a backend.
func (h *house) backend(name string) router.BackendSnapshot {
	h.t.Helper()
	snapshot := h.table.Snapshot(time.Now())
	for _, b := range snapshot.Backends {
		if string(b.Name) == name {
			return b
		}
	}
	h.t.Fatalf("no backend %s", name)
	return router.BackendSnapshot{}
}

// nothingLeft fails unless every count is at zero and the pool has not failed.
func (h *house) nothingLeft() {
	h.t.Helper()
	snapshot := h.table.Snapshot(time.Now())
	if snapshot.Failure != nil {
		h.t.Errorf("the pool failed: %+v", snapshot.Failure)
	}
	for _, b := range snapshot.Backends {
		if b.Outstanding != 0 {
			h.t.Errorf("%s counts %d", b.Name, b.Outstanding)
		}
	}
}

// pass lets virtual time go by, and everything that is due happen.
func pass(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

func name(i int) string { return fmt.Sprintf("b%d", i) }

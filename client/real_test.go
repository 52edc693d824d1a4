package client_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/berthmaster/berthmaster/client"
	"github.com/berthmaster/berthmaster/internal/enginesim"
	"github.com/berthmaster/berthmaster/internal/enginesim/execlog"
	"github.com/berthmaster/berthmaster/internal/prober"
	"github.com/berthmaster/berthmaster/internal/router"
	"github.com/berthmaster/berthmaster/internal/router/server"
	"github.com/berthmaster/berthmaster/internal/settler"
	"github.com/berthmaster/berthmaster/internal/sglang"
)

// patience bounds every wait for something that is to happen.
const patience = time.Minute

// house is a pool in earnest: the router and its API, the prober, the settler and simulated
// engines, on loopback.
type house struct {
	t       *testing.T
	table   *router.Table
	pool    *client.Pool
	engines []*enginesim.Server
	records *records
}

// records is the execution log of all engines.
type records struct {
	mu  sync.Mutex
	all []execlog.Record // guarded by mu
}

func (r *records) Append(record any) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.all = append(r.all, record.(execlog.Record))
	return nil
}

func (r *records) copy() []execlog.Record {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]execlog.Record(nil), r.all...)
}

// toTable hands what the prober learns to the router.
type toTable struct{ table *router.Table }

func (s toTable) Observe(o prober.Observation) {
	health := map[prober.Verdict]router.Health{
		prober.Healthy: router.Healthy, prober.Unhealthy: router.Unhealthy,
		prober.Refused: router.Refused, prober.SuspectedPaused: router.SuspectedPaused,
	}
	s.table.Observe(router.Observation{
		Incarnation: router.Incarnation(o.Incarnation), Seq: o.Seq, Health: health[o.Verdict],
		Capacity: o.Capacity, EngineTotal: o.EngineTotal,
	}, o.At)
}

// open builds a house with one engine per element of faults.
func open(t *testing.T, faults ...[]enginesim.Fault) *house {
	t.Helper()
	h := &house{t: t, table: router.NewTable("uid", nil, time.Now()), records: &records{}}
	fleet := router.Fleet{
		Epoch: 1, Leasing: router.LeasingOpen, Config: router.DefaultConfig(),
		Senders: []router.Sender{{Name: "train", Access: router.AccessOpen}},
	}
	var targets []prober.Target
	for i, f := range faults {
		name := fmt.Sprint("e", i)
		url := h.engine(name, f)
		fleet.Members = append(fleet.Members, router.Member{
			Name: router.BackendName(name), Incarnation: router.Incarnation(name), URL: url.String(), Capacity: 8,
		})
		targets = append(targets, prober.Target{
			Incarnation: name, URL: url, Period: 200 * time.Millisecond, Timeout: 30 * time.Second, FailureThreshold: 3,
		})
	}
	if err := h.table.Apply(fleet, time.Now()); err != nil {
		t.Fatal(err)
	}
	h.table.Lead(1, router.Takeover{}, time.Now())
	probes := prober.New(toTable{h.table}, prober.Config{})
	t.Cleanup(probes.Close)
	probes.Set("uid", targets)
	h.settle()
	h.serve()
	return h
}

func (h *house) engine(name string, faults []enginesim.Fault) sglang.BaseURL {
	h.t.Helper()
	engine, err := enginesim.New(enginesim.Config{Name: name, Speed: 50, Log: h.records, Faults: faults})
	if err != nil {
		h.t.Fatal(err)
	}
	socket, err := engine.Listen("127.0.0.1:0")
	if err != nil {
		h.t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- socket.Serve() }()
	h.t.Cleanup(func() {
		engine.Close()
		<-done
	})
	h.engines = append(h.engines, engine)
	base, err := sglang.ParseBaseURL(socket.URL())
	if err != nil {
		h.t.Fatal(err)
	}
	return base
}

func (h *house) settle() {
	ctx, cancel := context.WithCancel(context.Background())
	transport, done := sglang.NewTransport(), make(chan struct{})
	go func() {
		defer close(done)
		settler.Run(ctx, h.table, settler.Config{Transport: transport})
	}()
	h.t.Cleanup(func() {
		cancel()
		<-done
		transport.CloseIdleConnections()
	})
}

func (h *house) serve() {
	h.t.Helper()
	pools := router.NewPools()
	pools.Put(router.PoolKey{Namespace: "rl", Name: "policy"}, h.table)
	api, err := server.New(server.Config{Pools: pools, Keys: server.Keys{Current: make([]byte, 32)}})
	if err != nil {
		h.t.Fatal(err)
	}
	listener, err := (&net.ListenConfig{}).Listen(h.t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		h.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- api.Serve(ctx, listener) }()
	pool, err := client.New(client.Config{
		BaseURL: "http://" + listener.Addr().String() + "/v1alpha1/namespaces/rl/inferencepools/policy/",
	})
	if err != nil {
		h.t.Fatal(err)
	}
	h.pool = pool
	h.t.Cleanup(func() {
		pool.Close()
		cancel()
		if err := <-done; err != nil {
			h.t.Error(err)
		}
	})
}

// turn is one generation of a session, which the execution log can tell from others.
func (h *house) turn(ctx context.Context, s *client.Session, session string, n, tokens int) (*client.Result, error) {
	return s.Generate(ctx, client.Request{
		Wait:   patience,
		Header: http.Header{"X-Turn": {fmt.Sprint(n)}},
		Body: map[string]any{
			"text": fmt.Sprintf("%s turn %d", session, n), "session_id": session,
			"sampling_params": map[string]any{"max_new_tokens": tokens, "ignore_eos": true},
		},
	})
}

func (h *house) session(id string) *client.Session {
	return h.pool.Session(client.SessionConfig{ID: id, Sender: "train", Epoch: 1})
}

// emptied waits until the router counts nothing and keeps no session.
func (h *house) emptied() {
	h.t.Helper()
	ctx, cancel := context.WithTimeout(h.t.Context(), patience)
	defer cancel()
	ticker := time.NewTicker(20 * time.Millisecond)
	defer ticker.Stop()
	for {
		snapshot := h.table.Snapshot(time.Now())
		var outstanding int64
		for _, b := range snapshot.Backends {
			outstanding += b.Outstanding
		}
		if outstanding == 0 && snapshot.Sessions == 0 {
			return
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			h.t.Fatalf("still counted: %d executions, %d sessions", outstanding, snapshot.Sessions)
		}
	}
}

func TestSessionsRunThroughARealRouterAndRealEngines(t *testing.T) {
	h := open(t, nil, nil)
	var all sync.WaitGroup
	for i := range 12 {
		all.Go(func() {
			id := fmt.Sprint("s", i)
			session := h.session(id)
			homes := map[string]bool{}
			for n := range 3 {
				got, err := h.turn(t.Context(), session, id, n, 20)
				if err != nil {
					t.Error(err)
					return
				}
				if got.OutputTokens != 20 || got.WeightVersion != "default" || got.ReleaseErr != nil {
					t.Errorf("got %+v", got)
				}
				homes[got.Lease.Backend.Name] = true
			}
			if len(homes) != 1 {
				t.Errorf("%s was on %v", id, homes)
			}
			if err := session.Close(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	h.emptied()
	report := execlog.Check(h.records.copy(), nil)
	if len(report.Turns) != 36 || len(report.Violations) != 0 {
		t.Errorf("%d turns were executed, want 36; violations: %v", len(report.Turns), report.Violations)
	}
}

func TestAResetConnectionIsAmbiguousThenDeadAndNeverReplayed(t *testing.T) {
	reset := []enginesim.Fault{{Kind: enginesim.FaultReset, Paths: []string{"/generate"}, Bytes: 10, Count: 1}}
	h := open(t, reset)
	session := h.session("s")
	_, err := h.turn(t.Context(), session, "s", 0, 20)
	failed, ok := errors.AsType[*client.OutcomeError](err)
	if !ok || !errors.Is(err, client.ErrAmbiguous) || failed.Fate != client.FateDead || !failed.MayRepeat() {
		t.Fatalf("got %+v", err)
	}
	if got := execlog.Check(h.records.copy(), nil); len(got.Turns) != 1 || len(got.Turns[0].Executions) != 1 {
		t.Errorf("executed %+v", got.Turns)
	}
	if _, err := h.turn(t.Context(), session, "s", 1, 20); err != nil {
		t.Errorf("the pool did not go on: %v", err)
	}
	if err := session.Close(t.Context()); err != nil {
		t.Error(err)
	}
	h.emptied()
}

func TestACallerThatGoesAwayLeavesADeadExecution(t *testing.T) {
	h := open(t, nil)
	session := h.session("s")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ended := make(chan error, 1)
	go func() {
		_, err := h.turn(ctx, session, "s", 0, 1_000_000)
		ended <- err
	}()
	waitFor(t, func() bool {
		for _, r := range h.records.copy() {
			if r.Event == execlog.Start {
				return true
			}
		}
		return false
	})
	cancel()
	err := <-ended
	failed, ok := errors.AsType[*client.OutcomeError](err)
	if !ok || !errors.Is(err, client.ErrCancelled) || failed.ReleaseErr != nil {
		t.Fatalf("got %+v", err)
	}
	within, stop := context.WithTimeout(t.Context(), patience)
	defer stop()
	ending, err := failed.Lease.AwaitFate(within)
	if err != nil || ending.Fate != client.FateDead {
		t.Errorf("got %+v, %v", ending, err)
	}
	if err := session.Close(t.Context()); err != nil {
		t.Error(err)
	}
	h.emptied()
}

// waitFor polls a condition until it holds.
func waitFor(t *testing.T, holds func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	ticker := time.NewTicker(10 * time.Millisecond)
	defer ticker.Stop()
	for !holds() {
		select {
		case <-ticker.C:
		case <-ctx.Done():
			t.Fatal("it did not come to pass in time")
		}
	}
}

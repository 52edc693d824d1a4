package server

import (
	"context"
	"errors"
	"net"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/berthmaster/berthmaster/client"
	"github.com/berthmaster/berthmaster/internal/enginesim"
	"github.com/berthmaster/berthmaster/internal/enginesim/execlog"
	"github.com/berthmaster/berthmaster/internal/enginesim/model"
	"github.com/berthmaster/berthmaster/internal/router"
	"github.com/berthmaster/berthmaster/internal/settler"
	"github.com/berthmaster/berthmaster/internal/sglang"
)

// executions is an execution log in memory: what ran is said by the engines, not by the router.
type executions struct {
	mu      sync.Mutex
	records []execlog.Record // guarded by mu
}

func (e *executions) Append(record any) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if r, ok := record.(execlog.Record); ok {
		e.records = append(e.records, r)
	}
	return nil
}

// starts counts the executions that began.
func (e *executions) starts() int {
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

// engine runs a simulated engine until the test ends.
func engine(t *testing.T, log *executions, faults ...enginesim.Fault) string {
	t.Helper()
	e, err := enginesim.New(enginesim.Config{Log: log, Faults: faults, Speed: 100, Model: model.Params{}})
	if err != nil {
		t.Fatal(err)
	}
	socket, err := e.Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- socket.Serve() }()
	t.Cleanup(func() {
		e.Close()
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
	return socket.URL()
}

// closedPort is an address that refuses connections.
func closedPort(t *testing.T) string {
	t.Helper()
	var lc net.ListenConfig
	l, err := lc.Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return "http://" + l.Addr().String()
}

// withEngines serves a pool of engines in real time, with the settler at work.
func withEngines(t *testing.T, urls ...string) (*world, *client.Pool) {
	t.Helper()
	w := newWorld(t, len(urls), func(c *Config, f *router.Fleet) {
		c.Clock = time.Now
		for i, url := range urls {
			f.Members[i].URL = url
		}
	})
	w.mu.Lock()
	w.wall = true
	w.mu.Unlock()
	transport := sglang.NewTransport()
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() { settler.Run(ctx, w.table, settler.Config{Transport: transport}) })
	own := &http.Transport{}
	p, err := client.New(client.Config{BaseURL: w.pool, Transport: own})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		p.Close()
		own.CloseIdleConnections()
		cancel()
		wg.Wait()
		transport.CloseIdleConnections()
	})
	return w, p
}

func turn(p *client.Pool, id string) (*client.Result, error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	s := p.Session(client.SessionConfig{ID: id, Sender: "train", SenderGeneration: 3, Epoch: 1})
	return s.Generate(ctx, client.Request{Body: map[string]any{
		"text": "hello", "session_id": id, "sampling_params": map[string]any{"max_new_tokens": 4, "ignore_eos": true},
	}})
}

// miles#1334, SkyRL: a connection reset mid-flight was retried, and two generations ran.
func TestAResetAfterTheRequestWasReadIsAmbiguousAndRunsOnce(t *testing.T) {
	log := &executions{}
	w, p := withEngines(t, engine(t, log, enginesim.Fault{Kind: enginesim.FaultReset, Paths: []string{"/generate"}}))
	_, err := turn(p, "s1")
	var ended *client.OutcomeError
	if !errors.Is(err, client.ErrAmbiguous) || !errors.As(err, &ended) || ended.Fate != client.FateDead {
		t.Fatalf("%v", err)
	}
	if n := log.starts(); n != 1 {
		t.Errorf("%d generations", n)
	}
	if v := w.snapshot(); v.Failure != nil || v.Backends[0].Outstanding != 0 {
		t.Errorf("failure %v, %d counted", v.Failure, v.Backends[0].Outstanding)
	}
}

// The other half of the same report: what was refused was never sent, and may go elsewhere.
func TestAClosedPortIsRetriedOnAnotherBackend(t *testing.T) {
	log := &executions{}
	w, p := withEngines(t, closedPort(t), engine(t, log))
	for _, s := range []string{"s1", "s2"} { // one of them meets the closed port first
		if _, err := turn(p, s); err != nil {
			// As a client that lost its backend: the prober says so, and the next turn moves.
			if !errors.Is(err, client.ErrNotSent) {
				t.Fatal(err)
			}
			w.observe("pod-0/c-1", router.Refused)
			if _, err := turn(p, s); err != nil {
				t.Fatal(err)
			}
		}
	}
	if n := log.starts(); n != 2 {
		t.Errorf("%d generations for two turns", n)
	}
	if n := w.outstanding(); n != 0 {
		t.Errorf("%d counted", n)
	}
}

// surogate#177: a backend that answers 400 for ever was asked 10,729 times in 20 minutes.
func TestARefusalOfTheEngineIsPassedOnAndNotRepeated(t *testing.T) {
	log := &executions{}
	w, p := withEngines(t, engine(t, log, enginesim.Fault{Kind: enginesim.FaultStatus, Status: http.StatusBadRequest, Paths: []string{"/generate"}}))
	for range 3 {
		_, err := turn(p, "s1")
		var ended *client.OutcomeError
		if !errors.As(err, &ended) || ended.Status != http.StatusBadRequest {
			t.Fatalf("%v", err)
		}
	}
	if v := w.snapshot(); v.Totals.Grants != 3 {
		t.Errorf("%d leases for three turns", v.Totals.Grants)
	}
}

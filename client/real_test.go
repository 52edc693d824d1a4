package client_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/berthmaster/berthmaster/client"
	"github.com/berthmaster/berthmaster/clients/conformance/realpool"
	"github.com/berthmaster/berthmaster/internal/enginesim"
	"github.com/berthmaster/berthmaster/internal/router"
)

// patience bounds every wait for something that is to happen.
const patience = time.Minute

// house is a pool in earnest, and a client of it.
type house struct {
	*realpool.House
	t    *testing.T
	pool *client.Pool
}

// open builds a house with one engine per element of faults.
func open(t *testing.T, faults ...[]enginesim.Fault) *house {
	t.Helper()
	real, err := realpool.Open(faults...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(real.Close)
	pool, err := client.New(client.Config{BaseURL: real.BaseURL() + "/"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	return &house{House: real, t: t, pool: pool}
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

// judged demands that so many executions were made, and none that nothing allowed, once the router
// counts nothing.
func (h *house) judged(executions int) {
	h.t.Helper()
	got := h.Verdict(h.t.Context(), nil)
	if got.Executions != executions || len(got.Violations) != 0 {
		h.t.Errorf("got %+v, want %d executions", got, executions)
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
	h.judged(36)
	if got := h.Counted(); got.Sessions != 0 {
		t.Errorf("still counted: %+v", got)
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
	h.judged(1)
	if _, err := h.turn(t.Context(), session, "s", 1, 20); err != nil {
		t.Errorf("the pool did not go on: %v", err)
	}
	h.judged(2)
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
	h.waitFor(func() bool { return h.Counted().Started == 1 })
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
	h.judged(1)
}

// TestALeaseLivesOnUnderARouterThatTookOver: the new router knows nothing but what the token says.
func TestALeaseLivesOnUnderARouterThatTookOver(t *testing.T) {
	h := open(t, nil)
	session := h.session("s")
	ended := make(chan error, 1)
	go func() {
		_, err := h.turn(t.Context(), session, "s", 0, 1_000_000)
		ended <- err
	}()
	h.waitFor(func() bool { return h.Counted().Started == 1 })
	if err := h.TakeOver(); err != nil {
		t.Fatal(err)
	}
	h.waitFor(func() bool { return h.Counted().Outstanding == 1 })
	h.abortAll()
	// The engine's own end is reported to the router that took over, which answers.
	if failed, ok := errors.AsType[*client.OutcomeError](<-ended); !ok || failed.Outcome != client.Aborted || failed.ReleaseErr != nil {
		t.Errorf("got %+v", failed)
	}
	h.judged(1)
}

func TestATokenGetsTheSameLeaseFromARouterThatTookOver(t *testing.T) {
	h := open(t, nil)
	request := client.AcquireRequest{RequestID: "r1", SessionID: "s", Sender: "train", Epoch: 1, Wait: patience}
	before, err := h.pool.Acquire(t.Context(), request)
	if err != nil {
		t.Fatal(err)
	}
	if err := h.TakeOver(); err != nil {
		t.Fatal(err)
	}
	request.Token = before.Token
	after, err := h.pool.Acquire(t.Context(), request)
	if err != nil {
		t.Fatal(err)
	}
	if after.RID != before.RID || after.Backend != before.Backend {
		t.Errorf("got %+v, had %+v", after, before)
	}
	if _, err := after.Release(t.Context(), client.Report{Outcome: client.NotSent}); err != nil {
		t.Error(err)
	}
	h.judged(0)
}

func TestARaisedEpochCutsWhatRuns(t *testing.T) {
	h := open(t, nil)
	session := h.session("s")
	ended := make(chan error, 1)
	go func() {
		_, err := h.turn(t.Context(), session, "s", 0, 1_000_000)
		ended <- err
	}()
	h.waitFor(func() bool { return h.Counted().Started == 1 })
	if err := h.Apply(realpool.Change{Epoch: 2}); err != nil {
		t.Fatal(err)
	}
	// Either the client hears of it first and cuts, or the engine, which the router lets abort.
	err := <-ended
	if cut := errors.Is(err, client.ErrStaleEpoch) && errors.Is(err, client.ErrCancelled); !cut && !errors.Is(err, client.ErrAborted) {
		t.Errorf("got %v", err)
	}
	if _, err := h.turn(t.Context(), session, "s", 1, 20); !errors.Is(err, client.ErrStaleEpoch) {
		t.Errorf("the session went on: %v", err)
	}
	h.judged(1)
}

func TestAFencedSenderWaitsAndGoesOnWhenItIsOpened(t *testing.T) {
	h := open(t, nil)
	if err := h.Apply(realpool.Change{Access: router.AccessFenced}); err != nil {
		t.Fatal(err)
	}
	session := h.session("s")
	if _, err := session.Generate(t.Context(), client.Request{Body: map[string]any{"text": "x"}}); !errors.Is(err, client.ErrFenced) {
		t.Errorf("got %v", err)
	}
	ended := make(chan error, 1)
	go func() {
		_, err := h.turn(t.Context(), session, "s", 0, 20)
		ended <- err
	}()
	if err := h.Apply(realpool.Change{Access: router.AccessOpen}); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
	h.judged(1)
}

// abortAll lets the engines abort all that they run.
func (h *house) abortAll() {
	h.t.Helper()
	transport := &http.Transport{DisableKeepAlives: true}
	for _, url := range h.Engines() {
		req, err := http.NewRequestWithContext(h.t.Context(), http.MethodPost, url+"/abort_request", strings.NewReader(`{"abort_all":true}`))
		if err != nil {
			h.t.Fatal(err)
		}
		resp, err := transport.RoundTrip(req)
		if err != nil {
			h.t.Fatal(err)
		}
		_ = resp.Body.Close()
	}
}

// waitFor polls a condition until it holds.
func (h *house) waitFor(holds func() bool) {
	h.t.Helper()
	ctx, cancel := context.WithTimeout(h.t.Context(), patience)
	defer cancel()
	ticker := time.NewTicker(10 * time.Millisecond)
	defer ticker.Stop()
	for !holds() {
		select {
		case <-ticker.C:
		case <-ctx.Done():
			h.t.Fatal("it did not come to pass in time")
		}
	}
}

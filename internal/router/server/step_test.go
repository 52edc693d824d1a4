package server

import (
	"net/http"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berthmaster/berthmaster/internal/router"
	"github.com/berthmaster/berthmaster/internal/router/steps"
)

// diary is an Observer that writes steps down.
type diary struct {
	mu    sync.Mutex
	steps []steps.Step // guarded by mu
}

func (d *diary) Told(s *steps.Step) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.steps = append(d.steps, *s)
}

func (d *diary) Context(_ router.PoolKey, request router.RequestID, traceparent string) string {
	return "trace of " + string(request) + traceparent
}

// last is the newest step, without its times and its rid, which is random.
func (d *diary) last() steps.Step {
	d.mu.Lock()
	defer d.mu.Unlock()
	s := d.steps[len(d.steps)-1]
	began := s.Began
	s.Began, s.Ended, s.RID = s.Began.Add(-s.Began.Sub(began)), began, ""
	return s
}

func TestAnObserverIsToldOfEachCallAboutALease(t *testing.T) {
	d := &diary{}
	w := newWorld(t, 1, func(c *Config, _ *router.Fleet) { c.Observer = d })
	of := func(kind steps.Kind, change func(*steps.Step)) steps.Step {
		s := steps.Step{
			Kind: kind, Pool: w.key, Request: "r1", Session: "s1", Sender: "train", Backend: "b0", Incarnation: "pod-0/c-1", Epoch: 1, Term: 1,
			Began: w.clock(), Ended: w.clock(),
		}
		change(&s)
		return s
	}
	check := func(what string, want steps.Step) {
		t.Helper()
		if diff := cmp.Diff(want, d.last()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", what, diff)
		}
	}
	lease := w.lease("r1", "s1")
	check("a grant", of(steps.Acquire, func(*steps.Step) {}))
	if got := lease.header.Get(steps.TraceAnswerHeader); got != "trace of r1" {
		t.Errorf("the answer says %q of the trace", got)
	}
	w.acquire("r1", "s1")
	check("the same again", of(steps.Acquire, func(s *steps.Step) { s.Again = true }))
	w.renew("r1", object{"token": lease.body["token"]})
	check("a renewal", of(steps.Renew, func(*steps.Step) {}))
	w.release("r1", object{"token": lease.body["token"], "outcome": "Succeeded"})
	check("a release", of(steps.Release, func(s *steps.Step) { s.Outcome = router.Succeeded }))
	w.acquire("r1", "s1", object{"waitSeconds": 5})
	check("a refusal after its end", of(steps.Acquire, func(s *steps.Step) {
		s.Reason, s.WaitBegan, s.Backend, s.Incarnation, s.Term = router.ReasonLeaseEnded, w.clock(), "", "", 0
	}))
	w.renew("r1", object{"token": "stranger"})
	check("a token that is none", steps.Step{Kind: steps.Renew, Pool: w.key, Request: "r1", Reason: router.ReasonTokenInvalid, Began: w.clock(), Ended: w.clock()})
}

func TestACallersTraceContextIsHandedOn(t *testing.T) {
	d := &diary{}
	w := newWorld(t, 1, func(c *Config, _ *router.Fleet) { c.Observer = d })
	req, err := http.NewRequestWithContext(t.Context(), http.MethodDelete, w.pool, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set(steps.TraceHeader, "mine")
	if s := w.server.begin(steps.Acquire, req, &call{pool: w.key}); s.Traceparent != "mine" {
		t.Errorf("the step says %q", s.Traceparent)
	}
}

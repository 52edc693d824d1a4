package server

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/berthmaster/berthmaster/internal/router"
)

// NeMo-RL#3471: requests to a dead endpoint were retried without bound.
func TestWithoutAdmissibleBackendThereIsOneTypedAnswer(t *testing.T) {
	w := newWorld(t, 2)
	for _, m := range w.fleet.Members {
		w.observe(m.Incarnation, router.Refused)
	}
	for range 3 {
		r := w.acquire("r1", "s1")
		want(t, r, http.StatusServiceUnavailable, "NoBackend")
		if r.header.Get("Retry-After") == "" {
			t.Error("no Retry-After")
		}
	}
	if v := w.snapshot(); v.Requests != 0 || v.Sessions != 0 {
		t.Errorf("%d requests, %d sessions are kept", v.Requests, v.Sessions)
	}
}

// AReaL#1847 (review): finished requests were never deleted.
func TestFinishedRequestsAreForgotten(t *testing.T) {
	w := newWorld(t, 2, func(_ *Config, f *router.Fleet) { f.Config.Retention, f.Config.IdleTimeout = time.Second, time.Second })
	for i := range 600 {
		w.visit(fmt.Sprint("r", i))
		w.sleep(20 * time.Millisecond)
	}
	if v := w.snapshot(); v.Requests > 60 || v.Sessions > 60 {
		t.Errorf("%d requests and %d sessions are kept", v.Requests, v.Sessions)
	}
}

// sglang#25811, #13894: 400s of too long a context and 429 or 503 of full queues opened every
// circuit breaker.
func TestRejectionsHarmNoBackend(t *testing.T) {
	w := newWorld(t, 4)
	for i := range 200 {
		id := fmt.Sprint("r", i)
		token := w.lease(id, "s-"+id).text("token")
		w.release(id, object{"token": token, "outcome": "Rejected"})
	}
	v := w.snapshot()
	for _, b := range v.Backends {
		if !b.Admissible || b.Outstanding != 0 {
			t.Errorf("%s: %s, counts %d", b.Name, b.Reason, b.Outstanding)
		}
	}
	if v.Failure != nil {
		t.Error("the pool has failed")
	}
}

// miles#1724, #1805: a recovered engine took traffic with old weights.
func TestARecoveredBackendServesOnlyOnceItsVersionIsConfirmed(t *testing.T) {
	w := newWorld(t, 4, func(_ *Config, f *router.Fleet) { f.Published = "v7" })
	w.change(func(f *router.Fleet) { f.Members[0].Incarnation = "pod-0b/c-1" })
	w.seq++
	w.table.Observe(router.Observation{Incarnation: "pod-0b/c-1", Seq: w.seq, Health: router.Healthy, Version: "default"}, w.clock())
	for i := range 500 {
		if got := w.visit(fmt.Sprint("r", i)); got == "b0" {
			t.Fatalf("session %d of 500 went to old weights", i)
		}
	}
	w.publish("v8")
	w.healthy()
	got := map[string]int{}
	for i := range 40 {
		r := w.lease(fmt.Sprint("n", i), fmt.Sprint("sn", i))
		got[r.text("backend", "name")]++
		if r.text("weightVersion") != "v8" {
			t.Fatal(r.raw)
		}
	}
	if got["b0"] != 10 {
		t.Errorf("its share: %v", got)
	}
}

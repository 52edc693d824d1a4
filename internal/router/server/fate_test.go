package server

import (
	"context"
	"net/http"
	"testing"
	"time"

	"github.com/berthmaster/berthmaster/internal/router"
)

// settle plays the settler: it aborts what is due and shows empty load snapshots until n
// executions have died.
func (w *world) settle(n int64) {
	w.t.Helper()
	reading := 0.0
	eventually(w.t, "the engine is proven quiet", func() bool {
		w.sleep(time.Second)
		for _, c := range w.table.Chores(w.clock()) {
			w.table.AbortAnswered(c.Incarnation, c.Abort, w.clock())
			reading++
			if c.ReadLoads {
				w.table.LoadsRead(c.Incarnation, c.Stamp, []router.RankLoad{{Rank: 0, Clock: reading}}, w.clock())
			}
		}
		return w.snapshot().Totals.Dead == n
	})
}

func TestAnAmbiguousReleaseIsAnsweredOnceTheExecutionIsDead(t *testing.T) {
	w := newWorld(t, 4)
	token := w.lease("r1", "s1").text("token")
	body := object{"token": token, "outcome": "Ambiguous"}
	first := w.startCall(t.Context(), w.pool+"/leases/r1/release", body)
	second := w.startCall(t.Context(), w.pool+"/leases/r1/release", body)
	eventually(t, "the outcome is known", func() bool { return w.snapshot().Totals.Released[router.Ambiguous] == 1 })
	select {
	case r := <-first:
		t.Fatalf("answered before anything is certain: %s", r.raw)
	case r := <-second:
		t.Fatalf("answered before anything is certain: %s", r.raw)
	default:
	}
	w.settle(1)
	for _, c := range []<-chan reply{first, second} {
		if r := <-c; r.status != http.StatusOK || r.text("fate") != "Dead" || r.text("outcome") != "Ambiguous" {
			t.Errorf("%d %s", r.status, r.raw)
		}
	}
	late := w.acquire("r1", "s1")
	want(t, late, http.StatusConflict, "LeaseEnded")
	if late.text("outcome") != "Ambiguous" || late.text("fate") != "Dead" {
		t.Error(late.raw)
	}
}

func TestAFailureIsAnsweredOnlyOnceItIsInStatus(t *testing.T) {
	for fate, c := range map[string]struct {
		mode   router.Ambiguity
		record func(*world)
	}{
		"Failed":   {router.FailPool, func(w *world) { w.table.FailureRecorded("r1", w.clock()) }},
		"Isolated": {router.IsolateBackend, func(w *world) { w.table.IsolationRecorded("pod-0/c-1", w.clock()) }},
	} {
		t.Run(fate, func(t *testing.T) {
			w := newWorld(t, 1)
			w.change(func(f *router.Fleet) { f.Config.Certainty, f.Config.OnAmbiguous = 0, c.mode })
			token := w.lease("r1", "s1").text("token")
			got := w.startCall(t.Context(), w.pool+"/leases/r1/release", object{"token": token, "outcome": "Ambiguous"})
			eventually(t, "the outcome is known", func() bool { return w.snapshot().Totals.Released[router.Ambiguous] == 1 })
			select {
			case r := <-got:
				t.Fatalf("answered before status says so: %s", r.raw)
			default:
			}
			c.record(w)
			if r := <-got; r.status != http.StatusOK || r.text("fate") != fate {
				t.Fatalf("%d %s", r.status, r.raw)
			}
		})
	}
}

func TestACallerThatHungUpReleasesAgain(t *testing.T) {
	w := newWorld(t, 4)
	token := w.lease("r1", "s1").text("token")
	body := object{"token": token, "outcome": "Ambiguous"}
	ctx, hangUp := context.WithCancel(t.Context())
	first := w.startCall(ctx, w.pool+"/leases/r1/release", body)
	eventually(t, "the outcome is known", func() bool { return w.snapshot().Totals.Released[router.Ambiguous] == 1 })
	hangUp()
	<-first
	w.settle(1)
	if r := w.release("r1", body); r.status != http.StatusOK || r.text("fate") != "Dead" {
		t.Fatal(r.raw)
	}
}

func TestAnAmbiguousReleaseWithoutRoomToWaitIsRecorded(t *testing.T) {
	w := limited(t, func(l *Limits) { l.WaitersPerPool = 1 })
	a, b := w.lease("r1", "s1").text("token"), w.lease("r2", "s2").text("token")
	first := w.startCall(t.Context(), w.pool+"/leases/r1/release", object{"token": a, "outcome": "Ambiguous"})
	eventually(t, "the first waits", func() bool { return w.server.waiters.size() == 1 })
	r := w.release("r2", object{"token": b, "outcome": "Ambiguous"})
	want(t, r, http.StatusTooManyRequests, "Contended")
	if n := w.snapshot().Totals.Released[router.Ambiguous]; n != 2 {
		t.Errorf("%d recorded", n)
	}
	w.table.Gone([]router.Incarnation{"pod-0/c-1"}, w.clock())
	if r := <-first; r.text("fate") != "Dead" {
		t.Error(r.raw)
	}
	if r := w.release("r2", object{"token": b, "outcome": "Ambiguous"}); r.text("fate") != "Dead" {
		t.Error(r.raw)
	}
}

package server

import (
	"context"
	"fmt"
	"net/http"
	"testing"

	"github.com/berthmaster/berthmaster/internal/router"
)

// start makes an acquire in the background; a call that the client gives up yields status 0.
func (w *world) start(ctx context.Context, body object) <-chan reply {
	return w.startCall(ctx, w.pool+"/leases", body)
}

func (w *world) startCall(ctx context.Context, url string, body object) <-chan reply {
	out := make(chan reply, 1)
	go func() {
		r, err := w.try(ctx, http.MethodPost, url, body)
		if err != nil {
			r = reply{raw: err.Error()}
		}
		out <- r
	}()
	return out
}

// waiting waits until n acquires wait in the pool.
func (w *world) waiting(n int) {
	w.t.Helper()
	eventually(w.t, fmt.Sprint(n, " acquires wait"), func() bool { return w.snapshot().Waiting == n })
}

var patient = object{"waitSeconds": 600}

func TestAWaitingAcquireIsWokenBy(t *testing.T) {
	for name, c := range map[string]struct{ close, open func(*world) }{
		"the sender's opening": {
			func(w *world) { w.change(fenceTrain) },
			func(w *world) { w.change(func(f *router.Fleet) { f.Senders[0].Access = router.AccessOpen }) },
		},
		"leasing's opening": {
			func(w *world) { w.change(func(f *router.Fleet) { f.Leasing = router.LeasingHeld }) },
			func(w *world) { w.change(func(f *router.Fleet) { f.Leasing = router.LeasingOpen }) },
		},
		"a backend that recovers": {
			func(w *world) { w.observe("pod-0/c-1", router.Unhealthy) },
			func(w *world) { w.healthy() },
		},
		"a place that is freed": {
			func(w *world) {
				w.change(func(f *router.Fleet) { f.Config.AdmissionPercent = 100 })
				w.lease("full", "s-full", object{"executions": 64})
			},
			func(w *world) {
				w.release("full", object{"outcome": "NotSent", "sessionID": "s-full", "sender": "train", "senderGeneration": 3, "epoch": 1, "executions": 64})
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, 1)
			c.close(w)
			got := w.start(t.Context(), ask("r1", "s1", patient))
			w.waiting(1)
			c.open(w)
			if r := <-got; r.status != http.StatusCreated {
				t.Fatalf("%d %s", r.status, r.raw)
			}
		})
	}
}

func TestWaitersAreServedInTheOrderTheyCame(t *testing.T) {
	w := newWorld(t, 1)
	w.change(func(f *router.Fleet) { f.Config.AdmissionPercent = 100 })
	full := w.lease("full", "s-full", object{"executions": 64}).text("token")
	var got []<-chan reply
	for i := range 3 {
		got = append(got, w.start(t.Context(), ask(fmt.Sprint("r", i), fmt.Sprint("s", i), patient, object{"executions": 64})))
		w.waiting(i + 1)
	}
	w.release("full", object{"token": full, "outcome": "Succeeded"})
	for i, c := range got {
		r := <-c
		if r.status != http.StatusCreated {
			t.Fatalf("r%d: %d %s", i, r.status, r.raw)
		}
		w.waiting(2 - i)
		w.release(fmt.Sprint("r", i), object{"token": r.text("token"), "outcome": "Succeeded"})
	}
}

func TestWaitingEndsWithTheRefusalThatStands(t *testing.T) {
	w := newWorld(t, 1)
	w.change(fenceTrain)
	r := w.acquire("r1", "s1", object{"waitSeconds": 1})
	want(t, r, http.StatusLocked, "SenderFenced")
	if v := w.snapshot(); v.Waiting != 0 || v.Requests != 0 {
		t.Errorf("%d wait, %d records", v.Waiting, v.Requests)
	}
}

func TestAWaiterIsRefusedForGoodBy(t *testing.T) {
	for name, c := range map[string]struct {
		reason string
		act    func(*world)
	}{
		"a raised epoch":      {"StaleEpoch", func(w *world) { w.change(func(f *router.Fleet) { f.Epoch = 2 }) }},
		"a raised generation": {"StaleGeneration", func(w *world) { w.change(func(f *router.Fleet) { f.Senders[0].MinGeneration = 4 }) }},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, 1)
			w.change(fenceTrain)
			got := w.start(t.Context(), ask("r1", "s1", patient))
			w.waiting(1)
			c.act(w)
			want(t, <-got, http.StatusConflict, c.reason)
		})
	}
}

func TestAClientThatGoesAwayLeavesNoTrace(t *testing.T) {
	w := newWorld(t, 1)
	w.change(fenceTrain)
	ctx, hangUp := context.WithCancel(t.Context())
	got := w.start(ctx, ask("r1", "s1", patient))
	w.waiting(1)
	hangUp()
	<-got
	w.waiting(0)
	w.change(func(f *router.Fleet) { f.Senders[0].Access = router.AccessOpen })
	if v := w.snapshot(); v.Requests != 0 || v.Sessions != 0 || v.Totals.Grants != 0 {
		t.Errorf("%d requests, %d sessions, %d grants", v.Requests, v.Sessions, v.Totals.Grants)
	}
	eventually(t, "its place is free", func() bool { return w.server.waiters.size() == 0 })
}

func TestAPoolDeletedWhileClientsWaitAnswersPoolNotFound(t *testing.T) {
	w := newWorld(t, 1)
	token := w.lease("doubtful", "s0").text("token")
	released := w.startCall(t.Context(), w.pool+"/leases/doubtful/release", object{"token": token, "outcome": "Ambiguous"})
	eventually(t, "the release waits", func() bool { return w.snapshot().Backends[0].Held == 1 })
	w.change(fenceTrain)
	acquired := w.start(t.Context(), ask("r1", "s1", patient))
	w.waiting(1)
	w.pools.Remove(w.key, w.table)
	want(t, <-acquired, http.StatusNotFound, "PoolNotFound")
	want(t, <-released, http.StatusNotFound, "PoolNotFound")
	want(t, w.acquire("r2", "s2"), http.StatusNotFound, "PoolNotFound")
}

// A router that finds a later term than its own begins with a table that knows nothing: the pool is
// there as before, and another router may have it.
func TestAPoolWhoseTableIsBegunAnewIsNotCalledGone(t *testing.T) {
	w := newWorld(t, 1, swift)
	token := w.lease("doubtful", "s0").text("token")
	released := w.startCall(t.Context(), w.pool+"/leases/doubtful/release", object{"token": token, "outcome": "Ambiguous"})
	eventually(t, "the release waits", func() bool { return w.snapshot().Backends[0].Held == 1 })
	w.change(fenceTrain)
	acquired := w.start(t.Context(), ask("r1", "s1", patient))
	w.waiting(1)
	watched := w.watch("")
	watched.next("State")
	w.pools.Put(w.key, router.NewTable(w.snapshot().Pool, nil, w.clock()))
	want(t, <-acquired, http.StatusServiceUnavailable, "NoLeader")
	want(t, <-released, http.StatusServiceUnavailable, "NoLeader")
	if e, ok := watched.read(); ok {
		t.Errorf("the watch goes on with %q", e.name)
	}
}

func TestShutdownAnswersThoseWhoWait(t *testing.T) {
	w := newWorld(t, 1)
	token := w.lease("doubtful", "s0").text("token")
	released := w.startCall(t.Context(), w.pool+"/leases/doubtful/release", object{"token": token, "outcome": "Ambiguous"})
	eventually(t, "the release waits", func() bool { return w.snapshot().Backends[0].Held == 1 })
	w.change(fenceTrain)
	acquired := w.start(t.Context(), ask("r1", "s1", patient))
	w.waiting(1)
	if err := w.stop(); err != nil {
		t.Fatal(err)
	}
	for _, c := range []<-chan reply{acquired, released} {
		r := <-c
		want(t, r, http.StatusServiceUnavailable, "NoLeader")
		if r.header.Get("Retry-After") == "" {
			t.Error("no Retry-After")
		}
	}
	if v := w.snapshot(); v.Waiting != 0 {
		t.Errorf("%d wait", v.Waiting)
	}
}

func TestTwoWhoWaitUnderOneIDShareTheGrant(t *testing.T) {
	w := newWorld(t, 4)
	w.change(fenceTrain)
	first := w.start(t.Context(), ask("r1", "s1", patient))
	w.waiting(1)
	second := w.start(t.Context(), ask("r1", "s1", patient))
	w.waiting(2)
	w.change(func(f *router.Fleet) { f.Senders[0].Access = router.AccessOpen })
	a, b := <-first, <-second
	if a.text("rid") == "" || a.text("rid") != b.text("rid") || a.status+b.status != http.StatusOK+http.StatusCreated {
		t.Errorf("%d %s\n%d %s", a.status, a.raw, b.status, b.raw)
	}
	if n := w.outstanding(); n != 1 {
		t.Errorf("%d counted", n)
	}
}

func TestAPoolFullOfWaitersTakesNothingFromAnother(t *testing.T) {
	w := limited(t, func(l *Limits) { l.WaitersPerPool = 8 })
	calm := router.NewTable("uid-2", nil, w.clock())
	calm.Lead(1, router.Takeover{}, w.clock())
	if err := calm.Apply(w.fleet, w.clock()); err != nil {
		t.Fatal(err)
	}
	calm.Observe(router.Observation{Incarnation: "pod-0/c-1", Seq: 1, Health: router.Healthy, EngineTotal: -1}, w.clock())
	w.pools.Put(router.PoolKey{Namespace: "rl", Name: "calm"}, calm)
	w.change(fenceTrain)
	var stuck []<-chan reply
	for i := range 8 {
		stuck = append(stuck, w.start(t.Context(), ask(fmt.Sprint("r", i), fmt.Sprint("s", i), patient)))
	}
	w.waiting(8)
	other := w.base + "/v1alpha1/namespaces/rl/inferencepools/calm/leases"
	for i := range 20 {
		r := w.do(http.MethodPost, other, ask(fmt.Sprint("r", i), fmt.Sprint("s", i), patient))
		if r.status != http.StatusCreated {
			t.Fatalf("%d %s", r.status, r.raw)
		}
	}
	w.change(func(f *router.Fleet) { f.Senders[0].Access = router.AccessOpen })
	for _, c := range stuck {
		if r := <-c; r.status != http.StatusCreated {
			t.Errorf("%d %s", r.status, r.raw)
		}
	}
}

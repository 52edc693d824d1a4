package router_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/berthmaster/berthmaster/internal/router"
	"github.com/berthmaster/berthmaster/internal/router/routertest"
)

func TestEachWaitIsCountedOnceByHowItEndedAndHowLongItTook(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := routertest.New(t, routertest.Backends("a"), routertest.Capacities(1), routertest.With(func(c *router.Config) { c.AdmissionPercent = 100 }))
		held := p.Acquire("h", "h")
		w := newWaiters(p)
		hangUp := w.wait(p.Request("gone", "gone"))
		defer w.wait(p.Request("served", "served"))()
		defer w.wait(p.Request("refused", "refused"))()
		p.Pass(20 * time.Second)
		if want := []router.QueueSnapshot{{Sender: "train", Waiting: 3, Longest: 20 * time.Second}}; !cmp.Equal(p.Snapshot().Queues, want) {
			t.Errorf("queues %+v, want %+v", p.Snapshot().Queues, want)
		}
		hangUp()
		w.expect(t)
		p.Pass(20 * time.Second)
		p.Release(held, router.Succeeded)
		w.expect(t, "served")
		p.Change(func(f *router.Fleet) { f.Epoch++ })
		w.expect(t, "served")

		got := p.Snapshot()
		want := map[router.WaitEnd]router.Waits{
			router.WaitAbandoned: waited(20 * time.Second), router.WaitGranted: waited(40 * time.Second), router.WaitRefused: waited(40 * time.Second),
		}
		if diff := cmp.Diff(want, got.Totals.Waits); diff != "" || got.Queues != nil {
			t.Errorf("waits (-want +got):\n%s\nqueues %+v, want none", diff, got.Queues)
		}
	})
}

// waited is the count of one wait of d: in the first class whose bound it does not exceed.
func waited(d time.Duration) router.Waits {
	w := router.Waits{Sum: d}
	class := 0
	for _, bound := range router.WaitBounds() {
		if d > bound {
			class++
		}
	}
	w.Counts[class] = 1
	return w
}

package server

import (
	"net/http"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/berthmaster/berthmaster/internal/router"
)

// glance looks once at every pool that nobody watches, as Chronicle does from time to time.
func (w *world) glance() {
	w.server.feeds.keepAll()
	w.server.feeds.glance(w.pools.All())
}

// lately is what GET recent says, without epochs, terms and incarnations.
func (w *world) lately() (out []object) {
	w.t.Helper()
	for _, one := range w.do(http.MethodGet, w.pool+"/recent", nil).body["happenings"].([]any) {
		h := one.(object)
		delete(h, "epoch")
		delete(h, "term")
		if b, ok := h["backend"].(object); ok {
			h["backend"] = b["name"]
		}
		out = append(out, h)
	}
	return out
}

func TestWhatHappenedUnwatchedIsToldToWhoComesLater(t *testing.T) {
	w := newWorld(t, 2)
	w.glance()
	at := func(d time.Duration) string { return time.Unix(1_700_000_000, 0).Add(d).Format(time.RFC3339) }
	w.sleep(time.Minute)
	w.change(func(f *router.Fleet) { f.Members[0].Drain, f.Published = router.DrainMove, "step-1" })
	w.glance()
	w.sleep(time.Minute)
	w.change(func(f *router.Fleet) { f.Members[0].Drain = router.NotDraining })
	w.healthy()
	w.glance()
	w.glance() // nothing has changed, and nothing is told twice
	want := []object{
		{"time": at(time.Minute), "type": "VersionPublished", "publishedVersion": "step-1"},
		{"time": at(time.Minute), "type": "BackendClosed", "backend": "b0", "reason": "Drained"},
		{"time": at(time.Minute), "type": "BackendClosed", "backend": "b1", "reason": "VersionStale"},
		{"time": at(2 * time.Minute), "type": "BackendOpened", "backend": "b0"},
		{"time": at(2 * time.Minute), "type": "BackendOpened", "backend": "b1"},
	}
	got := w.lately()
	for _, h := range got {
		if when, err := time.Parse(time.RFC3339, h["time"].(string)); err == nil {
			h["time"] = when.Format(time.RFC3339)
		}
		if h["reason"] == "VersionUnconfirmed" {
			h["reason"] = "VersionStale" // either forbids new sessions; which it is depends on what was read
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestANewLeadersFleetIsNoNewsAndItsTermIs(t *testing.T) {
	w := newWorld(t, 1, swift)
	fresh := router.NewTable("uid-2", nil, w.clock())
	other := router.PoolKey{Namespace: "rl", Name: "other"}
	w.pools.Put(other, fresh)
	w.glance()
	f := w.server.feeds.byPool[fresh]
	_, n, more := f.state()
	fresh.Lead(7, router.Takeover{}, w.clock())
	if err := fresh.Apply(w.fleet, w.clock()); err != nil {
		t.Fatal(err)
	}
	w.glance()
	list := f.happened()
	if len(list) != 1 || list[0].Type != eventTermBegan || list[0].Term != 7 {
		t.Errorf("remembered: %+v", list)
	}
	select {
	case <-more:
	default:
		t.Error("those who watch are not woken")
	}
	if news, _, ok := f.after(n); ok {
		t.Errorf("those who watch are told %+v, and not the whole state", news)
	}
}

func TestBackendsThatChangeTogetherAreToldAsOne(t *testing.T) {
	w := newWorld(t, mostBackends+1)
	w.glance()
	w.change(func(f *router.Fleet) {
		for i := range f.Members {
			f.Members[i].Drain = router.DrainMove
		}
	})
	w.glance()
	got := w.lately()
	if len(got) != 1 || got[0]["type"] != "BackendsChanged" || got[0]["count"] != float64(mostBackends+1) {
		t.Errorf("%v", got)
	}
}

func TestTheRecentHistoryIsBounded(t *testing.T) {
	w := newWorld(t, 1)
	w.glance()
	for i := range 2 * recentHistory {
		w.change(func(f *router.Fleet) { f.Members[0].Drain = []router.Drain{router.DrainMove, router.NotDraining}[i%2] })
		w.glance()
	}
	got := w.lately()
	if len(got) != recentHistory || got[recentHistory-1]["type"] != "BackendOpened" {
		t.Errorf("%d happenings, the last %v", len(got), got[len(got)-1])
	}
}

func TestAPoolIsRememberedAfterItsWatchersLeftAndForgottenOnceItIsGone(t *testing.T) {
	w := newWorld(t, 1, swift, func(c *Config, _ *router.Fleet) { c.Limits.WatchLinger = time.Millisecond })
	w.glance()
	s := w.watch("")
	s.next("State")
	s.close()
	kept := func() (feeds, followed int) {
		w.server.feeds.mu.Lock()
		defer w.server.feeds.mu.Unlock()
		for _, f := range w.server.feeds.byPool {
			feeds++
			if f.followed {
				followed++
			}
		}
		return feeds, followed
	}
	eventually(t, "nobody follows it", func() bool { _, followed := kept(); return followed == 0 })
	if feeds, _ := kept(); feeds != 1 {
		t.Errorf("%d feeds are kept", feeds)
	}
	w.pools.Remove(w.key, w.table)
	w.glance()
	if feeds, _ := kept(); feeds != 0 {
		t.Errorf("%d feeds are kept of pools that are gone", feeds)
	}
}

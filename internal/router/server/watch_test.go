package server

import (
	"bufio"
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/berthmaster/berthmaster/internal/router"
)

// watched is a watch stream under test.
type watched struct {
	t      *testing.T
	lines  *bufio.Scanner
	close  func()
	lastID string
}

// told is one event as a client reads it.
type told struct {
	id, name string
	data     object
}

// watch opens a stream; lastID empty: from the state.
func (w *world) watch(lastID string) *watched {
	w.t.Helper()
	return w.watchBy("/watch", lastID)
}

// watchBy is watch under a path with a query.
func (w *world) watchBy(path, lastID string) *watched {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), patience)
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, w.pool+path, nil)
	if err != nil {
		w.t.Fatal(err)
	}
	if lastID != "" {
		req.Header.Set("Last-Event-ID", lastID)
	}
	res, err := w.client.Do(req)
	if err != nil {
		w.t.Fatal(err)
	}
	out := &watched{t: w.t, lines: bufio.NewScanner(res.Body), close: func() { cancel(); res.Body.Close() }}
	w.t.Cleanup(out.close)
	if ct := res.Header.Get("Content-Type"); res.StatusCode != http.StatusOK || ct != "text/event-stream" {
		w.t.Fatal(res.Status, ct)
	}
	return out
}

// read returns the next event, or the next comment as its name.
func (v *watched) read() (told, bool) {
	var e told
	for v.lines.Scan() {
		field, value, _ := strings.Cut(v.lines.Text(), ": ")
		switch {
		case v.lines.Text() == "" && (e.data != nil || e.name != ""):
			return e, true
		case field == "":
			e.name = ": " + value
		case field == "id":
			e.id, v.lastID = value, value
		case field == "event":
			e.name = value
		case field == "data":
			if err := json.Unmarshal([]byte(value), &e.data); err != nil {
				v.t.Fatalf("%q: %v", value, err)
			}
			if err := theContract(v.t).schema("Event", []byte(value)); err != nil {
				v.t.Fatalf("%s: not as docs/openapi.yaml says: %v", value, err)
			}
		}
	}
	return e, false
}

// next demands an event of that name next.
func (v *watched) next(name string) told {
	v.t.Helper()
	e, ok := v.read()
	if !ok || e.name != name || e.id == "" || e.data["type"] != name {
		v.t.Fatalf("got %q (%v), want %s: %v", e.name, ok, name, v.lines.Err())
	}
	return e
}

func swift(c *Config, _ *router.Fleet) { c.Limits.WatchPeriod = time.Millisecond }

func TestWatchTells(t *testing.T) {
	for name, c := range map[string]struct {
		before, act func(*world)
		event       string
		more        object
	}{
		"a published version": {nil, func(w *world) {
			w.change(func(f *router.Fleet) { f.Published = "step-42" })
		}, "VersionPublished", object{"publishedVersion": "step-42"}},
		"leasing held, once nothing is counted": {func(w *world) {
			w.lease("r1", "s1")
			w.change(func(f *router.Fleet) { f.Leasing = router.LeasingHeld })
		}, func(w *world) {
			w.table.Gone([]router.Incarnation{w.home("s1")}, w.clock())
		}, "Held", nil},
		"leasing opened": {func(w *world) {
			w.change(func(f *router.Fleet) { f.Leasing = router.LeasingHeld })
		}, func(w *world) {
			w.change(func(f *router.Fleet) { f.Leasing = router.LeasingOpen })
		}, "Opened", object{"sender": nil}},
		"a sender fenced, once nothing of it is counted": {func(w *world) {
			w.lease("r1", "s1")
			w.lease("r2", "s2", object{"sender": "eval"})
			w.change(fenceTrain)
		}, func(w *world) {
			w.release("r1", object{"outcome": "NotSent", "sessionID": "s1", "sender": "train", "senderGeneration": 3, "epoch": 1})
		}, "Fenced", object{"sender": "train"}},
		"a sender opened": {func(w *world) { w.change(fenceTrain) }, func(w *world) {
			w.change(func(f *router.Fleet) { f.Senders[0].Access = router.AccessOpen })
		}, "Opened", object{"sender": "train"}},
		"a failure that is in status": {nil, func(w *world) { w.fail() }, "Failed", nil},
		"an epoch raised":             {nil, func(w *world) { w.change(func(f *router.Fleet) { f.Epoch = 2 }) }, "EpochRaised", object{"epoch": 2.0}},
		"a backend whose process ended": {nil, func(w *world) {
			w.table.Gone([]router.Incarnation{"pod-1/c-1"}, w.clock())
		}, "BackendGone", object{"backend": object{"name": "b1", "incarnation": "pod-1/c-1"}}},
		"a backend that left the pool": {nil, func(w *world) {
			w.change(func(f *router.Fleet) { f.Members = f.Members[:1] })
		}, "BackendGone", object{"backend": object{"name": "b1", "incarnation": "pod-1/c-1"}}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, 2, swift)
			if c.before != nil {
				c.before(w)
			}
			s := w.watch("")
			state := s.next("State")
			if backends, _ := state.data["state"].(object)["backends"].([]any); len(backends) != 2 {
				t.Errorf("State shows %v", state.data)
			}
			c.act(w)
			e, ok := s.read()
			for ok && e.name != c.event { // an act may cause more than one event
				e, ok = s.read()
			}
			if !ok {
				t.Fatal("the stream ended")
			}
			for k, v := range c.more {
				if diff := cmp.Diff(v, e.data[k]); diff != "" {
					t.Errorf("%s: %s", k, diff)
				}
			}
		})
	}
}

func (w *world) home(id router.SessionID) router.Incarnation {
	w.t.Helper()
	v, err := w.table.Session(id)
	if err != nil {
		w.t.Fatal(err)
	}
	return v.Incarnation
}

func TestWatchDoesNotTellOfAFailureBeforeItIsInStatus(t *testing.T) {
	before := router.Snapshot{Epoch: 1}
	unrecorded := router.Snapshot{Epoch: 1, Failure: &router.Failure{Request: "r1"}}
	if news := changesBetween(&before, &unrecorded); len(news) != 0 {
		t.Errorf("%+v", news)
	}
	recorded := router.Snapshot{Epoch: 1, Failure: &router.Failure{Request: "r1", Recorded: true}}
	if news := changesBetween(&unrecorded, &recorded); len(news) != 1 || news[0].Type != eventFailed {
		t.Errorf("%+v", news)
	}
	if news := changesBetween(&recorded, &recorded); len(news) != 0 {
		t.Errorf("told twice: %+v", news)
	}
}

func TestWatchResumesAfterTheLastEventSeen(t *testing.T) {
	w := newWorld(t, 2, swift)
	first := w.watch("")
	first.next("State")
	w.publish("v1")
	if e := first.next("VersionPublished"); e.data["publishedVersion"] != "v1" {
		t.Fatal(e)
	}
	seen := first.lastID
	first.close()
	beside := w.watch("") // somebody who sees the next events happen, one by one
	beside.next("State")
	for _, v := range []router.Version{"v2", "v3"} {
		w.publish(v)
		beside.next("VersionPublished")
	}
	again := w.watch(seen)
	for _, want := range []string{"v2", "v3"} {
		if e := again.next("VersionPublished"); e.data["publishedVersion"] != want {
			t.Fatalf("got %v, want %s", e.data, want)
		}
	}
}

func (w *world) publish(v router.Version) {
	w.t.Helper()
	w.change(func(f *router.Fleet) { f.Published = v })
}

func TestWatchBeginsWithTheStateWhereTheLastEventIsNotKnown(t *testing.T) {
	w := newWorld(t, 1, swift, func(c *Config, _ *router.Fleet) { c.Limits.WatchHistory = 2 })
	s := w.watch("")
	s.next("State")
	first := s.lastID
	for _, v := range []router.Version{"v1", "v2", "v3"} {
		w.publish(v)
		s.next("VersionPublished")
	}
	for name, id := range map[string]string{
		"it has fallen out of the history": first,
		"it is of another life":            "abc-1",
		"it is yet to come":                first[:strings.IndexByte(first, '-')] + "-99",
		"it is none":                       "7",
	} {
		t.Run(name, func(t *testing.T) {
			s := w.watch(id)
			if e := s.next("State"); e.data["state"].(object)["publishedVersion"] != "v3" {
				t.Error(e.data)
			}
			s.close()
		})
	}
}

func TestWatchBeatsWhileNothingHappens(t *testing.T) {
	w := newWorld(t, 1, swift, func(c *Config, _ *router.Fleet) { c.Limits.Heartbeat = time.Millisecond })
	s := w.watch("")
	s.next("State")
	for range 2 {
		if e, ok := s.read(); !ok || e.name != ": heartbeat" {
			t.Fatalf("%q", e.name)
		}
	}
}

func TestWatchEndsWithThePool(t *testing.T) {
	w := newWorld(t, 1, swift)
	s := w.watch("")
	s.next("State")
	w.pools.Remove(w.key, w.table)
	s.next("PoolGone")
	if e, ok := s.read(); ok {
		t.Errorf("goes on with %q", e.name)
	}
}

func TestWatchEndsWithTheServer(t *testing.T) {
	w := newWorld(t, 1, swift)
	s := w.watch("")
	s.next("State")
	if err := w.stop(); err != nil {
		t.Fatal(err)
	}
	if e, ok := s.read(); ok {
		t.Errorf("goes on with %q", e.name)
	}
	if _, _, ok := w.server.feeds.join(w.table); ok {
		t.Error("a closed server begins to watch")
	}
}

func TestAPoolIsNotLookedAtLongAfterItsLastWatcherLeft(t *testing.T) {
	w := newWorld(t, 1, swift, func(c *Config, _ *router.Fleet) { c.Limits.WatchLinger = time.Millisecond })
	s := w.watch("")
	s.next("State")
	s.close()
	eventually(t, "the feed is forgotten", func() bool {
		w.server.feeds.mu.Lock()
		defer w.server.feeds.mu.Unlock()
		return len(w.server.feeds.byPool) == 0
	})
}

package server

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berthmaster/berthmaster/internal/router"
)

// only lets callers look at one pool.
type only struct{ pool router.PoolKey }

func (o only) Authorize(_ *http.Request, pool router.PoolKey, _ router.SenderName) error {
	if pool != o.pool {
		return &router.Refusal{Reason: ReasonForbidden}
	}
	return nil
}

func (o only) Authenticate(*http.Request) error { return nil }

func TestTheListNamesThePoolsThatTheCallerMayLookAtInOrder(t *testing.T) {
	named := func(names ...string) object {
		pools := []any{}
		for _, name := range names {
			pools = append(pools, object{"namespace": "rl", "name": name})
		}
		return object{"pools": pools}
	}
	for name, c := range map[string]struct {
		guard  Authorizer
		status int
		want   object
	}{
		"no authorizer: all":      {nil, http.StatusOK, named("another", "policy")},
		"one is allowed":          {only{router.PoolKey{Namespace: "rl", Name: "policy"}}, http.StatusOK, named("policy")},
		"none is: the reason why": {only{}, http.StatusForbidden, nil},
	} {
		w := newWorld(t, 1, func(config *Config, _ *router.Fleet) { config.Authorizer = c.guard })
		w.pools.Put(router.PoolKey{Namespace: "rl", Name: "another"}, router.NewTable("uid-2", nil, w.clock()))
		r := w.do(http.MethodGet, w.base+listPath, nil)
		if diff := cmp.Diff(c.want, r.body); r.status != c.status || c.want != nil && diff != "" {
			t.Errorf("%s: %d\n%s", name, r.status, diff)
		}
	}
}

func TestAPlaceWithoutPoolsIsAnEmptyListAndIsOnlyRead(t *testing.T) {
	w := newWorld(t, 1)
	w.pools.Remove(w.key, w.table)
	if r := w.do(http.MethodGet, w.base+listPath, nil); r.status != http.StatusOK || !cmp.Equal(r.body, object{"pools": []any{}}) {
		t.Errorf("%d %v, want an empty list", r.status, r.body)
	}
	if r := w.do(http.MethodPost, w.base+listPath, object{}); r.status != http.StatusMethodNotAllowed || r.header.Get("Allow") != http.MethodGet {
		t.Errorf("%d, Allow %q", r.status, r.header.Get("Allow"))
	}
}

func TestStrangersAreNotToldThatThereIsNoPool(t *testing.T) {
	w := newWorld(t, 1, func(c *Config, _ *router.Fleet) { c.Authorizer = &gate{} })
	w.pools.Remove(w.key, w.table)
	for caller, status := range map[string]int{"": http.StatusUnauthorized, "made-up": http.StatusUnauthorized, "trainer": http.StatusOK} {
		if r := w.as(caller, http.MethodGet, w.base+listPath, nil); r.status != status {
			t.Errorf("%q: %d %v, want %d", caller, r.status, r.body, status)
		}
	}
}

func TestAWatcherThatAsksIsToldTheStateAgainAndAgain(t *testing.T) {
	w := newWorld(t, 1, swift)
	v := w.watchBy("/watch?every=1", "")
	first := v.next("State")
	w.lease("r1", "s1")
	// Figures make no event; the state that is told again has them.
	for {
		again := v.next("State")
		if again.id != first.id {
			t.Fatalf("the state has id %s, after %s: no event happened in between", again.id, first.id)
		}
		state, _ := again.data["state"].(object)
		if state["sessions"] == 1.0 {
			break
		}
	}
	w.change(func(f *router.Fleet) { f.Published = "step-1" })
	for {
		e, ok := v.read()
		if !ok {
			t.Fatal("the stream ended")
		}
		if e.name == "VersionPublished" {
			return
		}
	}
}

func TestAnIntervalThatMakesNoSenseIsRefusedByName(t *testing.T) {
	w := newWorld(t, 1)
	for _, every := range []string{"0", "-1", "soon", "3601"} {
		if r := w.do(http.MethodGet, w.pool+"/watch?every="+every, nil); r.status != http.StatusBadRequest || r.body["field"] != "every" {
			t.Errorf("every=%s: %d %v", every, r.status, r.body)
		}
	}
}

func TestAStateThatIsToldAgainLeavesNoEventOut(t *testing.T) {
	w := newWorld(t, 1)
	f := newFeed(w.table, 8, w.clock())
	out := httptest.NewRecorder()
	s := &stream{w: out, rc: http.NewResponseController(out), patience: patience, room: newRoom(0), feed: f, synced: true, due: true}
	w.change(func(f *router.Fleet) { f.Published = "step-1" })
	f.look(w.clock()) // an event and the tick at once
	if _, err := s.catchUp(); err != nil {
		t.Fatal(err)
	}
	event, state := strings.Index(out.Body.String(), "event: VersionPublished"), strings.Index(out.Body.String(), "event: State")
	if event < 0 || state < event {
		t.Errorf("want the event, then the state:\n%s", out.Body.String())
	}
}

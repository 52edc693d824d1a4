package server

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestSessionsAreListedPageByPage(t *testing.T) {
	w := newWorld(t, 1)
	for i := range 5 {
		w.lease(fmt.Sprintf("r%d", i), fmt.Sprintf("s%d", i))
	}
	var got []string
	url := w.pool + "/sessions?limit=2"
	for pages := 0; url != "" && pages < 4; pages++ {
		r := w.do(http.MethodGet, url, nil)
		for _, e := range r.body["sessions"].([]any) {
			got = append(got, e.(object)["sessionID"].(string))
		}
		if url = ""; r.text("next") != "" {
			url = w.pool + "/sessions?limit=2&after=" + r.text("next")
		}
	}
	if diff := cmp.Diff([]string{"s0", "s1", "s2", "s3", "s4"}, got); diff != "" {
		t.Error(diff)
	}
}

func TestAListedSessionSaysWhereItLivesAndHowLongItHasRested(t *testing.T) {
	w := newWorld(t, 1)
	w.lease("r1", "s1")
	l := w.lease("r2", "s2")
	w.do(http.MethodPost, w.pool+"/leases/r2/release", object{"token": l.text("token"), "outcome": "Succeeded"})
	w.sleep(70 * time.Second)
	entry := func(id string, active, idle float64) object {
		return object{
			"sessionID": id, "sender": "train", "backend": object{"name": "b0", "incarnation": "pod-0/c-1"},
			"activeLeases": active, "idleSeconds": idle, "why": "Placed",
		}
	}
	r := w.do(http.MethodGet, w.pool+"/sessions?backend=b0&sender=train", nil)
	if diff := cmp.Diff(object{"sessions": []any{entry("s1", 1, 0), entry("s2", 0, 70)}}, r.body); diff != "" {
		t.Error(diff)
	}
	if r := w.do(http.MethodGet, w.pool+"/sessions?sender=eval", nil); len(r.body["sessions"].([]any)) != 0 {
		t.Error(r.raw)
	}
}

func TestAListingRefusesWhatItDoesNotKnow(t *testing.T) {
	w := newWorld(t, 1)
	for query, field := range map[string]string{
		"limit=0": "limit", "limit=1001": "limit", "limit=many": "limit", "after=-": "after", "colour=red": "query",
	} {
		if r := w.do(http.MethodGet, w.pool+"/sessions?"+query, nil); r.status != http.StatusBadRequest || r.text("field") != field {
			t.Errorf("%s: %d %s", query, r.status, r.raw)
		}
	}
}

func TestOnlyAFewListingsOfAPoolAreMadeAtOnce(t *testing.T) {
	w := newWorld(t, 1)
	for range listingsPerPool {
		leave, ok := w.server.listings.enter(w.key)
		if !ok {
			t.Fatal("no room for a first one")
		}
		defer leave()
	}
	if r := w.do(http.MethodGet, w.pool+"/sessions", nil); r.status != http.StatusTooManyRequests || r.header.Get("Retry-After") == "" {
		t.Error(r.status, r.raw)
	}
}

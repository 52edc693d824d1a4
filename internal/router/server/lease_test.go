package server

import (
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berthmaster/berthmaster/internal/router"
)

func TestAcquireAnswersTheWholeLease(t *testing.T) {
	w := newWorld(t, 1, func(_ *Config, f *router.Fleet) { f.Published = "step-41" })
	r := w.lease("r1", "s1")
	if ct := r.header.Get("Content-Type"); ct != "application/json" {
		t.Errorf("Content-Type %q", ct)
	}
	got := r.body
	rid, token := r.text("rid"), r.text("token")
	if len(rid) != 32 || token == "" {
		t.Errorf("rid %q, token %q", rid, token)
	}
	delete(got, "rid")
	delete(got, "token")
	if diff := cmp.Diff(object{
		"requestID": "r1", "backend": object{"name": "b0", "incarnation": "pod-0/c-1", "url": "http://127.0.0.1:30000"},
		"weightVersion": "step-41", "epoch": 1.0, "term": 1.0, "ttlSeconds": 120.0, "startSeconds": 30.0,
	}, got); diff != "" {
		t.Error(diff)
	}
}

func TestAcquireAgainAnswersTheSameLeaseWith200(t *testing.T) {
	w := newWorld(t, 4)
	first := w.lease("r1", "s1")
	again := w.acquire("r1", "s1")
	if again.status != http.StatusOK {
		t.Fatalf("%d %s", again.status, again.raw)
	}
	if diff := cmp.Diff(first.body, again.body); diff != "" {
		t.Error(diff)
	}
	if n := w.outstanding(); n != 1 {
		t.Errorf("%d counted", n)
	}
}

func TestConcurrentAcquiresOfOneIDShareOneGrant(t *testing.T) {
	w := newWorld(t, 4)
	var wg sync.WaitGroup
	got := make([]reply, 32)
	for i := range got {
		wg.Go(func() {
			r, err := w.try(t.Context(), http.MethodPost, w.pool+"/leases", ask("r1", "s1"))
			if err != nil {
				t.Error(err)
			}
			got[i] = r
		})
	}
	wg.Wait()
	created := 0
	for _, r := range got {
		if r.text("rid") == "" || r.text("rid") != got[0].text("rid") {
			t.Errorf("another grant: %s", r.raw)
		}
		if r.status == http.StatusCreated {
			created++
		}
	}
	if created != 1 || w.outstanding() != 1 {
		t.Errorf("%d created, %d counted", created, w.outstanding())
	}
}

func TestRenewExtendsAndTellsThePool(t *testing.T) {
	w := newWorld(t, 1, func(_ *Config, f *router.Fleet) { f.Published = "step-41" })
	token := w.lease("r1", "s1").text("token")
	w.sleep(100e9)
	r := w.renew("r1", object{"token": token, "started": true})
	if diff := cmp.Diff(object{
		"requestID": "r1", "ttlSeconds": 120.0, "startSeconds": 30.0, "mixed": false,
		"state": object{"epoch": 1.0, "term": 1.0, "publishedVersion": "step-41", "leasing": "Open", "access": "Open", "failed": false},
	}, r.body); diff != "" || r.status != http.StatusOK {
		t.Fatal(r.status, diff)
	}
	w.sleep(100e9)
	if r := w.renew("r1", object{"token": token}); r.status != http.StatusOK {
		t.Fatalf("the first renewal did not extend: %s", r.raw)
	}
	w.sleep(121e9)
	want(t, w.renew("r1", object{"token": token}), http.StatusConflict, "ExecutionLost")
	want(t, w.acquire("r1", "s1"), http.StatusConflict, "ExecutionLost")
}

func TestRenewIsServedWhileHeldAndFenced(t *testing.T) {
	w := newWorld(t, 1)
	token := w.lease("r1", "s1").text("token")
	w.change(func(f *router.Fleet) {
		f.Leasing = router.LeasingHeld
		f.Senders[0].Access = router.AccessFenced
	})
	r := w.renew("r1", object{"token": token})
	if r.status != http.StatusOK || r.text("state", "leasing") != "Held" || r.text("state", "access") != "Fenced" {
		t.Fatal(r.raw)
	}
	if r := w.release("r1", object{"token": token, "outcome": "Succeeded"}); r.status != http.StatusOK {
		t.Fatal(r.raw)
	}
}

func TestReleaseIsIdempotentAndItsOutcomeStands(t *testing.T) {
	w := newWorld(t, 1)
	token := w.lease("r1", "s1").text("token")
	body := object{"token": token, "outcome": "Succeeded", "outputTokens": 17, "weightVersion": "default"}
	for range 2 {
		r := w.release("r1", body)
		if diff := cmp.Diff(object{"requestID": "r1", "outcome": "Succeeded", "fate": "", "mixed": false}, r.body); diff != "" || r.status != 200 {
			t.Fatal(r.status, diff)
		}
	}
	if n := w.outstanding(); n != 0 {
		t.Errorf("%d counted", n)
	}
	want(t, w.release("r1", object{"token": token, "outcome": "Aborted"}), http.StatusConflict, "RequestConflict")
	ended := w.acquire("r1", "s1")
	want(t, ended, http.StatusConflict, "LeaseEnded")
	if ended.text("outcome") != "Succeeded" {
		t.Error(ended.raw)
	}
	late := w.renew("r1", object{"token": token})
	want(t, late, http.StatusConflict, "LeaseEnded")
	if late.text("outcome") != "Succeeded" || w.outstanding() != 0 {
		t.Error(late.raw)
	}
}

func TestForgoingSpendsTheID(t *testing.T) {
	w := newWorld(t, 1)
	identity := object{"sessionID": "s1", "sender": "train", "senderGeneration": 3, "epoch": 1, "outcome": "NotSent"}
	for range 2 {
		r := w.release("r1", identity)
		if r.status != http.StatusOK || r.text("outcome") != "NotSent" {
			t.Fatal(r.raw)
		}
	}
	r := w.acquire("r1", "s1")
	want(t, r, http.StatusConflict, "LeaseEnded")
	if r.text("outcome") != "NotSent" {
		t.Error(r.raw)
	}
}

func TestForgoingEndsALeaseWhoseAnswerWasLost(t *testing.T) {
	w := newWorld(t, 1)
	w.lease("r1", "s1")
	identity := object{"requestID": "r1", "sessionID": "s1", "sender": "train", "senderGeneration": 3, "epoch": 1, "outcome": "NotSent"}
	if r := w.release("r1", identity); r.status != http.StatusOK || w.outstanding() != 0 {
		t.Fatalf("%s, %d counted", r.raw, w.outstanding())
	}
}

func TestASessionStaysAtHomeAndEndsBySender(t *testing.T) {
	w := newWorld(t, 4)
	home := w.lease("r1", "s1").text("backend", "name")
	for _, id := range []string{"r2", "r3", "r4"} {
		if got := w.lease(id, "s1").text("backend", "name"); got != home {
			t.Fatalf("moved from %s to %s", home, got)
		}
	}
	session := w.pool + "/sessions/s1"
	want(t, w.do(http.MethodDelete, session, nil), http.StatusBadRequest, "Invalid")
	want(t, w.do(http.MethodDelete, session+"?sender=eval", nil), http.StatusForbidden, "Forbidden")
	for range 2 {
		if r := w.do(http.MethodDelete, session+"?sender=train", nil); r.status != http.StatusNoContent || r.raw != "" {
			t.Fatal(r.status, r.raw)
		}
	}
	want(t, w.do(http.MethodGet, session, nil), http.StatusNotFound, "SessionUnknown")
}

func TestLastBackendIsHonouredForAnUnknownSession(t *testing.T) {
	w := newWorld(t, 8)
	last := object{"name": "b6", "incarnation": "pod-6/c-1"}
	if got := w.lease("r1", "s1", object{"lastBackend": last}).text("backend", "name"); got != "b6" {
		t.Error(got)
	}
	stale := object{"name": "b6", "incarnation": "pod-6/c-0"}
	if got := w.lease("r2", "s2", object{"lastBackend": stale}).text("backend", "name"); got == "b6" {
		t.Error("a former incarnation drew its session back")
	}
}

func TestATokenReadoptsItsLeaseAfterATakeOver(t *testing.T) {
	w := newWorld(t, 4)
	r := w.lease("r1", "s1")
	home, token := r.text("backend", "name"), r.text("token")
	successor := router.NewTable("uid-1", nil, w.clock())
	successor.Lead(2, router.Takeover{Windows: 30e9}, w.clock())
	w.table = successor
	for i := range w.fleet.Members {
		w.fleet.Members[i].Load = router.LoadUnknown
	}
	w.apply()
	w.healthy()
	w.pools.Put(w.key, successor)
	again := w.acquire("r1", "s1", object{"token": token})
	if again.status != http.StatusOK || again.text("backend", "name") != home || again.text("rid") != r.text("rid") {
		t.Fatalf("%d %s", again.status, again.raw)
	}
	if n := w.outstanding(); n != 1 {
		t.Errorf("%d counted", n)
	}
	next := w.lease("r2", "s1")
	if next.text("backend", "name") != home || next.text("term") != "2" {
		t.Errorf("the session did not stay: %s", next.raw)
	}
}

func TestURLsAnsweredNeverEndInASlash(t *testing.T) {
	w := newWorld(t, 3)
	for _, s := range []string{"s1", "s2", "s3"} {
		if url := w.lease("r-"+s, s).text("backend", "url"); strings.HasSuffix(url, "/") {
			t.Error(url)
		}
	}
}

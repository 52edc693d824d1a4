package server

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/berthmaster/berthmaster/internal/router"
)

// refusalCase is one way to be refused.
type refusalCase struct {
	status int
	reason router.Reason
	field  string
	// more are further members that the problem must have.
	more object
	// retry is the Retry-After header.
	retry string
	ask   func(w *world) reply
}

func fenceTrain(f *router.Fleet) { f.Senders[0].Access = router.AccessFenced }

// refusals has at least one case for every reason.
func refusals() map[string]refusalCase {
	return map[string]refusalCase{
		"a pool that is not served": {404, "PoolNotFound", "", nil, "", func(w *world) reply {
			return w.do(http.MethodPost, strings.Replace(w.pool, "policy", "other", 1)+"/leases", ask("r1", "s1"))
		}},
		"a path that no call has": {404, "NotFound", "", nil, "", func(w *world) reply {
			return w.do(http.MethodGet, w.pool+"/engines", nil)
		}},
		"a path outside the protocol": {404, "NotFound", "", nil, "", func(w *world) reply {
			return w.do(http.MethodGet, w.base+"/healthz", nil)
		}},
		"a method that the path has not": {405, "MethodNotAllowed", "", nil, "", func(w *world) reply {
			return w.do(http.MethodGet, w.pool+"/leases", nil)
		}},
		"a page of another origin": {403, "Forbidden", "", nil, "", func(w *world) reply {
			return w.from("https://elsewhere.example", ask("r1", "s1"))
		}},
		"an id used with another identity": {409, "RequestConflict", "requestID", nil, "", func(w *world) reply {
			w.lease("r1", "s1")
			return w.acquire("r1", "s1", object{"executions": 2})
		}},
		"a session of another sender": {409, "RequestConflict", "sessionID", nil, "", func(w *world) reply {
			w.lease("r1", "s1")
			return w.acquire("r2", "s1", object{"sender": "eval"})
		}},
		"a token of another request": {409, "RequestConflict", "token", nil, "", func(w *world) reply {
			return w.renew("r2", object{"token": w.lease("r1", "s1").text("token")})
		}},
		"an acquire after its release": {409, "LeaseEnded", "", object{"outcome": "Rejected"}, "", func(w *world) reply {
			w.release("r1", object{"token": w.lease("r1", "s1").text("token"), "outcome": "Rejected"})
			return w.acquire("r1", "s1")
		}},
		"a lease that nobody renewed": {409, "ExecutionLost", "", object{"fate": "Pending"}, "", func(w *world) reply {
			token := w.lease("r1", "s1").text("token")
			w.sleep(2 * time.Minute)
			return w.renew("r1", object{"token": token})
		}},
		"a lease that was forgotten": {404, "LeaseUnknown", "", nil, "", func(w *world) reply {
			token := w.lease("r1", "s1").text("token")
			w.release("r1", object{"token": token, "outcome": "Succeeded"})
			w.sleep(16 * time.Minute)
			return w.renew("r1", object{"token": token})
		}},
		"a token that was made elsewhere": {403, "TokenInvalid", "token", nil, "", func(w *world) reply {
			c := aClaim()
			c.Request = "r1"
			return w.renew("r1", object{"token": string(tokensOf(w.t, Keys{Current: key(99)}).append(nil, &c))})
		}},
		"an acquire with a token that was made elsewhere": {403, "TokenInvalid", "token", nil, "", func(w *world) reply {
			return w.acquire("r1", "s1", object{"token": "AQAA"})
		}},
		"a generation that is over": {409, "StaleGeneration", "senderGeneration", nil, "", func(w *world) reply {
			return w.acquire("r1", "s1", object{"senderGeneration": 2})
		}},
		"an epoch that is not the pool's": {409, "StaleEpoch", "epoch", object{"epoch": 4.0}, "", func(w *world) reply {
			w.change(func(f *router.Fleet) { f.Epoch = 4 })
			return w.acquire("r1", "s1")
		}},
		"a pool that has failed": {409, "PoolFailed", "", nil, "", func(w *world) reply {
			w.fail()
			return w.acquire("r2", "s2")
		}},
		"a sender that the spec has not": {403, "SenderUnknown", "sender", nil, "", func(w *world) reply {
			return w.acquire("r1", "s1", object{"sender": "nobody"})
		}},
		"a sender that is fenced": {423, "SenderFenced", "sender", nil, "1", func(w *world) reply {
			w.change(fenceTrain)
			return w.acquire("r1", "s1")
		}},
		"leasing that is held": {423, "LeasingHeld", "", nil, "1", func(w *world) reply {
			w.change(func(f *router.Fleet) { f.Leasing = router.LeasingHeld })
			return w.acquire("r1", "s1")
		}},
		"no backend that serves": {503, "NoBackend", "", nil, "1", func(w *world) reply {
			w.observe("pod-0/c-1", router.Unhealthy)
			return w.acquire("r1", "s1")
		}},
		"a request cap that is reached": {429, "Contended", "", nil, "1", func(w *world) reply {
			w.change(func(f *router.Fleet) { f.Config.MaxRequests = 1 })
			w.lease("r1", "s1")
			return w.acquire("r2", "s2")
		}},
		"an admission limit that is reached": {429, "Contended", "", nil, "1", func(w *world) reply {
			w.change(func(f *router.Fleet) { f.Config.AdmissionPercent = 100 })
			w.lease("r1", "s1", object{"executions": 64})
			return w.acquire("r2", "s2")
		}},
		"a router without a term": {503, "NoLeader", "", nil, "1", func(w *world) reply {
			w.table = router.NewTable("uid-1", nil, w.clock())
			w.apply()
			w.pools.Put(w.key, w.table)
			return w.acquire("r1", "s1")
		}},
		"a session that nobody knows": {404, "SessionUnknown", "sessionID", nil, "", func(w *world) reply {
			return w.do(http.MethodGet, w.pool+"/sessions/s1", nil)
		}},
		"a session ended by another sender": {403, "Forbidden", "sender", nil, "", func(w *world) reply {
			w.lease("r1", "s1")
			return w.do(http.MethodDelete, w.pool+"/sessions/s1?sender=eval", nil)
		}},
		"another outcome than before": {409, "RequestConflict", "outcome", nil, "", func(w *world) reply {
			token := w.lease("r1", "s1").text("token")
			w.release("r1", object{"token": token, "outcome": "Succeeded"})
			return w.release("r1", object{"token": token, "outcome": "Ambiguous"})
		}},
		"a token of a pool that had this name before": {404, "PoolNotFound", "token", nil, "", func(w *world) reply {
			token := w.lease("r1", "s1").text("token")
			w.table = router.NewTable("uid-2", nil, w.clock())
			w.table.Lead(1, router.Takeover{}, w.clock())
			w.apply()
			w.pools.Put(w.key, w.table)
			return w.renew("r1", object{"token": token})
		}},
	}
}

func TestRefusalOf(t *testing.T) {
	for name, c := range refusals() {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, 1)
			r := c.ask(w)
			want(t, r, c.status, string(c.reason))
			if ct := r.header.Get("Content-Type"); ct != "application/problem+json" {
				t.Errorf("Content-Type %q", ct)
			}
			if got := r.header.Get("Retry-After"); got != c.retry {
				t.Errorf("Retry-After %q, want %q", got, c.retry)
			}
			expected := object{"type": problemTypes + string(c.reason), "status": float64(c.status), "title": meanings()[c.reason].title}
			for k, v := range c.more {
				expected[k] = v
			}
			if c.field != "" {
				expected["field"] = c.field
			}
			for k, v := range expected {
				if diff := cmp.Diff(v, r.body[k]); diff != "" {
					t.Errorf("%s: %s", k, diff)
				}
			}
		})
	}
}

func TestEveryReasonHasACaseAndTheStatusOfTheTable(t *testing.T) {
	seen := map[router.Reason]bool{
		router.ReasonInvalid:            true, // TestInvalidRequestNamesItsField
		ReasonUnauthenticated:           true, // TestAuthorizerGuardsEveryCall
		ReasonAuthenticationUnavailable: true, // TestAuthorizerGuardsEveryCall
		ReasonNotLeader:                 true, // TestACallIsForwardedOnceAtMost
	}
	table := meanings()
	for name, c := range refusals() {
		seen[c.reason] = true
		if got := table[c.reason].status; got != c.status {
			t.Errorf("%s: the table says %d, the case %d", name, got, c.status)
		}
	}
	for reason := range table {
		if !seen[reason] {
			t.Errorf("%s has no case", reason)
		}
	}
}

func TestMethodNotAllowedNamesTheMethods(t *testing.T) {
	w := newWorld(t, 1)
	r := w.do(http.MethodPut, w.pool+"/sessions/s1", nil)
	want(t, r, http.StatusMethodNotAllowed, "MethodNotAllowed")
	if diff := cmp.Diff([]string{"DELETE, GET"}, r.header.Values("Allow")); diff != "" {
		t.Error(diff)
	}
}

func TestALeaseTooLateRevivesNothing(t *testing.T) {
	w := newWorld(t, 1)
	token := w.lease("r1", "s1").text("token")
	w.sleep(2 * time.Minute)
	for range 3 {
		want(t, w.renew("r1", object{"token": token}), http.StatusConflict, "ExecutionLost")
		want(t, w.acquire("r1", "s1"), http.StatusConflict, "ExecutionLost")
	}
	if b := w.snapshot().Backends[0]; b.Outstanding != 1 || b.Held != 1 {
		t.Errorf("%d counted, %d held", b.Outstanding, b.Held)
	}
}

// fail lets an ambiguous execution fail the pool, as the controller would record it.
func (w *world) fail() {
	w.t.Helper()
	w.change(func(f *router.Fleet) { f.Config.Certainty = 0 })
	g, err := w.table.Acquire(router.Request{ID: "doubtful", Session: "s9", Sender: "train", SenderGeneration: 3, Epoch: 1, Executions: 1}, w.clock())
	if err != nil {
		w.t.Fatal(err)
	}
	if _, err := w.table.Release(g.Claim, router.Ambiguous, router.Reply{}, w.clock()); err != nil {
		w.t.Fatal(err)
	}
	w.table.FailureRecorded("doubtful", w.clock())
}

// from acquires as a browser would on behalf of a page of that origin.
func (w *world) from(origin string, body any) reply {
	w.t.Helper()
	req, err := http.NewRequestWithContext(w.t.Context(), http.MethodPost, w.pool+"/leases", bodyOf(body))
	if err != nil {
		w.t.Fatal(err)
	}
	req.Header.Set("Origin", origin)
	req.Header.Set("Content-Type", "text/plain")
	r, err := w.send(req)
	if err != nil {
		w.t.Fatal(err)
	}
	return r
}

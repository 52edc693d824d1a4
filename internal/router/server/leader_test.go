package server

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/berthmaster/berthmaster/internal/router"
)

// standings is a Leadership that a test moves.
type standings struct{ now atomic.Pointer[Standing] }

func (s *standings) Standing() Standing { return *s.now.Load() }

func (s *standings) set(now Standing) { s.now.Store(&now) }

// replica serves a pool as one of several replicas.
func replica(t *testing.T, role Role) (*world, *standings) {
	t.Helper()
	var lead standings
	lead.set(Standing{Role: role, Self: t.Name()})
	return newWorld(t, 1, func(c *Config, _ *router.Fleet) { c.Leadership = &lead }), &lead
}

const askR1 = `{"requestID":"r1","sessionID":"s","sender":"train","senderGeneration":3,"epoch":1}`

// post makes a call and returns its status and the reason of a problem.
func post(t *testing.T, w *world, path, body string, marked bool) (int, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, w.pool+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if marked {
		r.Header.Set(ForwardedHeader, "1")
	}
	reply, err := w.client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer reply.Body.Close()
	var p struct {
		Reason string `json:"reason"`
	}
	var raw bytes.Buffer
	if _, err := raw.ReadFrom(reply.Body); err != nil {
		t.Fatal(err)
	}
	_ = json.Unmarshal(raw.Bytes(), &p) // the answer of a grant has no reason
	return reply.StatusCode, p.Reason
}

// leaderOf is how a follower knows the replica.
func leaderOf(w *world) Standing {
	return Standing{Role: RoleForwards, Self: w.t.Name(), Leader: strings.TrimPrefix(w.base, "http://"), LeaderID: w.t.Name()}
}

func TestAFollowerHasTheLeaderAnswer(t *testing.T) {
	leader, _ := replica(t, RoleAnswers)
	follower, standing := replica(t, RoleNone)
	standing.set(leaderOf(leader))
	if code, _ := post(t, follower, "/leases", askR1, false); code != http.StatusCreated {
		t.Fatalf("an acquire at the follower: %d", code)
	}
	if code, _ := post(t, leader, "/leases", askR1, false); code != http.StatusOK {
		t.Errorf("the same again at the leader: %d, want 200", code)
	}
	if n := len(follower.table.Snapshot(follower.clock()).Backends); n != 1 || follower.table.Snapshot(follower.clock()).Totals.Grants != 0 {
		t.Error("the follower granted by itself")
	}
}

func TestACallIsForwardedOnceAtMost(t *testing.T) {
	one, first := replica(t, RoleNone)
	other, second := replica(t, RoleNone)
	first.set(leaderOf(other))
	second.set(leaderOf(one))
	if code, reason := post(t, one, "/leases", askR1, false); code != http.StatusMisdirectedRequest || reason != string(ReasonNotLeader) {
		t.Errorf("%d %s, want 421 NotLeader", code, reason)
	}
}

func TestWithoutALeaderCallersAreToldToAskAgain(t *testing.T) {
	lost, standing := replica(t, RoleNone)
	if code, reason := post(t, lost, "/leases", askR1, false); code != http.StatusServiceUnavailable || reason != "NoLeader" {
		t.Errorf("with no leader known: %d %s, want 503 NoLeader", code, reason)
	}
	if code, reason := post(t, lost, "/leases", askR1, true); code != http.StatusMisdirectedRequest || reason != string(ReasonNotLeader) {
		t.Errorf("a marked call: %d %s, want 421 NotLeader", code, reason)
	}
	standing.set(Standing{Role: RoleForwards, Leader: "127.0.0.1:1"})
	if code, reason := post(t, lost, "/leases", askR1, false); code != http.StatusServiceUnavailable || reason != "NoLeader" {
		t.Errorf("with a leader that is gone: %d %s, want 503 NoLeader", code, reason)
	}
}

func TestWhoFindsNoLeaderComesBackOnANewConnection(t *testing.T) {
	for name, c := range map[string]struct {
		standing Standing
		closes   bool
	}{
		"nobody leads":                  {Standing{Role: RoleNone}, true},
		"the leader does not answer":    {Standing{Role: RoleForwards, Leader: "127.0.0.1:1"}, true},
		"this one answers, and says no": {Standing{Role: RoleAnswers}, false},
	} {
		w, standing := replica(t, RoleNone)
		standing.set(c.standing)
		call, err := http.NewRequestWithContext(t.Context(), http.MethodPost, w.pool+"/leases", strings.NewReader(`{}`))
		if err != nil {
			t.Fatal(err)
		}
		reply, err := w.client.Do(call)
		if err != nil {
			t.Fatal(err)
		}
		reply.Body.Close()
		if reply.Close != c.closes {
			t.Errorf("%s: status %d, closes %t, want %t", name, reply.StatusCode, reply.Close, c.closes)
		}
	}
}

func TestThoseWhoWaitAreSentAwayWhenTheReignEnds(t *testing.T) {
	w, standing := replica(t, RoleAnswers)
	reign, end := context.WithCancel(t.Context())
	standing.set(Standing{Role: RoleAnswers, Reign: reign})
	w.fleet.Leasing = "Held"
	w.apply()
	answered := make(chan string, 1)
	go func() {
		_, reason := post(t, w, "/leases", strings.Replace(askR1, "}", `,"waitSeconds":500}`, 1), false)
		answered <- reason
	}()
	eventually(t, "somebody waits", func() bool { return w.table.Snapshot(w.clock()).Waiting == 1 })
	end()
	if reason := <-answered; reason != "NoLeader" {
		t.Errorf("answered %q, want NoLeader", reason)
	}
}

// A pod's address goes to another pod once it is gone.
func TestTheAnswerOfAStrangerIsNone(t *testing.T) {
	stranger, _ := replica(t, RoleAnswers)
	follower, standing := replica(t, RoleNone)
	to := leaderOf(stranger)
	to.LeaderID = "the leader that was here"
	standing.set(to)
	if code, reason := post(t, follower, "/sessions/none/no-such-path", "", false); code != http.StatusNotFound || reason != "NotFound" {
		t.Fatalf("a path that no call has: %d %s", code, reason)
	}
	if code, reason := post(t, follower, "/leases", `{}`, false); code != http.StatusServiceUnavailable || reason != "NoLeader" {
		t.Errorf("%d %s, want 503 NoLeader", code, reason)
	}
}

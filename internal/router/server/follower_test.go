package server

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berthmaster/berthmaster/internal/router"
)

// bystander is a leader's address that counts who comes.
func bystander(t *testing.T) (at Standing, came *atomic.Int64) {
	t.Helper()
	came = new(atomic.Int64)
	leader := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		came.Add(1)
		w.Header().Set(AnsweredByHeader, "leader")
	}))
	t.Cleanup(leader.Close)
	return Standing{Role: RoleForwards, Self: t.Name(), Leader: strings.TrimPrefix(leader.URL, "http://"), LeaderID: "leader"}, came
}

// guarded is a replica of that standing which judges its callers.
func guarded(t *testing.T, at Standing, guard Authorizer) *world {
	t.Helper()
	var standing standings
	standing.set(at)
	return newWorld(t, 1, func(c *Config, _ *router.Fleet) { c.Leadership, c.Authorizer = &standing, guard })
}

func TestNothingOfAStrangerIsForwarded(t *testing.T) {
	const pool = "/v1alpha1/namespaces/rl/inferencepools/policy"
	at, came := bystander(t)
	follower := guarded(t, at, &gate{})
	data := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if follower.server.AnswersHere(w, r) {
			t.Errorf("%s: a follower answers", r.URL.Path)
		}
	})
	for name, c := range map[string]struct {
		to           http.Handler
		method, path string
		status       int
	}{
		"the list":                                   {follower.server, http.MethodGet, listPath, http.StatusUnauthorized},
		"a call of a pool":                           {follower.server, http.MethodPost, pool + "/leases", http.StatusUnauthorized},
		"a call of a pool that is not there":         {follower.server, http.MethodPost, pool + "-not/leases", http.StatusUnauthorized},
		"a path that no call has":                    {follower.server, http.MethodPost, pool + "/engines", http.StatusNotFound},
		"a method that the path has not":             {follower.server, http.MethodPut, pool + "/leases", http.StatusMethodNotAllowed},
		"a data path":                                {data, http.MethodPost, pool + "/senders/s/proxy/generate", http.StatusUnauthorized},
		"a data path that climbs out of its pool":    {data, http.MethodPost, pool + "/senders/s/proxy/" + strings.Repeat("../", 8) + "x", http.StatusUnauthorized},
		"a data path that climbs into another":       {data, http.MethodPost, pool + "/senders/s/proxy/../../../other/x", http.StatusUnauthorized},
		"a data path with slashes in a row":          {data, http.MethodPost, "//v1alpha1//namespaces/rl//inferencepools/policy/senders/s/proxy//generate", http.StatusUnauthorized},
		"a data path without a pool, were there one": {data, http.MethodPost, "/v1alpha1/namespaces/rl/inferencepools", http.StatusNotFound},
	} {
		w := httptest.NewRecorder()
		c.to.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), c.method, c.path, nil))
		if w.Code != c.status {
			t.Errorf("%s: answered %d, want %d", name, w.Code, c.status)
		}
	}
	if n := came.Load(); n != 0 {
		t.Errorf("%d calls came to the leader", n)
	}
}

func TestAFollowerJudgesADataPathByThePoolThatItCalls(t *testing.T) {
	at, came := bystander(t)
	follower := guarded(t, at, only{router.PoolKey{Namespace: "rl", Name: "mine"}})
	const mine, other = "/v1alpha1/namespaces/rl/inferencepools/mine", "/v1alpha1/namespaces/rl/inferencepools/other"
	for path, status := range map[string]int{
		mine + "/senders/s/proxy/generate": http.StatusOK, other + "/senders/s/proxy/generate": http.StatusForbidden,
		other + "/senders/s/proxy/../../../mine/generate": http.StatusForbidden, other + "/senders/s/proxy/generate/../../../../../mine/x": http.StatusForbidden,
	} {
		w := httptest.NewRecorder()
		if follower.server.AnswersHere(w, httptest.NewRequestWithContext(t.Context(), http.MethodPost, path, nil)) || w.Code != status {
			t.Errorf("%s: %d, want %d", path, w.Code, status)
		}
	}
	if n := came.Load(); n != 1 {
		t.Errorf("%d calls came to the leader, want the one that may", n)
	}
}

func TestWhoMayLookIsToldTheLeadersListByAFollower(t *testing.T) {
	leader := guarded(t, Standing{Role: RoleAnswers, Self: t.Name()}, &gate{})
	follower := guarded(t, leaderOf(leader), &gate{})
	leader.pools.Put(router.PoolKey{Namespace: "rl", Name: "another"}, router.NewTable("uid-2", nil, leader.clock()))
	r := follower.as("trainer", http.MethodGet, follower.base+listPath, nil)
	want := object{"pools": []any{object{"namespace": "rl", "name": "another"}, object{"namespace": "rl", "name": "policy"}}}
	if diff := cmp.Diff(want, r.body); r.status != http.StatusOK || diff != "" {
		t.Errorf("%d\n%s", r.status, diff)
	}
}

func TestAFollowerWithoutPoolsForwardsThoseItKnows(t *testing.T) {
	for name, c := range map[string]struct {
		guard     Authorizer
		caller    string
		status    int
		forwarded int64
	}{
		"a stranger":                              {&gate{}, "", http.StatusUnauthorized, 0},
		"somebody who is known":                   {&gate{}, "Bearer trainer", http.StatusOK, 1},
		"while the API server cannot be asked":    {&gate{}, "Bearer of-an-absent-authority", http.StatusServiceUnavailable, 0},
		"somebody who makes a token up":           {&gate{}, "Bearer made-up", http.StatusUnauthorized, 0},
		"anybody where nobody is asked who it is": {nil, "", http.StatusOK, 1},
	} {
		at, came := bystander(t)
		follower := guarded(t, at, c.guard)
		follower.pools.Remove(follower.key, follower.table)
		w := httptest.NewRecorder()
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, listPath, nil)
		r.Header.Set("Authorization", c.caller)
		follower.server.ServeHTTP(w, r)
		if w.Code != c.status || came.Load() != c.forwarded {
			t.Errorf("%s: %d, and %d calls came to the leader, want %d and %d", name, w.Code, came.Load(), c.status, c.forwarded)
		}
	}
}

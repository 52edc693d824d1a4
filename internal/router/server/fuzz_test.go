package server

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/berthmaster/berthmaster/internal/router"
)

// FuzzCalls makes one call of any method, path, query and body against a pool with a lease. Every answer is one
// that the protocol has, a refusal says why, and the counts are those of the leases that were granted.
func FuzzCalls(f *testing.F) {
	const pool = "/v1alpha1/namespaces/rl/inferencepools/policy"
	for _, seed := range [][4]string{
		{http.MethodGet, pool, "", ""}, {http.MethodGet, pool + "/sessions/s0", "", ""}, {http.MethodGet, pool + "/sessions", "limit=1&after=s", ""},
		{http.MethodPost, pool + "/leases", "", askR1}, {http.MethodPost, pool + "/leases:batch", "", `{"requests":[` + askR1 + `]}`},
		{http.MethodPost, pool + "/leases/r0/renew", "", `{"token":"TOKEN","started":true}`},
		{http.MethodPost, pool + "/leases/r0/release", "", `{"token":"TOKEN","outcome":"Succeeded","outputTokens":3}`},
		{http.MethodPost, pool + "/leases/r9/release", "", `{"sessionID":"s","sender":"train","senderGeneration":3,"epoch":1,"outcome":"NotSent"}`},
		{http.MethodDelete, pool + "/sessions/s0", "sender=train", ""}, {http.MethodPut, pool, "", ""}, {http.MethodGet, "/", "", ""},
		{http.MethodGet, pool + "/watch/..//", "", ""}, {http.MethodPost, "/v1alpha1/namespaces//inferencepools//leases", "", "{"},
	} {
		f.Add(seed[0], seed[1], seed[2], seed[3])
	}
	known := meanings()
	f.Fuzz(func(t *testing.T, method, path, query, body string) {
		if strings.HasSuffix(path, "/watch") {
			return // it ends with its client only
		}
		s, table, token := fuzzed(t)
		r, err := http.NewRequestWithContext(t.Context(), method, "http://x/", strings.NewReader(strings.ReplaceAll(body, "TOKEN", token)))
		if err != nil {
			return // no method of HTTP
		}
		r.URL = &url.URL{Scheme: "http", Host: "x", Path: path, RawQuery: query}
		r.Header.Set("Content-Type", "application/json")
		w := httptest.NewRecorder()
		s.ServeHTTP(w, r)
		if w.Code >= 400 {
			var p problem
			if err := json.Unmarshal(w.Body.Bytes(), &p); err != nil || known[p.Reason].status != w.Code {
				t.Fatalf("%s %q %q %q: answered %d %s", method, path, query, body, w.Code, w.Body)
			}
		}
		counted, live := int64(0), table.Snapshot(time.Unix(1_700_000_000, 0))
		for _, b := range live.Backends {
			counted += b.Outstanding
		}
		if most := 1 + live.Totals.Grants*64; counted < 0 || counted > most {
			t.Fatalf("%d executions are counted after %d grants", counted, live.Totals.Grants)
		}
	})
}

// fuzzed is a server with one pool, in which r0 of session s0 has a lease under that token.
func fuzzed(t *testing.T) (*Server, *router.Table, string) {
	now := time.Unix(1_700_000_000, 0)
	pools := router.NewPools()
	// A call that would wait is one that a held pool keeps: waiting is left out by its limit.
	s, err := New(Config{Pools: pools, Keys: Keys{Current: key(7)}, Clock: func() time.Time { return now }, Limits: Limits{Wait: time.Nanosecond}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	table := router.NewTable("uid-1", nil, now)
	table.Lead(1, router.Takeover{}, now)
	fleet := router.Fleet{
		Epoch: 1, Leasing: router.LeasingOpen, Config: router.DefaultConfig(), Members: []router.Member{member(0)},
		Senders: []router.Sender{{Name: "train", Access: router.AccessOpen, MinGeneration: 3}},
	}
	if err := table.Apply(fleet, now); err != nil {
		t.Fatal(err)
	}
	table.Observe(router.Observation{Incarnation: member(0).Incarnation, Seq: 1, Health: router.Healthy, EngineTotal: -1}, now)
	pools.Put(router.PoolKey{Namespace: "rl", Name: "policy"}, table)
	g, err := table.Acquire(router.Request{ID: "r0", Session: "s0", Sender: "train", SenderGeneration: 3, Epoch: 1, Executions: 1}, now)
	if err != nil {
		t.Fatal(err)
	}
	return s, table, string(s.tokens.Load().append(nil, &g.Claim))
}

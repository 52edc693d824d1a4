package server

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/berthmaster/berthmaster/internal/router"
)

// gate is an Authorizer that knows two callers.
type gate struct {
	mu      sync.Mutex
	asked   []string
	deposed bool
}

// depose takes every right away.
func (g *gate) depose() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.deposed = true
}

func (g *gate) Authorize(r *http.Request, pool router.PoolKey, sender router.SenderName) error {
	g.mu.Lock()
	g.asked = append(g.asked, pool.Namespace+"/"+pool.Name+" "+string(sender))
	g.mu.Unlock()
	return g.judge(r, sender)
}

func (g *gate) Authenticate(r *http.Request) error { return g.judge(r, "") }

func (g *gate) judge(r *http.Request, sender router.SenderName) error {
	g.mu.Lock()
	deposed := g.deposed
	g.mu.Unlock()
	if deposed {
		return &router.Refusal{Reason: ReasonUnauthenticated, Detail: "no more"}
	}
	switch r.Header.Get("Authorization") {
	case "Bearer trainer":
		if sender == "eval" {
			return &router.Refusal{Reason: ReasonForbidden, Field: "sender", Detail: "this caller is not entitled to the sender"}
		}
		return nil
	case "Bearer of-an-absent-authority":
		return &router.Refusal{Reason: ReasonAuthenticationUnavailable, RetryAfter: time.Second, Detail: "ask again"}
	default:
		return &router.Refusal{Reason: ReasonUnauthenticated, Detail: "a bearer token is required"}
	}
}

func TestAuthorizerGuardsEveryCall(t *testing.T) {
	g := &gate{}
	w := newWorld(t, 1, func(c *Config, _ *router.Fleet) { c.Authorizer = g })
	grant, err := w.table.Acquire(router.Request{ID: "r0", Session: "s0", Sender: "train", SenderGeneration: 3, Epoch: 1, Executions: 1}, w.clock())
	if err != nil {
		t.Fatal(err)
	}
	token := string(w.server.tokens.Load().append(nil, &grant.Claim))
	calls := []struct {
		method, path string
		body         any
	}{
		{http.MethodPost, "/leases", ask("r1", "s1")},
		{http.MethodPost, "/leases/r0/renew", object{"token": token}},
		{http.MethodPost, "/leases/r0/release", object{"token": token, "outcome": "Succeeded"}},
		{http.MethodPost, "/leases/r9/release", object{"sessionID": "s1", "sender": "train", "senderGeneration": 3, "epoch": 1, "outcome": "NotSent"}},
		{http.MethodDelete, "/sessions/s0?sender=train", nil},
		{http.MethodGet, "/sessions/s0", nil},
		{http.MethodGet, "/watch", nil},
		{http.MethodGet, "", nil},
	}
	before := w.snapshot()
	for _, c := range calls {
		r := w.do(c.method, w.pool+c.path, c.body)
		want(t, r, http.StatusUnauthorized, "Unauthenticated")
		if r.header.Get("WWW-Authenticate") == "" {
			t.Error(c.path, ": no WWW-Authenticate")
		}
	}
	if diff := cmp.Diff(before, w.snapshot()); diff != "" {
		t.Error("a call that was refused changed something: ", diff)
	}
	want(t, w.as("of-an-absent-authority", http.MethodGet, w.pool, nil), http.StatusServiceUnavailable, "AuthenticationUnavailable")
}

// TestStrangersDoNotLearnWhichPoolsThereAre: nor do they get as far as having their bodies read.
func TestStrangersDoNotLearnWhichPoolsThereAre(t *testing.T) {
	w := newWorld(t, 1, func(c *Config, _ *router.Fleet) { c.Authorizer = &gate{} })
	for _, path := range []string{w.pool, w.pool + "-that-does-not-exist"} {
		want(t, w.do(http.MethodGet, path, nil), http.StatusUnauthorized, "Unauthenticated")
		want(t, w.do(http.MethodPost, path+"/leases", "no JSON object"), http.StatusUnauthorized, "Unauthenticated")
	}
}

func TestEveryCallThatNamesASenderIsAuthorizedForIt(t *testing.T) {
	g := &gate{}
	w := newWorld(t, 1, func(c *Config, _ *router.Fleet) { c.Authorizer = g })
	token := w.as("trainer", http.MethodPost, w.pool+"/leases", ask("r1", "s1")).text("token")
	w.as("trainer", http.MethodPost, w.pool+"/leases/r1/renew", object{"token": token})
	w.as("trainer", http.MethodPost, w.pool+"/leases/r1/release", object{"token": token, "outcome": "NotSent"})
	w.as("trainer", http.MethodPost, w.pool+"/leases/r2/release", object{"sessionID": "s1", "sender": "train", "senderGeneration": 3, "epoch": 1, "outcome": "NotSent"})
	w.as("trainer", http.MethodPost, w.pool+"/leases:batch", object{"requests": []any{ask("r3", "s1")}})
	w.as("trainer", http.MethodDelete, w.pool+"/sessions/s1?sender=train", nil)
	g.mu.Lock()
	defer g.mu.Unlock()
	var expected []string
	for range 6 {
		expected = append(expected, "rl/policy ", "rl/policy train")
	}
	if diff := cmp.Diff(expected, g.asked); diff != "" {
		t.Error(diff)
	}
}

// as makes a call with a bearer token.
func (w *world) as(token, method, url string, body any) reply {
	w.t.Helper()
	req, err := http.NewRequestWithContext(w.t.Context(), method, url, bodyOf(body))
	if err != nil {
		w.t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+token)
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	r, err := w.send(req)
	if err != nil {
		w.t.Fatal(err)
	}
	return r
}

func TestWhoeverLosesItsRightsWhileItWaitsGetsNoLease(t *testing.T) {
	g := &gate{}
	w := newWorld(t, 1, func(c *Config, f *router.Fleet) { c.Authorizer, f.Leasing = g, router.LeasingHeld })
	answered := make(chan reply, 1)
	go func() {
		answered <- w.as("trainer", http.MethodPost, w.pool+"/leases", ask("r1", "s1", object{"waitSeconds": 500}))
	}()
	eventually(t, "somebody waits", func() bool { return w.snapshot().Waiting == 1 })
	g.depose()
	w.change(func(f *router.Fleet) { f.Leasing = router.LeasingOpen })
	want(t, <-answered, http.StatusUnauthorized, "Unauthenticated")
	if n := w.outstanding(); n != 0 {
		t.Errorf("%d executions stay counted for a caller that has no lease", n)
	}
}

func TestAWatchEndsWhenItsCallerLosesItsRights(t *testing.T) {
	g := &gate{}
	w := newWorld(t, 1, func(c *Config, _ *router.Fleet) { c.Authorizer, c.Limits.Heartbeat = g, time.Millisecond })
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, w.pool+"/watch", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer trainer")
	res, err := w.client.Do(req)
	if err != nil || res.StatusCode != http.StatusOK {
		t.Fatal(res, err)
	}
	defer res.Body.Close()
	g.depose()
	if _, err := io.Copy(io.Discard, res.Body); err != nil {
		t.Error(err)
	}
}

func TestAuthorizerNarrowsTheSender(t *testing.T) {
	w := newWorld(t, 1, func(c *Config, _ *router.Fleet) { c.Authorizer = &gate{} })
	post := func(body object) reply {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, w.pool+"/leases", bodyOf(body))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer trainer")
		req.Header.Set("Content-Type", "application/json")
		r, err := w.send(req)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	want(t, post(ask("r1", "s1", object{"sender": "eval"})), http.StatusForbidden, "Forbidden")
	if r := post(ask("r1", "s1")); r.status != http.StatusCreated {
		t.Error(r.raw)
	}
}

func TestServeRefusesAListenerBeyondLoopbackWithoutAuthorizer(t *testing.T) {
	s, err := New(Config{Pools: router.NewPools(), Keys: Keys{Current: key(1)}})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if err := s.Serve(t.Context(), beyond{}); err == nil || !strings.Contains(err.Error(), "beyond loopback") {
		t.Error(err)
	}
	guarded := Config{Pools: router.NewPools(), Keys: Keys{Current: key(1)}, BindAddress: "0.0.0.0:0", Authorizer: &gate{}}
	if err := guarded.Validate(); err != nil {
		t.Error(err)
	}
}

// beyond is a listener that claims to be reachable from elsewhere.
type beyond struct{ net.Listener }

func (beyond) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(192, 0, 2, 1), Port: 80} }
func (beyond) Close() error   { return nil }

func TestStartServesOnTheBindAddressUntilItsContextEnds(t *testing.T) {
	var lc net.ListenConfig
	l, err := lc.Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	s, err := New(Config{Pools: router.NewPools(), Keys: Keys{Current: key(1)}, BindAddress: address})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Start(t.Context()); err == nil {
		t.Error("two listen on one address")
	}
	l.Close()
	if s, err = New(Config{Pools: router.NewPools(), Keys: Keys{Current: key(1)}, BindAddress: address}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- s.Start(ctx) }()
	transport := &http.Transport{DisableKeepAlives: true}
	client := &http.Client{Transport: transport, Timeout: patience}
	eventually(t, "the server answers", func() bool {
		res, err := client.Get("http://" + address + pathPrefix + "rl/inferencepools/policy")
		if err != nil {
			return false
		}
		defer res.Body.Close()
		return res.StatusCode == http.StatusNotFound
	})
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
	if s.NeedLeaderElection() {
		t.Error("followers do not serve")
	}
}

func TestRotateTakesKeysIntoUseWhileServing(t *testing.T) {
	w := newWorld(t, 1)
	token := w.lease("r1", "s1").text("token")
	if err := w.server.Rotate(Keys{Current: key(8), Previous: key(7)}); err != nil {
		t.Fatal(err)
	}
	if r := w.renew("r1", object{"token": token}); r.status != http.StatusOK {
		t.Error(r.raw)
	}
	if err := w.server.Rotate(Keys{Current: key(8)}); err != nil {
		t.Fatal(err)
	}
	want(t, w.renew("r1", object{"token": token}), http.StatusForbidden, "TokenInvalid")
	if err := w.server.Rotate(Keys{}); err == nil {
		t.Error("no keys are accepted")
	}
}

func TestLogTellsWhereItServes(t *testing.T) {
	var out bytes.Buffer
	w := newWorld(t, 1, func(c *Config, _ *router.Fleet) { c.Log = slog.New(slog.NewTextHandler(&out, nil)) })
	w.lease("r1", "s1")
	if err := w.stop(); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(out.String(), strings.TrimPrefix(w.base, "http://")) {
		t.Error(out.String())
	}
}

package proxy_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/berthmaster/berthmaster/internal/router"
	"github.com/berthmaster/berthmaster/internal/router/proxy"
	"github.com/berthmaster/berthmaster/internal/router/proxy/wire"
)

// calm is a pool and its proxy in a bubble of virtual time, with engines that are functions.
type calm struct {
	t     *testing.T
	table *router.Table
	pools *router.Pools
	proxy *proxy.Handler
	fleet router.Fleet
	seq   uint64

	mu   sync.Mutex
	sent []string // guarded by mu: the sessions of what was written, in order
}

// newCalm makes a pool of one backend. engine is called once a request has been written.
func newCalm(t *testing.T, cfg proxy.Config, engine func(ctx context.Context) (*http.Response, error)) *calm {
	t.Helper()
	g := &calm{t: t, pools: router.NewPools(), table: router.NewTable("uid", nil, time.Now())}
	g.fleet = router.Fleet{
		Epoch: 1, Leasing: router.LeasingOpen, Config: router.DefaultConfig(),
		Senders: []router.Sender{{Name: "train", Access: router.AccessOpen}},
		Members: []router.Member{{Name: "b0", Incarnation: "b0/1", URL: "http://b0", Capacity: 8}},
	}
	g.apply(nil)
	g.table.Lead(1, router.Takeover{}, time.Now())
	g.observe(router.Healthy)
	g.pools.Put(rigKey, g.table)
	cfg.Pools = g.pools
	if cfg.Transport == nil {
		cfg.Transport = &function{calm: g, engine: engine}
	}
	var err error
	if g.proxy, err = proxy.New(cfg); err != nil {
		t.Fatal(err)
	}
	return g
}

func (g *calm) apply(change func(*router.Fleet)) {
	g.t.Helper()
	if change != nil {
		change(&g.fleet)
	}
	if err := g.table.Apply(g.fleet, time.Now()); err != nil {
		g.t.Fatal(err)
	}
}

func (g *calm) observe(h router.Health) {
	g.seq++
	g.table.Observe(router.Observation{Incarnation: "b0/1", Seq: g.seq, Health: h}, time.Now())
}

func (g *calm) snapshot() router.Snapshot { return g.table.Snapshot(time.Now()) }

func (g *calm) order() []string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return append([]string(nil), g.sent...)
}

// function is an engine that is a function, connected in no time.
type function struct {
	calm   *calm
	dial   func(ctx context.Context) error
	engine func(ctx context.Context) (*http.Response, error)
}

// Do connects, asks whether it may begin, and calls the engine.
func (f *function) Do(ctx context.Context, _ string, r *wire.Request) (*http.Response, error) {
	if f.dial != nil {
		if err := f.dial(ctx); err != nil {
			return nil, &wire.Error{Written: wire.NoByte, Stage: "dial", Err: err}
		}
	}
	if err := r.Ready(); err != nil {
		return nil, &wire.Error{Written: wire.NoByte, Stage: "write", Err: err}
	}
	if _, err := io.Copy(io.Discard, r.Body); err != nil {
		return nil, err
	}
	f.calm.mu.Lock()
	f.calm.sent = append(f.calm.sent, r.Header.Get("X-Session-ID"))
	f.calm.mu.Unlock()
	return f.engine(ctx)
}

// atOnce is the reply of an engine that is done.
func atOnce(context.Context) (*http.Response, error) {
	return jsonReply(io.NopCloser(strings.NewReader(plainJSON))), nil
}

func jsonReply(body io.ReadCloser) *http.Response {
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"application/json"}}, Body: body, ContentLength: -1}
}

// after is an engine that takes its time, unless its client goes.
func after(d time.Duration) func(context.Context) (*http.Response, error) {
	return func(ctx context.Context) (*http.Response, error) {
		select {
		case <-time.After(d):
			return atOnce(ctx)
		case <-ctx.Done():
			return nil, &wire.Error{Stage: "read", Err: context.Cause(ctx)}
		}
	}
}

// pass lets virtual time pass.
func pass(d time.Duration) { <-time.After(d) }

// answer is a request to the proxy and what became of it.
type answer struct {
	*httptest.ResponseRecorder
	done   chan struct{}
	hangUp context.CancelFunc
	cut    any
}

// post begins a request of a session.
func (g *calm) post(session string) *answer {
	ctx, cancel := context.WithCancel(g.t.Context())
	a := &answer{ResponseRecorder: httptest.NewRecorder(), done: make(chan struct{}), hangUp: cancel}
	r := httptest.NewRequestWithContext(ctx, "POST", "/v1alpha1/namespaces/rl/inferencepools/policy/senders/train/proxy/generate", strings.NewReader(ask1))
	r.Header.Set("X-Session-ID", session)
	go func() {
		defer close(a.done)
		defer func() { a.cut = recover() }()
		g.proxy.ServeHTTP(a, r)
	}()
	synctest.Wait()
	return a
}

// over reports whether the request is over, once nothing moves any more.
func (a *answer) over() bool {
	synctest.Wait()
	select {
	case <-a.done:
		return true
	default:
		return false
	}
}

package server

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/berthmaster/berthmaster/internal/router"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience bounds every wait for a condition; no test's outcome depends on it.
const patience = time.Minute

// world is a served pool that a test drives from both sides: over HTTP, and as the controller
// and the prober would.
type world struct {
	t      *testing.T
	pools  *router.Pools
	table  *router.Table
	server *Server
	client *http.Client
	// base is the URL of the server, pool the URL of the pool.
	base, pool string
	key        router.PoolKey
	fleet      router.Fleet
	seq        uint64
	stop       func() error

	mu   sync.Mutex
	now  time.Time
	wall bool // time is the machine's, for tests with engines
}

// newWorld serves a pool of n healthy backends of capacity 64, with senders train and eval;
// change adapts the configuration and the fleet first.
func newWorld(t *testing.T, n int, change ...func(*Config, *router.Fleet)) *world {
	t.Helper()
	w := &world{t: t, pools: router.NewPools(), key: router.PoolKey{Namespace: "rl", Name: "policy"}, now: time.Unix(1_700_000_000, 0)}
	w.fleet = router.Fleet{
		Epoch: 1, Leasing: router.LeasingOpen, Config: router.DefaultConfig(),
		Senders: []router.Sender{{Name: "train", Access: router.AccessOpen, MinGeneration: 3}, {Name: "eval", Access: router.AccessOpen}},
	}
	for i := range n {
		w.fleet.Members = append(w.fleet.Members, member(i))
	}
	c := Config{Pools: w.pools, Keys: Keys{Current: key(7)}, Clock: w.clock}
	for _, f := range change {
		f(&c, &w.fleet)
	}
	w.table = router.NewTable("uid-1", nil, w.now)
	w.table.Lead(1, router.Takeover{}, w.now)
	w.apply()
	w.healthy()
	w.pools.Put(w.key, w.table)
	w.serve(c)
	return w
}

func member(i int) router.Member {
	return router.Member{
		Name: router.BackendName(fmt.Sprintf("b%d", i)), Incarnation: router.Incarnation(fmt.Sprintf("pod-%d/c-1", i)),
		URL: fmt.Sprintf("http://127.0.0.1:%d", 30000+i), Capacity: 64,
	}
}

// serve starts the server on a port of its own, and stops it with the test.
func (w *world) serve(c Config) {
	w.t.Helper()
	s, err := New(c)
	if err != nil {
		w.t.Fatal(err)
	}
	var lc net.ListenConfig
	l, err := lc.Listen(w.t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		w.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Serve(ctx, l) }()
	w.stop = sync.OnceValue(func() error { cancel(); return <-done })
	w.server, w.base = s, "http://"+l.Addr().String()
	w.pool = w.base + "/v1alpha1/namespaces/rl/inferencepools/policy"
	transport := &http.Transport{MaxIdleConnsPerHost: 64}
	w.client = &http.Client{Transport: transport, Timeout: patience}
	w.t.Cleanup(func() {
		transport.CloseIdleConnections() // Shutdown gives connections without a call five seconds
		if err := w.stop(); err != nil {
			w.t.Error(err)
		}
	})
}

func (w *world) clock() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.wall {
		return time.Now()
	}
	return w.now
}

func (w *world) sleep(d time.Duration) {
	w.mu.Lock()
	w.now = w.now.Add(d)
	w.mu.Unlock()
	w.table.Tick(w.clock())
}

func (w *world) apply() {
	w.t.Helper()
	if err := w.table.Apply(w.fleet, w.clock()); err != nil {
		w.t.Fatal(err)
	}
}

// change edits the fleet and applies it.
func (w *world) change(f func(*router.Fleet)) {
	w.t.Helper()
	f(&w.fleet)
	w.apply()
}

// healthy lets the prober say that every member answers, with the published version.
func (w *world) healthy() {
	for _, m := range w.fleet.Members {
		w.observe(m.Incarnation, router.Healthy)
	}
}

func (w *world) observe(inc router.Incarnation, h router.Health) {
	w.seq++
	w.table.Observe(router.Observation{Incarnation: inc, Seq: w.seq, Health: h, Version: w.fleet.Published, EngineTotal: -1}, w.clock())
}

// object is a JSON object as clients see it.
type object = map[string]any

// reply is an answer of the server.
type reply struct {
	status int
	header http.Header
	body   object
	raw    string
}

func (r reply) text(path ...string) string {
	var v any = r.body
	for _, p := range path {
		m, _ := v.(object)
		v = m[p]
	}
	if v == nil {
		return ""
	}
	return fmt.Sprint(v)
}

func (r reply) reason() string { return r.text("reason") }

// do makes a call; body is nil, a string sent as it is, or a value sent as JSON.
func (w *world) do(method, url string, body any) reply {
	w.t.Helper()
	r, err := w.try(w.t.Context(), method, url, body)
	if err != nil {
		w.t.Fatal(err)
	}
	return r
}

func (w *world) try(ctx context.Context, method, url string, body any) (reply, error) {
	req, err := http.NewRequestWithContext(ctx, method, url, bodyOf(body))
	if err != nil {
		return reply{}, err
	}
	req.Header.Set("Content-Type", "application/json")
	return w.send(req)
}

// send makes a call and holds its answer to the published document.
func (w *world) send(req *http.Request) (reply, error) {
	var sent []byte
	if req.GetBody != nil {
		body, err := req.GetBody()
		if err != nil {
			return reply{}, err
		}
		if sent, err = io.ReadAll(body); err != nil {
			return reply{}, err
		}
	}
	res, err := w.client.Do(req)
	if err != nil {
		return reply{}, err
	}
	defer res.Body.Close()
	raw, err := io.ReadAll(res.Body)
	if err != nil {
		return reply{}, err
	}
	out := reply{status: res.StatusCode, header: res.Header, raw: string(raw)}
	if len(raw) > 0 {
		if err := json.Unmarshal(raw, &out.body); err != nil {
			return out, fmt.Errorf("%s %s answered %q: %w", req.Method, req.URL, raw, err)
		}
	}
	c, err := published()
	if err != nil {
		return out, err
	}
	if err := c.holds(req, sent, out); err != nil {
		return out, fmt.Errorf("%s %s answered %d %s: not as docs/openapi.yaml says: %w", req.Method, req.URL, out.status, raw, err)
	}
	return out, nil
}

func bodyOf(body any) io.Reader {
	switch v := body.(type) {
	case nil:
		return nil
	case string:
		return strings.NewReader(v)
	default:
		raw, err := json.Marshal(v)
		if err != nil {
			panic(err)
		}
		return bytes.NewReader(raw)
	}
}

// ask is the body of an acquire by train; more overrides fields, nil removes one.
func ask(id, session string, more ...object) object {
	o := object{"requestID": id, "sessionID": session, "sender": "train", "senderGeneration": 3, "epoch": 1}
	for _, m := range more {
		for k, v := range m {
			if o[k] = v; v == nil {
				delete(o, k)
			}
		}
	}
	return o
}

func (w *world) acquire(id, session string, more ...object) reply {
	w.t.Helper()
	return w.do(http.MethodPost, w.pool+"/leases", ask(id, session, more...))
}

// lease acquires and demands a new lease.
func (w *world) lease(id, session string, more ...object) reply {
	w.t.Helper()
	r := w.acquire(id, session, more...)
	if r.status != http.StatusCreated {
		w.t.Fatalf("acquire %s: %d %s", id, r.status, r.raw)
	}
	return r
}

func (w *world) renew(id string, body any) reply {
	w.t.Helper()
	return w.do(http.MethodPost, w.pool+"/leases/"+id+"/renew", body)
}

func (w *world) release(id string, body any) reply {
	w.t.Helper()
	return w.do(http.MethodPost, w.pool+"/leases/"+id+"/release", body)
}

func (w *world) snapshot() router.Snapshot { return w.table.Snapshot(w.clock()) }

func (w *world) outstanding() int64 {
	var n int64
	for _, b := range w.snapshot().Backends {
		n += b.Outstanding
	}
	return n
}

// eventually polls until ok, on a ticker and not on the test's clock.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	deadline := time.NewTimer(patience)
	defer deadline.Stop()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for !ok() {
		select {
		case <-tick.C:
		case <-deadline.C:
			t.Fatal("in vain: ", what)
		}
	}
}

func want(t *testing.T, r reply, status int, reason string) {
	t.Helper()
	if r.status != status || r.reason() != reason {
		t.Fatalf("got %d %s, want %d %s: %s", r.status, r.reason(), status, reason, r.raw)
	}
}

package proxy_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/berthmaster/berthmaster/internal/enginesim"
	"github.com/berthmaster/berthmaster/internal/enginesim/execlog"
	"github.com/berthmaster/berthmaster/internal/router"
	"github.com/berthmaster/berthmaster/internal/router/proxy"
	"github.com/berthmaster/berthmaster/internal/router/proxy/wire"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// rig is a pool, its proxy on a real socket, and a settler whose time runs only while something
// waits to be settled.
type rig struct {
	t     *testing.T
	table *router.Table
	pools *router.Pools
	proxy *proxy.Handler
	fleet router.Fleet
	base  string // the proxy's base URL for sender train
	seq   uint64
	ahead atomic.Int64 // how far the rig's clock is ahead of the machine's
}

var rigKey = router.PoolKey{Namespace: "rl", Name: "policy"}

// newRig makes a pool of the engines at these URLs.
func newRig(t *testing.T, cfg proxy.Config, urls ...string) *rig {
	t.Helper()
	g := &rig{t: t, pools: router.NewPools()}
	g.table = router.NewTable("uid", nil, time.Now())
	g.fleet = router.Fleet{
		Epoch: 1, Leasing: router.LeasingOpen, Config: router.DefaultConfig(),
		Senders: []router.Sender{{Name: "train", Access: router.AccessOpen}, {Name: "eval", Access: router.AccessOpen}},
	}
	for i, url := range urls {
		name := fmt.Sprintf("b%d", i)
		g.fleet.Members = append(g.fleet.Members, router.Member{
			Name: router.BackendName(name), Incarnation: router.Incarnation(name + "/1"), URL: strings.TrimRight(url, "/"), Capacity: 8})
	}
	g.apply()
	g.table.Lead(1, router.Takeover{}, g.now())
	g.observe(router.Healthy)
	g.pools.Put(rigKey, g.table)
	g.serve(cfg)
	g.settle()
	return g
}

func (g *rig) now() time.Time { return time.Now().Add(time.Duration(g.ahead.Load())) }

func (g *rig) apply() {
	g.t.Helper()
	if err := g.table.Apply(g.fleet, g.now()); err != nil {
		g.t.Fatal(err)
	}
}

// observe tells the table of every backend's health, as a prober would.
func (g *rig) observe(health router.Health) {
	g.seq++
	for _, m := range g.fleet.Members {
		g.table.Observe(router.Observation{Incarnation: m.Incarnation, Seq: g.seq, Health: health}, g.now())
	}
}

func (g *rig) serve(cfg proxy.Config) {
	g.t.Helper()
	transport := wire.New(wire.Config{})
	cfg.Pools, cfg.Clock = g.pools, g.now
	if cfg.Transport == nil {
		cfg.Transport = transport
	}
	cfg.Limits.SpoolDir, cfg.Limits.Look = g.t.TempDir(), 5*time.Millisecond
	var err error
	if g.proxy, err = proxy.New(cfg); err != nil {
		g.t.Fatal(err)
	}
	srv := httptest.NewServer(g.proxy)
	g.base = srv.URL + "/v1alpha1/namespaces/rl/inferencepools/policy/senders/train/proxy"
	g.t.Cleanup(func() {
		srv.Close()
		transport.Close()
	})
}

// settle asks the engines what the table wants to know, and lets time run while it waits for that.
func (g *rig) settle() {
	ctx, cancel := context.WithCancel(context.Background())
	var done sync.WaitGroup
	done.Go(func() {
		for ctx.Err() == nil {
			g.settleOnce(ctx)
			select {
			case <-time.After(2 * time.Millisecond):
			case <-ctx.Done():
			}
		}
	})
	g.t.Cleanup(func() { cancel(); done.Wait() })
}

func (g *rig) settleOnce(ctx context.Context) {
	held := int64(0)
	for _, b := range g.snapshot().Backends {
		held += b.Held
	}
	if held > 0 {
		g.ahead.Add(int64(250 * time.Millisecond))
	}
	for _, c := range g.table.Chores(g.now()) {
		var aborted []router.RID
		for _, rid := range c.Abort {
			if status, _ := ask(ctx, c.URL+"/abort_request", fmt.Sprintf(`{"rid":%q}`, rid)); status == 200 {
				aborted = append(aborted, rid)
			}
		}
		g.table.AbortAnswered(c.Incarnation, aborted, g.now())
		if c.ReadLoads {
			if ranks, ok := loads(ctx, c.URL); ok {
				g.table.LoadsRead(c.Incarnation, c.Stamp, ranks, g.now())
			}
		}
	}
}

func loads(ctx context.Context, url string) (out []router.RankLoad, ok bool) {
	status, text := ask(ctx, url+"/v1/loads", "")
	var reply struct {
		Loads []struct {
			Timestamp json.Number `json:"timestamp"`
			Rank      int         `json:"dp_rank"`
			Running   int64       `json:"num_running_reqs"`
			Waiting   int64       `json:"num_waiting_reqs"`
		} `json:"loads"`
	}
	if status != 200 || json.Unmarshal([]byte(text), &reply) != nil {
		return nil, false
	}
	for _, l := range reply.Loads {
		at, _ := l.Timestamp.Float64()
		out = append(out, router.RankLoad{Rank: l.Rank, Clock: at, Total: l.Running + l.Waiting})
	}
	return out, true
}

// ask makes one call on a connection of its own.
func ask(ctx context.Context, url, body string) (int, string) {
	method := http.MethodGet
	if body != "" {
		method = http.MethodPost
	}
	req, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader(body))
	if err != nil {
		return 0, err.Error()
	}
	req.Close = true
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, err.Error()
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		return resp.StatusCode, string(text) + "!" + err.Error()
	}
	return resp.StatusCode, string(text)
}

func (g *rig) snapshot() router.Snapshot { return g.table.Snapshot(g.now()) }

// counted is what is counted on all backends now.
func (g *rig) counted() (n int64) {
	for _, b := range g.snapshot().Backends {
		n += b.Outstanding
	}
	return n
}

func (g *rig) backend(name string) router.BackendSnapshot {
	for _, b := range g.snapshot().Backends {
		if string(b.Name) == name {
			return b
		}
	}
	return router.BackendSnapshot{}
}

// released is how often leases were released with that outcome.
func (g *rig) released(o router.Outcome) int64 { return g.snapshot().Totals.Released[o] }

// eventually waits up to a minute for a condition.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !ok(); {
		if time.Now().After(end) {
			t.Fatalf("in a minute it did not come true that %s", what)
		}
		<-time.After(time.Millisecond)
	}
}

// post sends a generation through the proxy.
func (g *rig) post(path, body string, head ...string) (int, string) {
	status, text, _ := g.send(context.Background(), path, body, head...)
	return status, text
}

func (g *rig) send(ctx context.Context, path, body string, head ...string) (int, string, http.Header) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, g.base+path, strings.NewReader(body))
	if err != nil {
		g.t.Error(err)
		return 0, "", nil
	}
	req.Close = true
	req.Header.Set("Content-Type", "application/json")
	for i := 0; i+1 < len(head); i += 2 {
		req.Header.Set(head[i], head[i+1])
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, err.Error(), nil
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		return resp.StatusCode, string(text) + "!" + err.Error(), resp.Header
	}
	return resp.StatusCode, string(text), resp.Header
}

// log is an execution log in memory.
type log struct {
	mu      sync.Mutex
	records []execlog.Record
}

// Append keeps a record.
func (l *log) Append(record any) error {
	r, ok := record.(execlog.Record)
	if !ok {
		return errors.New("not an engine's record")
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.records = append(l.records, r)
	return nil
}

// events are the lines of one kind.
func (l *log) events(e execlog.Event) (out []execlog.Record) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, r := range l.records {
		if r.Event == e {
			out = append(out, r)
		}
	}
	return out
}

// simulated starts a simulated engine. It lives 200 times as fast as a real one.
func simulated(t *testing.T, cfg enginesim.Config) (url string, executions *log) {
	t.Helper()
	executions = &log{}
	cfg.Log = executions
	if cfg.Speed == 0 {
		cfg.Speed = 200
	}
	cfg.StreamInterval = time.Millisecond
	engine, err := enginesim.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	socket, err := engine.Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var done sync.WaitGroup
	done.Go(func() {
		if err := socket.Serve(); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(func() { engine.Close(); done.Wait() })
	return socket.URL(), executions
}

// scripted is an engine that does to each generation what a function says, on the bare connection.
// Aborts and loads it answers as an idle engine does.
type scripted struct {
	url       string
	generated atomic.Int64 // generations that began to arrive
	accepted  atomic.Int64 // connections
	mu        sync.Mutex
	bodies    []string      // guarded by mu
	heads     []http.Header // guarded by mu
}

// verdict says whether the connection is to be used on.
type verdict uint8

const (
	stayOpen verdict = iota
	hangUp
	reset
)

func script(t *testing.T, generation func(n int64, c net.Conn, r *bufio.Reader, body string) verdict) *scripted {
	t.Helper()
	return listen(t, func(s *scripted, c net.Conn) { s.talk(c, generation) })
}

// listen serves each connection by a function, until the test ends.
func listen(t *testing.T, talk func(s *scripted, c net.Conn)) *scripted {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &scripted{url: "http://" + l.Addr().String()}
	var handlers sync.WaitGroup
	var open sync.Map
	handlers.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			s.accepted.Add(1)
			open.Store(c, nil)
			handlers.Go(func() {
				defer c.Close()
				defer open.Delete(c)
				talk(s, c)
			})
		}
	})
	t.Cleanup(func() {
		l.Close()
		open.Range(func(c, _ any) bool { c.(net.Conn).Close(); return true })
		handlers.Wait()
	})
	return s
}

// scriptRaw is script for an engine that may not read a generation to its end. It is told of each
// when its first bytes are there.
func scriptRaw(t *testing.T, generation func(c net.Conn, r *bufio.Reader) verdict) *scripted {
	t.Helper()
	return listen(t, func(s *scripted, c net.Conn) {
		r := bufio.NewReader(c)
		for {
			if head, err := r.Peek(len("POST /g")); err != nil {
				return
			} else if string(head) == "POST /g" {
				s.generated.Add(1)
				end(c, generation(c, r))
				return
			}
			if !s.chores(c, r) {
				return
			}
		}
	})
}

// chores answers one abort or look at the loads.
func (s *scripted) chores(c net.Conn, r *bufio.Reader) bool {
	req, err := http.ReadRequest(r)
	if err != nil {
		return false
	}
	if _, err := io.Copy(io.Discard, req.Body); err != nil {
		return false
	}
	return answerChore(c, req.URL.Path)
}

// answerChore answers aborts and looks at the loads as an idle engine does, and nothing else.
func answerChore(c net.Conn, path string) bool {
	switch path {
	case "/abort_request":
		fmt.Fprint(c, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
	case "/v1/loads":
		now := time.Now()
		text := fmt.Sprintf(`{"loads":[{"timestamp":%d.%09d,"dp_rank":0}]}`, now.Unix(), now.Nanosecond())
		fmt.Fprintf(c, "HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s", len(text), text)
	default:
		return false
	}
	return true
}

// end does to a connection what the verdict says, before it is closed.
func end(c net.Conn, v verdict) {
	if v == reset {
		_ = c.(*net.TCPConn).SetLinger(0)
	}
}

func (s *scripted) talk(c net.Conn, generation func(n int64, c net.Conn, r *bufio.Reader, body string) verdict) {
	r := bufio.NewReader(c)
	for {
		req, err := http.ReadRequest(r)
		if err != nil {
			return
		}
		body, err := io.ReadAll(req.Body)
		if err != nil {
			return
		}
		if answerChore(c, req.URL.Path) {
			continue
		}
		s.mu.Lock()
		s.bodies, s.heads = append(s.bodies, string(body)), append(s.heads, req.Header)
		s.mu.Unlock()
		if v := generation(s.generated.Add(1), c, r, string(body)); v != stayOpen {
			end(c, v)
			return
		}
	}
}

// last is the last generation's body and headers.
func (s *scripted) last() (string, http.Header) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.bodies) == 0 {
		return "", nil
	}
	return s.bodies[len(s.bodies)-1], s.heads[len(s.heads)-1]
}

// Replies of a well-behaved engine.
const (
	plainJSON = `{"text":"ok","meta_info":{"id":"r","finish_reason":{"type":"length","length":3},"prompt_tokens":5,"completion_tokens":3,"weight_version":"v1"}}`
	eventText = "data: {\"text\":\"o\",\"meta_info\":{\"finish_reason\":null,\"completion_tokens\":1}}\n\n" +
		"data: {\"text\":\"ok\",\"meta_info\":{\"finish_reason\":{\"type\":\"stop\"},\"prompt_tokens\":5,\"completion_tokens\":3}}\n\n" +
		"data: [DONE]\n\n"
)

func sized(status int, kind, text string) string {
	return fmt.Sprintf("HTTP/1.1 %d %s\r\nContent-Type: %s\r\nContent-Length: %d\r\n\r\n%s", status, http.StatusText(status), kind, len(text), text)
}

func plain(text string) string { return sized(200, "application/json", text) }

// streamed is a stream of events, one chunk for each piece, without the end that chunks have.
func streamed(pieces ...string) string {
	out := "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream; charset=utf-8\r\nTransfer-Encoding: chunked\r\n\r\n"
	for _, p := range pieces {
		out += fmt.Sprintf("%x\r\n%s\r\n", len(p), p)
	}
	return out
}

const lastChunk = "0\r\n\r\n"

// replies always answers with the same bytes.
func replies(text string, v verdict) func(int64, net.Conn, *bufio.Reader, string) verdict {
	return func(_ int64, c net.Conn, _ *bufio.Reader, _ string) verdict {
		_, _ = io.WriteString(c, text)
		return v
	}
}

// closedPort is the address of nobody.
func closedPort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return "http://" + l.Addr().String()
}

package client

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// asked is one call that the fake router received.
type asked struct {
	Method, Path, Auth string
	Body               map[string]any
	At                 time.Time
}

// router is a fake of the lease API. It grants leases on its engines in turn and keeps a log;
// override, if it returns a status, answers instead.
type router struct {
	engines  []string
	lease    map[string]any // overrides fields of a lease
	override func(a asked, n int) (status int, body any)

	mu     sync.Mutex
	log    []asked // guarded by mu
	leases int     // guarded by mu
}

// errLost, as a body, cuts the router's answer.
var errLost = errors.New("connection reset by peer")

func (r *router) RoundTrip(req *http.Request) (*http.Response, error) {
	call := asked{Method: req.Method, Path: strings.TrimPrefix(req.URL.RequestURI(), "/pool"), At: time.Now()}
	call.Auth = req.Header.Get("Authorization")
	if req.Body != nil {
		if err := json.NewDecoder(req.Body).Decode(&call.Body); err != nil {
			return nil, err
		}
	}
	r.mu.Lock()
	n := 0
	for _, earlier := range r.log {
		if kindOf(earlier) == kindOf(call) {
			n++
		}
	}
	r.log = append(r.log, call)
	r.mu.Unlock()
	if err := req.Context().Err(); err != nil {
		return nil, err
	}
	status, body := 0, any(nil)
	if r.override != nil {
		status, body = r.override(call, n)
	}
	if err := letWait(req.Context(), &body); err != nil {
		return nil, err
	}
	if status == 0 {
		status, body = r.usual(call)
	}
	if err, lost := body.(error); lost {
		return nil, err
	}
	rec := httptest.NewRecorder()
	if text, raw := body.(string); raw {
		rec.WriteHeader(status)
		_, _ = rec.WriteString(text)
		return rec.Result(), nil
	}
	if after, ok := body.(map[string]any)["retryAfter"].(string); ok {
		rec.Header().Set("Retry-After", after)
	}
	rec.WriteHeader(status)
	_ = json.NewEncoder(rec).Encode(body)
	return rec.Result(), nil
}

// waited is a body that comes after a while; a time.Duration is one whose answer is the usual.
type waited struct {
	wait time.Duration
	body any
}

// letWait waits as body says and leaves in it what to answer.
func letWait(ctx context.Context, body *any) error {
	var wait time.Duration
	switch b := (*body).(type) {
	case time.Duration:
		wait = b
	case waited:
		wait, *body = b.wait, b.body
	default:
		return nil
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// kindOf tells calls apart: acquire, renew, release, end.
func kindOf(a asked) string {
	switch {
	case a.Method == http.MethodDelete:
		return "end"
	case strings.HasSuffix(a.Path, "/renew"):
		return "renew"
	case strings.HasSuffix(a.Path, "/release"):
		return "release"
	}
	return "acquire"
}

func (r *router) usual(a asked) (int, any) {
	switch kindOf(a) {
	case "acquire":
		r.mu.Lock()
		defer r.mu.Unlock()
		host := r.engines[r.leases%len(r.engines)]
		r.leases++
		lease := map[string]any{
			"requestID": a.Body["requestID"], "rid": "rid-of-" + a.Body["requestID"].(string), "token": "secret",
			"backend":    map[string]any{"name": host, "incarnation": host + "/1", "url": "http://" + host + ":30000"},
			"ttlSeconds": 120, "startSeconds": 30, "weightVersion": "v7", "epoch": 4, "term": 2,
		}
		for field, value := range r.lease {
			lease[field] = value
		}
		return 201, lease
	case "renew":
		return 200, map[string]any{"ttlSeconds": 120, "startSeconds": 30, "mixed": false, "state": map[string]any{}}
	case "release":
		fate := ""
		switch a.Body["outcome"] {
		case "Ambiguous":
			fate = "Dead"
		case "Cancelled":
			fate = "Pending"
		}
		return 200, map[string]any{"outcome": a.Body["outcome"], "fate": fate}
	}
	return 204, map[string]any{}
}

// calls returns the log of one kind, or all of it.
func (r *router) calls(kind string) []asked {
	r.mu.Lock()
	defer r.mu.Unlock()
	var of []asked
	for _, a := range r.log {
		if kind == "" || kindOf(a) == kind {
			of = append(of, a)
		}
	}
	return of
}

// problem is an answer of the router that refuses.
func problem(status int, reason string) (int, any) {
	return status, map[string]any{"status": status, "reason": reason, "detail": "because"}
}

// engines is a set of fake engines by host, behind pipes, so that they work in virtual time.
type engines struct {
	t        *testing.T
	handlers map[string]http.HandlerFunc
	servers  []*http.Server
	doors    map[string]*door

	mu    sync.Mutex
	posts []posted // guarded by mu
	dials int      // guarded by mu
}

type posted struct {
	Host, Route, RID, Turn, Auth string
}

// door is a listener whose connections are pipes.
type door struct {
	conns chan net.Conn
	shut  chan struct{}
	once  sync.Once
}

func (d *door) Accept() (net.Conn, error) {
	select {
	case c := <-d.conns:
		return c, nil
	case <-d.shut:
		return nil, net.ErrClosed
	}
}

func (d *door) Close() error {
	d.once.Do(func() { close(d.shut) })
	return nil
}

func (d *door) Addr() net.Addr { return &net.TCPAddr{} }

func newEngines(t *testing.T, handlers map[string]http.HandlerFunc) *engines {
	e := &engines{t: t, handlers: handlers, doors: map[string]*door{}}
	for host, handle := range handlers {
		d := &door{conns: make(chan net.Conn), shut: make(chan struct{})}
		e.doors[host] = d
		server := &http.Server{Handler: e.noting(host, handle)}
		e.servers = append(e.servers, server)
		go func() { _ = server.Serve(d) }()
	}
	return e
}

func (e *engines) noting(host string, handle http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		raw, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		var body struct {
			RID string `json:"rid"`
		}
		_ = json.Unmarshal(raw, &body)
		e.mu.Lock()
		e.posts = append(e.posts, posted{host, r.URL.RequestURI(), body.RID, r.Header.Get("X-Turn"), r.Header.Get("Authorization")})
		e.mu.Unlock()
		handle(w, r)
	}
}

func (e *engines) dial(ctx context.Context, _, address string) (net.Conn, error) {
	e.mu.Lock()
	e.dials++
	e.mu.Unlock()
	host, _, _ := net.SplitHostPort(address)
	d := e.doors[host]
	if d == nil {
		return nil, &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
	}
	ours, theirs := net.Pipe()
	select {
	case d.conns <- theirs:
		return ours, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (e *engines) seen() []posted {
	e.mu.Lock()
	defer e.mu.Unlock()
	return append([]posted(nil), e.posts...)
}

func (e *engines) close() {
	for _, s := range e.servers {
		_ = s.Close()
	}
}

// stage is a pool with a fake router and fake engines, in a bubble of virtual time.
type stage struct {
	*Pool
	router  *router
	engines *engines
	session *Session
}

func onStage(t *testing.T, r *router, handlers map[string]http.HandlerFunc, story func(t *testing.T, s stage), change ...func(*Config)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		e := newEngines(t, handlers)
		if r.engines == nil {
			r.engines = []string{"a"}
		}
		config := Config{
			BaseURL: "http://router/pool//", Transport: r, Dial: e.dial, Jitter: func() float64 { return 0.5 },
		}
		for _, c := range change {
			c(&config)
		}
		pool, err := New(config)
		if err != nil {
			t.Fatal(err)
		}
		session := pool.Session(SessionConfig{ID: "s1", Sender: "train", SenderGeneration: 3, Epoch: 4, Group: "g1"})
		story(t, stage{pool, r, e, session})
		pool.Close()
		e.close()
		synctest.Wait()
	})
}

// well is an engine in order.
func well(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, goodReply) }

const goodReply = `{"text":"hi","meta_info":{"finish_reason":{"type":"stop","matched":1},"weight_version":"v7","completion_tokens":12}}`

// reply answers with a status and a body.
func reply(status int, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}
}

// cutAfter writes raw bytes and closes the connection.
func cutAfter(raw string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		conn, _, err := w.(http.Hijacker).Hijack()
		if err != nil {
			panic(err)
		}
		_, _ = io.WriteString(conn, raw)
		_ = conn.Close()
	}
}

// hangs never answers; it ends when the caller goes away.
func hangs(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }

// slow answers after d.
func slow(d time.Duration) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		timer := time.NewTimer(d)
		defer timer.Stop()
		select {
		case <-timer.C:
			well(w, r)
		case <-r.Context().Done():
		}
	}
}

func events(lines ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
		for _, line := range lines {
			_, _ = io.WriteString(w, "data: "+line+"\n\n")
		}
	}
}

var aTurn = Request{Body: map[string]any{"text": "hello", "rid": "the caller's own"}, Header: http.Header{"X-Turn": {"7"}}}

package proxy

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/berthmaster/berthmaster/internal/router"
	"github.com/berthmaster/berthmaster/internal/router/proxy/wire"
)

// recorder is an engine that answers everything and keeps what it was sent.
type recorder struct {
	t    *testing.T
	sent []*wire.Request
	body []byte
}

func (e *recorder) Do(_ context.Context, _ string, r *wire.Request) (*http.Response, error) {
	if r.Ready != nil {
		if err := r.Ready(); err != nil {
			return nil, err
		}
	}
	var err error
	if e.body = nil; r.Body != nil {
		if e.body, err = io.ReadAll(r.Body); err != nil {
			e.t.Fatal(err)
		}
	}
	if int64(len(e.body)) != r.Length {
		e.t.Fatalf("%d bytes are sent as %d", len(e.body), r.Length)
	}
	e.sent = append(e.sent, r)
	const reply = `{"text":"ok","meta_info":{"id":"x","finish_reason":{"type":"stop"},"completion_tokens":1}}`
	return &http.Response{
		StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"application/json"}}, ContentLength: int64(len(reply)),
		Body: io.NopCloser(strings.NewReader(reply)),
	}, nil
}

// FuzzProxy makes one call of any method, path, query, session and body. What reaches an engine is what was
// sent but for its rid, the caller's credentials do not, every refusal is one that the proxy has, and nothing stays counted.
func FuzzProxy(f *testing.F) {
	for _, seed := range [][5]string{
		{http.MethodPost, "/generate", "", "s", `{"text":"hello","sampling_params":{"n":2}}`},
		{http.MethodPost, "/v1/chat/completions", "", "", `{"messages":[{"role":"user","content":"hi"}],"rid":"mine","user":"u"}`},
		{http.MethodPost, "/v1/completions", "a=b", "x y", `{"prompt":["a","b"],"rid":["a","b"],"rid":null,"n":"3"}`},
		{http.MethodPost, "/generate", "", "", `{"input_embeds":[[[1]],[[2]]]}`}, {http.MethodPost, "/generate", "", "", "[]"},
		{http.MethodGet, "/v1/models", "", "", ""}, {http.MethodGet, "//health", "", "", ""}, {http.MethodPost, "/pause_generation", "", "", "{}"},
		{http.MethodPost, "/finish_session", "session_id=s", "", ""}, {http.MethodPut, "/../../x", "%zz", "", "{"},
		{http.MethodPost, "/v1/embeddings", "", "", `{"input":[[1,2],[3]]}`},
	} {
		f.Add(seed[0], seed[1], seed[2], seed[3], seed[4])
	}
	known := statuses()
	f.Fuzz(func(t *testing.T, method, path, query, session, body string) {
		engine := &recorder{t: t}
		h, table := fuzzedProxy(t, engine)
		r, err := http.NewRequestWithContext(t.Context(), method, "http://x/", strings.NewReader(body))
		if err != nil {
			return // no method of HTTP
		}
		const base = "/v1alpha1/namespaces/rl/inferencepools/policy/senders/train/proxy"
		if r.URL, err = url.ParseRequestURI(base + path + "?" + query); err != nil || strings.ContainsAny(path+query, " ") {
			return // no target that a request line can have
		}
		r.Header = http.Header{"X-Session-Id": {session}, "Authorization": {"Bearer secret"}, "Cookie": {"secret"}}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if w.Code >= 400 {
			var p problem
			if err := json.Unmarshal(w.Body.Bytes(), &p); err != nil || known[p.Reason] != w.Code {
				t.Fatalf("%s %q %q: answered %d %s", method, path, body, w.Code, w.Body)
			}
		}
		if len(engine.sent) > 1 {
			t.Fatalf("%s %q %q: sent %d times", method, path, body, len(engine.sent))
		}
		for _, q := range engine.sent {
			checkSent(t, q, engine.body, body)
		}
		for _, b := range table.Snapshot(time.Unix(1_700_000_000, 0)).Backends {
			if b.Outstanding != 0 {
				t.Fatalf("%s %q %q: %d executions stay counted", method, path, body, b.Outstanding)
			}
		}
	})
}

// checkSent compares what an engine was sent with what the client sent.
func checkSent(t *testing.T, q *wire.Request, got []byte, sent string) {
	t.Helper()
	for name, values := range q.Header {
		if strings.Contains(strings.Join(values, ""), "secret") {
			t.Fatalf("the caller's credentials reach an engine, in %s", name)
		}
	}
	if strings.ContainsAny(q.Target, " \r\n") || !strings.HasPrefix(q.Target, "/") {
		t.Fatalf("an engine is asked for %q", q.Target)
	}
	if q.Ready == nil { // it was not leased, and so has no rid
		if string(got) != sent {
			t.Fatalf("sent %q, passed on %q", sent, got)
		}
		return
	}
	var before, after map[string]any
	if json.Unmarshal([]byte(sent), &before) != nil {
		return // what is no JSON by the letter, such as NaN, is for the engine to judge
	}
	if err := json.Unmarshal(got, &after); err != nil {
		t.Fatalf("%q became %q: %v", sent, got, err)
	}
	delete(before, "rid")
	delete(after, "rid")
	if !reflect.DeepEqual(before, after) {
		t.Fatalf("%q became %q in more than its rid", sent, got)
	}
}

// fuzzedProxy is a proxy of one pool, of one backend.
func fuzzedProxy(t *testing.T, engine *recorder) (*Handler, *router.Table) {
	now := time.Unix(1_700_000_000, 0)
	table := router.NewTable("uid-1", nil, now)
	table.Lead(1, router.Takeover{}, now)
	fleet := router.Fleet{
		Epoch: 1, Leasing: router.LeasingOpen, Config: router.DefaultConfig(), Senders: []router.Sender{{Name: "train", Access: router.AccessOpen}},
		Members: []router.Member{{Name: "b0", Incarnation: "b0/1", URL: "http://b0", Capacity: 8}},
	}
	if err := table.Apply(fleet, now); err != nil {
		t.Fatal(err)
	}
	table.Observe(router.Observation{Incarnation: "b0/1", Seq: 1, Health: router.Healthy, EngineTotal: -1}, now)
	pools := router.NewPools()
	pools.Put(router.PoolKey{Namespace: "rl", Name: "policy"}, table)
	h, err := New(Config{Pools: pools, Transport: engine, Clock: func() time.Time { return now }, Limits: Limits{SpoolDir: t.TempDir()}})
	if err != nil {
		t.Fatal(err)
	}
	return h, table
}

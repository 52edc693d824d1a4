package conformance

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/berthmaster/berthmaster/internal/enginesim"
)

var (
	engineURL   = flag.String("engine-url", "", "server to test instead of the simulator")
	engineGrant = flag.String("engine-grant", "", "what may be done to it: admin,weights,keys")
	engineModel = flag.String("engine-model", "", "model path that update rows load on it")
	apiKey      = flag.String("engine-api-key", "", "its api key")
	adminKey    = flag.String("engine-admin-key", "", "its admin key")
	longest     = flag.Int("engine-max-new-tokens", 30000, "an output it accepts and takes long to generate")
)

// need is what a row needs of the server under test.
type need string

const (
	nothing need = ""
	admin   need = "admin"
	weights need = "weights"
	keys    need = "keys"
	// simulator: the row starts the engine in its own way or ends it.
	simulator need = "simulator"
)

// row is one claim of the description of the API.
type row struct {
	section string
	claim   string
	needs   need
	config  func(*enginesim.Config) // of the simulator; nil: as it comes
	check   func(*testing.T, *engine)
}

// patience bounds every wait for a condition; nothing waits that long unless it is broken.
const patience = 60 * time.Second

// speed is how much faster than a real engine the simulator lives here.
const speed = 20

// engine is the server under test as a client sees it.
type engine struct {
	url       string
	key       string
	adminKey  string
	model     string
	second    time.Duration // how long a second of the engine takes
	endless   int           // more tokens than any row waits for
	simulated *enginesim.Server
	client    *http.Client
	names     atomic.Int64
}

// start returns the server under test for a row: a simulator of its own, or the one that was given.
func start(t *testing.T, r row) *engine {
	t.Helper()
	client := &http.Client{Transport: &http.Transport{}}
	t.Cleanup(client.CloseIdleConnections)
	if *engineURL != "" {
		if r.needs != nothing && !slices.Contains(strings.Split(*engineGrant, ","), string(r.needs)) {
			t.Skipf("needs %s", r.needs)
		}
		return &engine{
			url: strings.TrimRight(*engineURL, "/"), key: *apiKey, adminKey: *adminKey, model: *engineModel,
			second: time.Second, endless: *longest, client: client,
		}
	}
	cfg := enginesim.Config{Speed: speed}
	if r.config != nil {
		r.config(&cfg)
	}
	s, err := enginesim.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	socket, err := s.Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- socket.Serve() }()
	t.Cleanup(func() {
		s.Close()
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
	return &engine{
		url: socket.URL(), key: cfg.APIKey, adminKey: cfg.AdminAPIKey, model: "sim/other",
		second: time.Duration(float64(time.Second) / s.Speed()), endless: 400_000, simulated: s, client: client,
	}
}

// reply is what the server answered, or that it cut the connection.
type reply struct {
	status  int
	header  http.Header
	body    string
	err     error
	latency time.Duration
}

// object is the reply's body as a JSON object.
func (r reply) object(t *testing.T) map[string]any {
	t.Helper()
	var out map[string]any
	r.decode(t, &out)
	return out
}

func (r reply) decode(t *testing.T, v any) {
	t.Helper()
	if r.err != nil {
		t.Fatalf("no reply: %v", r.err)
	}
	if err := json.Unmarshal([]byte(r.body), v); err != nil {
		t.Fatalf("status %d, not the JSON that was expected: %v\n%.500s", r.status, err, r.body)
	}
}

// events are the data of a stream, the closing [DONE] included.
func (r reply) events(t *testing.T) []string {
	t.Helper()
	if r.err != nil {
		t.Fatalf("no reply: %v", r.err)
	}
	var out []string
	for line := range strings.SplitSeq(r.body, "\n\n") {
		if data, ok := strings.CutPrefix(line, "data: "); ok {
			out = append(out, data)
		} else if line != "" {
			t.Fatalf("not an event: %q", line)
		}
	}
	return out
}

// call sends a request. body is a JSON text, or "" for none; headers are names and values in turn.
func (e *engine) call(ctx context.Context, method, path, body string, headers ...string) reply {
	req, err := http.NewRequestWithContext(ctx, method, e.url+path, strings.NewReader(body))
	if err != nil {
		return reply{err: err}
	}
	req.Header.Set("Content-Type", "application/json")
	if key := e.keyFor(path); key != "" {
		req.Header.Set("Authorization", "Bearer "+key)
	}
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	began := time.Now()
	resp, err := e.client.Do(req)
	if err != nil {
		return reply{err: err}
	}
	defer func() { _ = resp.Body.Close() }()
	read, err := io.ReadAll(resp.Body)
	return reply{status: resp.StatusCode, header: resp.Header, body: string(read), err: err, latency: time.Since(began)}
}

var adminPaths = []string{
	"/abort_request", "/pause_", "/continue_", "/flush_cache", "/update_", "/init_", "/destroy_", "/weights_checker",
	"/release_", "/resume_",
}

func (e *engine) keyFor(path string) string {
	for _, p := range adminPaths {
		if strings.HasPrefix(path, p) && e.adminKey != "" {
			return e.adminKey
		}
	}
	return e.key
}

func (e *engine) get(t *testing.T, path string, headers ...string) reply {
	t.Helper()
	return e.call(t.Context(), http.MethodGet, path, "", headers...)
}

func (e *engine) post(t *testing.T, path, body string, headers ...string) reply {
	t.Helper()
	return e.call(t.Context(), http.MethodPost, path, body, headers...)
}

// ok is post, and fails the test unless the status is 200.
func (e *engine) ok(t *testing.T, path, body string, headers ...string) reply {
	t.Helper()
	r := e.post(t, path, body, headers...)
	wantStatus(t, r, http.StatusOK)
	return r
}

func wantStatus(t *testing.T, r reply, status int) {
	t.Helper()
	if r.err != nil {
		t.Fatalf("no reply: %v", r.err)
	}
	if r.status != status {
		t.Fatalf("status %d, want %d: %.500s", r.status, status, r.body)
	}
}

// wantError checks an error of the form {"object":"error",...}.
func wantError(t *testing.T, r reply, status int) {
	t.Helper()
	wantStatus(t, r, status)
	o := r.object(t)
	if o["object"] != "error" || o["message"] == "" || o["code"] != float64(status) {
		t.Errorf("not an error object: %s", r.body)
	}
	if _, ok := o["param"]; !ok {
		t.Errorf("no param: %s", r.body)
	}
}

// wantHandlerError checks an error of the form {"error":{"message"}}.
func wantHandlerError(t *testing.T, r reply, status int) {
	t.Helper()
	wantStatus(t, r, status)
	inner, ok := r.object(t)["error"].(map[string]any)
	if message, _ := inner["message"].(string); !ok || message == "" {
		t.Errorf("not a handler's error: %s", r.body)
	}
}

// pending is a request whose reply is not there yet.
type pending struct {
	rid    string
	reply  chan reply
	cancel context.CancelFunc
}

// background sends a request and does not wait.
func (e *engine) background(t *testing.T, path, body string, headers ...string) *pending {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	p := &pending{reply: make(chan reply, 1), cancel: cancel}
	t.Cleanup(cancel)
	go func() { p.reply <- e.call(ctx, http.MethodPost, path, body, headers...) }()
	return p
}

func (p *pending) wait(t *testing.T) reply {
	t.Helper()
	select {
	case r := <-p.reply:
		return r
	case <-time.After(patience):
		t.Fatal("no reply in time")
		return reply{}
	}
}

// answered reports whether the reply is there, without taking it.
func (p *pending) answered() bool { return len(p.reply) > 0 }

// rid is a request id that no other is a prefix of.
func (e *engine) rid(t *testing.T) string {
	name := strings.NewReplacer("/", "-", ",", "", ":", "").Replace(t.Name())
	return fmt.Sprintf("conf-%08d-%s", e.names.Add(1), name[max(0, len(name)-20):])
}

func body(v map[string]any) string {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		panic(err)
	}
	return b.String()
}

func tokens(n int) map[string]any { return map[string]any{"max_new_tokens": n, "ignore_eos": true} }

// hold starts a generation that does not end by itself, and waits until it runs.
func (e *engine) hold(t *testing.T) *pending {
	t.Helper()
	before := e.running(t)
	rid := e.rid(t)
	p := e.background(t, "/generate", body(map[string]any{"text": "hold " + rid, "rid": rid, "sampling_params": tokens(e.endless)}))
	p.rid = rid
	eventually(t, "the request runs", func() bool { return e.running(t) > before })
	return p
}

func (e *engine) abort(t *testing.T, rid string) {
	t.Helper()
	if r := e.ok(t, "/abort_request", body(map[string]any{"rid": rid})); r.body != "" {
		t.Errorf("abort answers with a body: %q", r.body)
	}
}

// catch starts generations, each twice as long as the one before, until act happens while one runs; it returns
// that one. A machine may be too slow to act within a short one.
func (e *engine) catch(t *testing.T, act, undo func()) (p *pending, n int) {
	t.Helper()
	for n = 2000; n <= e.endless; n *= 2 {
		p = e.background(t, "/generate", body(map[string]any{"text": "catch me", "rid": e.rid(t), "sampling_params": tokens(n)}))
		eventually(t, "it runs or is over", func() bool { return p.answered() || e.running(t) > 0 })
		act()
		if !p.answered() {
			return p, n
		}
		undo()
	}
	t.Fatal("no generation was caught while it ran")
	return nil, 0
}

// load is one element of loads[].
type load struct {
	Timestamp  float64 `json:"timestamp"`
	Running    int     `json:"num_running_reqs"`
	Waiting    int     `json:"num_waiting_reqs"`
	MaxRunning int     `json:"max_running_requests"`
	MaxTokens  int     `json:"max_total_num_tokens"`
}

func (e *engine) loads(t *testing.T) []load {
	t.Helper()
	var out struct {
		Loads []load `json:"loads"`
	}
	e.get(t, "/v1/loads").decode(t, &out)
	return out.Loads
}

func (e *engine) running(t *testing.T) int {
	t.Helper()
	n := 0
	for _, l := range e.loads(t) {
		n += l.Running
	}
	return n
}

func (e *engine) version(t *testing.T) string {
	t.Helper()
	v, ok := e.get(t, "/model_info").object(t)["weight_version"].(string)
	if !ok {
		t.Fatal("weight_version is not a string")
	}
	return v
}

// eventually waits until ready says so.
func eventually(t *testing.T, what string, ready func() bool) {
	t.Helper()
	deadline := time.Now().Add(patience)
	for !ready() {
		if time.Now().After(deadline) {
			t.Fatalf("not in time: %s", what)
		}
		<-time.After(2 * time.Millisecond)
	}
}

// cut reports whether the server ended the connection instead of answering.
func cut(r reply) bool { return r.err != nil && !errors.Is(r.err, context.Canceled) }

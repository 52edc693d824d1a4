package proxy_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berthmaster/berthmaster/internal/router"
	"github.com/berthmaster/berthmaster/internal/router/proxy"
)

// during answers with a plain reply and notes what was counted while the engine had the request.
func during(g **rig, seen *router.BackendSnapshot) func(int64, net.Conn, *bufio.Reader, string) verdict {
	return func(_ int64, c net.Conn, _ *bufio.Reader, _ string) verdict {
		*seen = (*g).backend("b0")
		_, _ = io.WriteString(c, plain(plainJSON))
		return stayOpen
	}
}

func TestEverySequenceIsCountedAndEveryRIDIsTheLeases(t *testing.T) {
	cases := map[string]struct {
		path, body string
		want       int64
		rids       int // 0: one, as a string
	}{
		"one prompt":                      {"/generate", `{"text":"a"}`, 1, 0},
		"samples":                         {"/generate", `{"text":"a","sampling_params":{"n":3}}`, 3, 0},
		"samples behind other parameters": {"/generate", `{"sampling_params":{"stop":["n"],"x":{"n":9},"n":3},"text":"a"}`, 3, 0},
		"prompts":                         {"/generate", `{"text":["a","b"]}`, 2, 2},
		"prompts of one":                  {"/generate", `{"text":["a"]}`, 1, 1},
		"prompts and samples":             {"/generate", `{"text":["a","b"],"sampling_params":{"n":3}}`, 6, 2},
		"parameters for each prompt":      {"/generate", `{"text":["a","b"],"sampling_params":[{"n":2},{"n":2}]}`, 4, 2},
		"tokens":                          {"/generate", `{"input_ids":[1,2,3]}`, 1, 0},
		"lists of tokens":                 {"/generate", `{"input_ids":[[1],[2],[3]]}`, 3, 3},
		"vectors":                         {"/generate", `{"input_embeds":[[0.1,0.2],[0.3,0.4]]}`, 1, 0},
		"lists of vectors":                {"/generate", `{"input_embeds":[[[0.1],[0.2]],[[0.3]]]}`, 2, 2},
		"nothing but an image":            {"/generate", `{"image_data":["x","y"]}`, 1, 0},
		"a chat":                          {"/v1/chat/completions", `{"messages":[{"role":"user","content":"n"},{}]}`, 1, 0},
		"a chat with samples":             {"/v1/chat/completions", `{"messages":[],"n":4}`, 4, 0},
		"a chat with samples in quotes":   {"/v1/chat/completions", `{"messages":[],"n":"4"}`, 4, 0},
		"a chat with no number":           {"/v1/chat/completions", `{"messages":[],"n":null}`, 1, 0},
		"a chat that says it twice":       {"/v1/chat/completions", `{"n":5,"messages":[],"n":2}`, 5, 0},
		"a completion":                    {"/v1/completions", `{"prompt":"a"}`, 1, 0},
		"completions and samples":         {"/v1/completions", `{"prompt":["a","b","c"],"n":2}`, 6, 3},
		"a completion of tokens":          {"/v1/completions", `{"prompt":[1,2]}`, 1, 0},
		"embeddings":                      {"/v1/embeddings", `{"input":["a","b"]}`, 2, 2},
		"a rid of the client":             {"/generate", `{"rid":"mine","text":"a"}`, 1, 0},
		"a rid at the end":                {"/generate", `{"text":"a" , "rid" : ["mine"] }`, 1, 0},
		"a rid in disguise, twice":        {"/generate", `{"\u0072id":"mine","text":"a","rid":null}`, 1, 0},
		"nothing at all":                  {"/generate", ` { } `, 1, 0},
	}
	var g *rig
	var seen router.BackendSnapshot
	engine := script(t, during(&g, &seen))
	g = newRig(t, proxy.Config{}, engine.url)
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if status, text := g.post(c.path, c.body); status != 200 {
				t.Fatalf("got %d %s", status, text)
			}
			if seen.Outstanding != c.want {
				t.Errorf("%d counted, want %d", seen.Outstanding, c.want)
			}
			body, _ := engine.last()
			compareBodies(t, c.body, body, c.rids)
		})
	}
}

// compareBodies demands that the engine got what the client sent, but for the rid.
func compareBodies(t *testing.T, sent, got string, rids int) {
	t.Helper()
	var a, b map[string]any
	if err := json.Unmarshal([]byte(sent), &a); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal([]byte(got), &b); err != nil {
		t.Fatalf("%s: %v", got, err)
	}
	one, isOne := b["rid"].(string)
	if list, isList := b["rid"].([]any); rids > 0 && isList && len(list) == rids {
		one, isOne = strings.CutSuffix(list[0].(string), "_0")
	} else if rids > 0 || !isOne {
		t.Errorf("rid %v", b["rid"])
	}
	if !isOne || len(one) != 32 || strings.Contains(got, "mine") {
		t.Errorf("rid %q in %s", one, got)
	}
	delete(a, "rid")
	delete(b, "rid")
	if diff := cmp.Diff(a, b); diff != "" {
		t.Error(diff)
	}
}

func TestABodyThatCannotBeLeasedForIsRefusedUnsent(t *testing.T) {
	engine := script(t, replies(plain(plainJSON), stayOpen))
	g := newRig(t, proxy.Config{Limits: proxy.Limits{BodyBytes: 1 << 20}}, engine.url)
	cases := map[string]struct {
		body   string
		status int
		head   []string
	}{
		"no JSON":            {body: "text=a", status: 400},
		"cut JSON":           {body: `{"text":"a"`, status: 400},
		"a list":             {body: `[{"text":"a"}]`, status: 400},
		"no number":          {body: `{"sampling_params":{"n":"many"}}`, status: 400},
		"half a sequence":    {body: `{"sampling_params":{"n":1.5}}`, status: 400},
		"too many sequences": {body: `{"sampling_params":{"n":5000}}`, status: 400},
		"sequences past all": {body: `{"text":["a","b"],"sampling_params":{"n":9223372036854775807}}`, status: 400},
		"rids without end":   {body: `{` + strings.Repeat(`"rid":"a",`, 20) + `"text":"a"}`, status: 400},
		"a session too long": {body: `{"session_id":"` + strings.Repeat("x", 2000) + `"}`, status: 400},
		"too large":          {body: `{"text":"` + strings.Repeat("x", 1<<20) + `"}`, status: 413},
		"packed":             {body: `{"text":"a"}`, status: 415, head: []string{"Content-Encoding", "gzip"}},
		"a stale epoch":      {body: `{"text":"a"}`, status: 409, head: []string{"X-Berthmaster-Epoch", "7"}},
		"no epoch":           {body: `{"text":"a"}`, status: 400, head: []string{"X-Berthmaster-Epoch", "new"}},
		"a stale generation": {body: `{"text":"a"}`, status: 409, head: []string{"X-Berthmaster-Sender-Generation", "2"}},
	}
	g.fleet.Senders[0].MinGeneration = 3
	g.apply()
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			status, text := g.post("/generate", c.body, c.head...)
			if status != c.status || !json.Valid([]byte(text)) || !strings.Contains(text, `"error":{"message":`) {
				t.Errorf("got %d %s, want %d", status, text, c.status)
			}
		})
	}
	if n := engine.generated.Load(); n != 0 || g.snapshot().Totals.Grants != 0 {
		t.Errorf("the engine was asked %d times, %d leases were granted", n, g.snapshot().Totals.Grants)
	}
}

func TestALargeBodyPassesWholeWhereverItsFieldsStand(t *testing.T) {
	var g *rig
	var seen router.BackendSnapshot
	engine := script(t, during(&g, &seen))
	g = newRig(t, proxy.Config{}, engine.url)
	image := `"messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:image/png;base64,` + strings.Repeat("iVBORw0KGgo", 2<<20) + `"}}]}]`
	for name, body := range map[string]string{
		"before": `{"n":2,"session_id":"s","rid":"x",` + image + `}`,
		"behind": `{` + image + `,"n":2,"session_id":"s","rid":"x"}`,
	} {
		t.Run(name, func(t *testing.T) {
			if status, text := g.post("/v1/chat/completions", body); status != 200 {
				t.Fatalf("got %d %s", status, text)
			}
			got, _ := engine.last()
			if rid := strings.Index(got, `"rid":"`); rid < 0 || got[:rid]+`"rid":"x"`+got[rid+len(`"rid":"`)+33:] != body {
				t.Errorf("the engine got another body, of %d bytes for %d", len(got), len(body))
			}
			if seen.Outstanding != 2 {
				t.Errorf("%d counted", seen.Outstanding)
			}
			if v, err := g.table.Session("s"); err != nil || v.Backend != "b0" {
				t.Errorf("session: %v, %v", v, err)
			}
		})
	}
}

func TestHeadersPassButNotThoseOfTheConnectionOrTheCaller(t *testing.T) {
	engine := script(t, replies("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nX-Engine: yes\r\nConnection: X-Private\r\nX-Private: no\r\nContent-Length: 2\r\n\r\n{}", stayOpen))
	g := newRig(t, proxy.Config{Settings: func(router.PoolKey) proxy.Settings { return proxy.Settings{EngineKey: "engine"} }}, engine.url)
	_, _, head := g.send(t.Context(), "/generate?x=1", ask1, "Authorization", "Bearer caller", "Cookie", "a=b", "X-Api-Key", "caller",
		"X-Turn", "4", "Idempotency-Key", "k", "X-Data-Parallel-Rank", "1", "Connection", "X-Hop", "X-Hop", "1")
	_, got := engine.last()
	want := map[string]string{"Authorization": "Bearer engine", "X-Turn": "4", "X-Data-Parallel-Rank": "1",
		"Cookie": "", "X-Api-Key": "", "Idempotency-Key": "", "X-Hop": "", "Accept-Encoding": ""}
	for name, v := range want {
		if got.Get(name) != v {
			t.Errorf("the engine got %s: %q, want %q", name, got.Get(name), v)
		}
	}
	if head.Get("X-Engine") != "yes" || head.Get("X-Private") != "" || head.Get("X-Berthmaster-Backend") != "b0" {
		t.Errorf("the client got %v", head)
	}
}

func TestSlashesInARowAreOne(t *testing.T) {
	engine := script(t, replies(plain(plainJSON), stayOpen))
	g := newRig(t, proxy.Config{}, engine.url+"//")
	for _, path := range []string{"/generate", "//generate", "///v1//chat/completions/", "//v1/completions"} {
		if status, text := g.post(path, `{}`); status != 200 {
			t.Errorf("%s: got %d %s", path, status, text)
		}
	}
}

func TestControlIsRefusedWithTheFieldThatDoesIt(t *testing.T) {
	engine := script(t, replies(plain("{}"), stayOpen))
	g := newRig(t, proxy.Config{}, engine.url)
	for path, want := range map[string]string{
		"/pause_generation": "spec.engineMode", "/continue_generation": "spec.engineMode", "/update_weights_from_disk": "spec.weights",
		"/update_weight_version": "spec.weights", "/abort_request": "spec.drain", "/flush_cache": "Held", "//pause_generation": "spec.engineMode",
		"/v1/../pause_generation": "does not pass on", "/begin_weight_update": "spec.weights", "/made_up": "does not pass on", "/": "",
	} {
		status, text := g.post(path, `{}`)
		if path == "/" {
			if status != 200 {
				t.Errorf("/: got %d %s", status, text)
			}
			continue
		}
		if status != 403 && status != 404 || !strings.Contains(text, want) {
			t.Errorf("%s: got %d %s, want a word about %s", path, status, text, want)
		}
	}
	if n := engine.generated.Load(); n != 1 {
		t.Errorf("the engine was asked %d times", n-1)
	}
	if status, _ := ask(t.Context(), g.base+"/generate", ""); status != 405 {
		t.Errorf("GET /generate: got %d", status)
	}
}

func TestInformationGoesRoundTheAdmissibleWithoutALease(t *testing.T) {
	model := func(id string) func(int64, net.Conn, *bufio.Reader, string) verdict {
		return replies(plain(fmt.Sprintf(`{"data":[{"id":%q}]}`, id)), stayOpen)
	}
	a, b := script(t, model("a")), script(t, model("b"))
	g := newRig(t, proxy.Config{}, a.url, b.url, closedPort(t))
	for range 6 {
		if status, text := ask(t.Context(), g.base+"/v1/models", ""); status != 200 || !strings.Contains(text, `"id"`) {
			t.Errorf("got %d %s", status, text)
		}
	}
	if status, _ := g.post("/tokenize", `{"prompt":"a"}`); status != 200 {
		t.Errorf("got %d", status)
	}
	if a.generated.Load() < 2 || b.generated.Load() < 2 || g.snapshot().Totals.Grants != 0 {
		t.Errorf("asked %d and %d times, %d leases", a.generated.Load(), b.generated.Load(), g.snapshot().Totals.Grants)
	}
	if status, _ := ask(t.Context(), g.base+"/health", ""); status != 200 {
		t.Errorf("health: got %d", status)
	}
	g.observe(router.Unhealthy)
	for _, path := range []string{"/v1/models", "/health"} {
		if status, text := ask(t.Context(), g.base+path, ""); status != 503 || !strings.Contains(text, "NoBackend") {
			t.Errorf("%s without a backend: got %d %s", path, status, text)
		}
	}
}

func TestEveryCallIsAuthorized(t *testing.T) {
	engine := script(t, replies(plain(plainJSON), stayOpen))
	g := newRig(t, proxy.Config{Authorizer: onlyKnown{}}, engine.url)
	for _, path := range []string{"/generate", "/v1/models", "/finish_session?session_id=s", "/pause_generation", "/made_up"} {
		if status, _ := g.post(path, `{}`); status != 401 {
			t.Errorf("%s: got %d", path, status)
		}
	}
	g.base = strings.Replace(g.base, "/policy/", "/no-such-pool/", 1)
	if status, _ := g.post("/generate", `{}`); status != 401 {
		t.Errorf("a stranger learns that a pool does not exist: %d", status)
	}
	g.base = strings.Replace(g.base, "/no-such-pool/", "/policy/", 1)
	if status, _ := g.post("/generate", `{}`, "Authorization", "Bearer known"); status != 200 {
		t.Errorf("got %d", status)
	}
	if _, head := engine.last(); head.Get("Authorization") != "" {
		t.Error("the caller's token reached the engine")
	}
}

// onlyKnown lets one token in.
type onlyKnown struct{}

// Authorize looks at the bearer token.
func (onlyKnown) Authorize(r *http.Request, pool router.PoolKey, sender router.SenderName) error {
	if r.Header.Get("Authorization") != "Bearer known" || pool != rigKey || sender != "train" {
		return &router.Refusal{Reason: "Unauthenticated"}
	}
	return nil
}

// Admit lets it go on for as long as it likes.
func (k onlyKnown) Admit(r *http.Request, pool router.PoolKey, sender router.SenderName) (func(context.Context) error, error) {
	return func(context.Context) error { return nil }, k.Authorize(r, pool, sender)
}

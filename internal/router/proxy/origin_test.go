package proxy_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/berthmaster/berthmaster/internal/router/proxy"
)

// controlCalls are some that change engines.
var controlCalls = []string{"/release_memory_occupation", "/resume_memory_occupation", "/weights_checker", "/start_profile", "/pause_generation",
	"/abort_request", "/update_weights_from_disk", "/get_weights_by_name", "/slow_down"}

func TestNoPageOfSomebodyElsesReachesAnEngine(t *testing.T) {
	const evil = "https://evil.example"
	cases := map[string]struct {
		method, path string
		head         []string
		status       int
		allow        string
	}{
		"an image, in a browser of today":       {"GET", "/flush_cache", []string{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "no-cors"}, 405, "POST, PUT"},
		"an image, in an older browser":         {"GET", "/flush_cache", nil, 405, "POST, PUT"},
		"a fetch of a header only":              {"HEAD", "/flush_cache", []string{"Origin", evil}, 405, "POST, PUT"},
		"a form":                                {"POST", "/flush_cache", []string{"Sec-Fetch-Site", "cross-site", "Origin", evil}, 403, ""},
		"a form, in an older browser":           {"POST", "/flush_cache", []string{"Origin", evil}, 403, ""},
		"a form of a page without an origin":    {"POST", "/flush_cache", []string{"Origin", "null"}, 403, ""},
		"a form of another port":                {"POST", "/flush_cache", []string{"Sec-Fetch-Site", "same-site", "Origin", "http://127.0.0.1:1"}, 403, ""},
		"a generation":                          {"POST", "/generate", []string{"Sec-Fetch-Site", "cross-site", "Origin", evil}, 403, ""},
		"the end of a session":                  {"POST", "/finish_session?session_id=s", []string{"Sec-Fetch-Site", "cross-site", "Origin", evil}, 403, ""},
		"the end of a session, by an image":     {"GET", "/finish_session?session_id=s", nil, 405, "POST"},
		"a generation by an image":              {"GET", "/generate", nil, 405, "POST, PUT"},
		"a question before a call":              {"OPTIONS", "/flush_cache", []string{"Origin", evil, "Access-Control-Request-Method", "POST"}, 405, "POST, PUT"},
		"a question before a call that informs": {"OPTIONS", "/v1/models", []string{"Origin", evil}, 405, "GET, HEAD, POST"},
	}
	for _, path := range controlCalls {
		for _, method := range []string{"GET", "HEAD", "DELETE", "PATCH"} {
			cases[method+" "+path] = struct {
				method, path string
				head         []string
				status       int
				allow        string
			}{method, path, nil, 405, "POST, PUT"}
		}
	}
	for _, method := range []string{"DELETE", "PATCH"} { // browsers' other methods
		c := cases["a form"]
		c.method = method
		cases[method+" of another origin"] = c
	}
	engine := script(t, replies(plain("{}"), stayOpen))
	g := newRig(t, proxy.Config{Settings: fansOut}, engine.url)
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			resp := g.call(c.method, c.path, c.head...)
			if resp.StatusCode != c.status || resp.Header.Get("Allow") != c.allow {
				t.Errorf("got %d, Allow %q; want %d, %q", resp.StatusCode, resp.Header.Get("Allow"), c.status, c.allow)
			}
		})
	}
	if n := engine.generated.Load(); n != 0 {
		t.Errorf("the engine was asked %d times", n)
	}
}

func TestControlCallsAreMadeByPostOrPut(t *testing.T) {
	engine := script(t, replies(plain("{}"), stayOpen))
	g := newRig(t, proxy.Config{Settings: fansOut}, engine.url)
	for i, method := range []string{"POST", "PUT"} {
		if resp := g.call(method, "/flush_cache?timeout=1"); resp.StatusCode != http.StatusOK || engine.generated.Load() != int64(i+1) {
			t.Errorf("%s: got %d, and the engine was asked %d times", method, resp.StatusCode, engine.generated.Load())
		}
	}
}

func TestWhoShowsATokenMayFlushByGetAndNothingElse(t *testing.T) {
	engine := script(t, replies(plain("{}"), stayOpen))
	g := newRig(t, proxy.Config{Settings: fansOut, Authorizer: onlyKnown{}}, engine.url)
	if resp := g.call("GET", "/flush_cache", "Authorization", "Bearer known"); resp.StatusCode != http.StatusOK {
		t.Errorf("GET /flush_cache: got %d", resp.StatusCode)
	}
	if resp := g.call("GET", "/flush_cache"); resp.StatusCode != http.StatusUnauthorized {
		t.Errorf("without a token: got %d", resp.StatusCode)
	}
	for _, path := range controlCalls {
		if resp := g.call("GET", path, "Authorization", "Bearer known"); resp.StatusCode != http.StatusMethodNotAllowed {
			t.Errorf("GET %s: got %d", path, resp.StatusCode)
		}
	}
	if n := engine.generated.Load(); n != 1 {
		t.Errorf("the engine was asked %d times", n)
	}
}

func TestWhatAnEngineLetsPagesReadIsNotPassedOn(t *testing.T) {
	open := "Access-Control-Allow-Origin: *\r\nAccess-Control-Allow-Credentials: true\r\nAccess-Control-Expose-Headers: *\r\n"
	reply := strings.Replace(plain(plainJSON), "Content-Type", open+"X-Engine: yes\r\nContent-Type", 1)
	engine := script(t, replies(reply, stayOpen))
	g := newRig(t, proxy.Config{Settings: fansOut}, engine.url)
	for path, method := range map[string]string{"/v1/models": "GET", "/generate": "POST", "/flush_cache": "POST"} {
		resp := g.call(method, path)
		if resp.StatusCode != http.StatusOK || resp.Header.Get("X-Engine") != "yes" {
			t.Errorf("%s: got %d %v", path, resp.StatusCode, resp.Header)
		}
		for name := range resp.Header {
			if strings.HasPrefix(name, "Access-Control-") {
				t.Errorf("%s: got %s", path, name)
			}
		}
	}
	engine = script(t, replies(strings.Replace(sized(400, "application/json", "{}"), "Content-Type", open+"Content-Type", 1), stayOpen))
	g = newRig(t, proxy.Config{}, engine.url)
	if resp := g.call("POST", "/generate"); resp.StatusCode != http.StatusBadRequest || resp.Header.Get("Access-Control-Allow-Origin") != "" {
		t.Errorf("a refusal: got %d %v", resp.StatusCode, resp.Header)
	}
}

// call makes one call to the proxy, with an empty object where there is a body, and reads no reply.
func (g *rig) call(method, path string, head ...string) *http.Response {
	g.t.Helper()
	var body string
	if method != http.MethodGet && method != http.MethodHead && method != http.MethodOptions {
		body = "{}"
	}
	req, err := http.NewRequestWithContext(g.t.Context(), method, g.base+path, strings.NewReader(body))
	if err != nil {
		g.t.Fatal(err)
	}
	req.Close = true
	for i := 0; i+1 < len(head); i += 2 {
		req.Header.Set(head[i], head[i+1])
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		g.t.Fatal(err)
	}
	_ = resp.Body.Close()
	return resp
}

package conformance

import (
	"bufio"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/berthmaster/berthmaster/internal/enginesim"
)

func generalRows() []row {
	return []row{
		{"1.1", "a body that fails validation is 400 in the error object's form", nothing, nil, func(t *testing.T, e *engine) {
			wantError(t, e.post(t, "/generate", `{"text":"x","stream":"maybe"}`), http.StatusBadRequest)
			wantError(t, e.post(t, "/generate", `{"text":`), http.StatusBadRequest)
		}},
		{"1.1", "an error of the handler has the form error.message", nothing, nil, func(t *testing.T, e *engine) {
			wantHandlerError(t, e.post(t, "/generate", `{"sampling_params":{}}`), http.StatusBadRequest)
			wantHandlerError(t, e.post(t, "/generate", `{"text":"x","sampling_params":{"temperature":-1}}`), http.StatusBadRequest)
		}},
		{"1.1", "OpenAI routes demand a JSON content type and /generate does not", nothing, nil, func(t *testing.T, e *engine) {
			text := []string{"Content-Type", "text/plain"}
			wantStatus(t, e.post(t, "/v1/completions", `{"model":"m","prompt":"x","max_tokens":1}`, text...), http.StatusBadRequest)
			wantStatus(t, e.post(t, "/generate", `{"text":"x","sampling_params":{"max_new_tokens":1}}`, text...), http.StatusOK)
		}},
		{"1.1", "NaN is rejected", nothing, nil, func(t *testing.T, e *engine) {
			wantStatus(t, e.post(t, "/generate", `{"text":"x","sampling_params":{"temperature":NaN}}`), http.StatusBadRequest)
		}},
		{"1.1", "an idle connection is closed after five seconds", nothing, nil, checkKeepAlive},
		{"1.1", "the root and /ping always answer 200", nothing, nil, func(t *testing.T, e *engine) {
			for _, path := range []string{"/", "/ping"} {
				wantStatus(t, e.call(t.Context(), http.MethodGet, path, ""), http.StatusOK)
				wantStatus(t, e.call(t.Context(), http.MethodHead, path, ""), http.StatusOK)
			}
		}},
		{"1.1", "an unknown path is 404 and a wrong method 405", nothing, nil, func(t *testing.T, e *engine) {
			wantStatus(t, e.get(t, "/no_such_path"), http.StatusNotFound)
			wantStatus(t, e.get(t, "/generate"), http.StatusMethodNotAllowed)
		}},
		{"1.1", "health, metrics and OPTIONS need no key and ordinary requests do", keys, bothKeys, checkNormalKey},
		{"1.1", "with both keys only the admin key opens admin endpoints", keys, bothKeys, checkAdminKey},
		{"1.1", "with an api key alone it opens admin endpoints too", simulator, func(c *enginesim.Config) { c.APIKey = "user" },
			func(t *testing.T, e *engine) {
				wantStatus(t, e.post(t, "/abort_request", `{"rid":"x"}`, "Authorization", ""), http.StatusUnauthorized)
				wantStatus(t, e.post(t, "/abort_request", `{"rid":"x"}`), http.StatusOK)
			}},
		{"1.1", "with no keys admin endpoints are open", simulator, nil, func(t *testing.T, e *engine) {
			wantStatus(t, e.post(t, "/abort_request", `{"rid":"x"}`), http.StatusOK)
		}},
		{"1.1", "with an admin key alone ordinary requests are open", simulator, func(c *enginesim.Config) { c.AdminAPIKey = "boss" },
			func(t *testing.T, e *engine) {
				wantStatus(t, e.get(t, "/model_info", "Authorization", ""), http.StatusOK)
				wantStatus(t, e.post(t, "/flush_cache", "", "Authorization", ""), http.StatusUnauthorized)
				wantStatus(t, e.post(t, "/flush_cache", ""), http.StatusOK)
			}},
	}
}

func bothKeys(c *enginesim.Config) { c.APIKey, c.AdminAPIKey = "user", "boss" }

func checkNormalKey(t *testing.T, e *engine) {
	for _, path := range []string{"/health", "/ping"} {
		wantStatus(t, e.get(t, path, "Authorization", ""), http.StatusOK)
	}
	if r := e.get(t, "/metrics", "Authorization", ""); r.status == http.StatusUnauthorized {
		t.Error("/metrics asks for a key")
	}
	if r := e.call(t.Context(), http.MethodOptions, "/generate", "", "Authorization", ""); r.status == http.StatusUnauthorized {
		t.Error("OPTIONS asks for a key")
	}
	for _, path := range []string{"/model_info", "/server_info", "/v1/loads", "/v1/models"} {
		r := e.get(t, path, "Authorization", "Bearer wrong")
		wantStatus(t, r, http.StatusUnauthorized)
		if r.object(t)["error"] != "Unauthorized" {
			t.Errorf("%s: %s", path, r.body)
		}
		wantStatus(t, e.get(t, path), http.StatusOK)
	}
	wantStatus(t, e.post(t, "/generate", `{"text":"x"}`, "Authorization", ""), http.StatusUnauthorized)
}

func checkAdminKey(t *testing.T, e *engine) {
	user := []string{"Authorization", "Bearer " + e.key}
	for _, path := range []string{"/abort_request", "/pause_generation", "/update_weight_version", "/flush_cache"} {
		wantStatus(t, e.post(t, path, `{}`, user...), http.StatusUnauthorized)
	}
	wantStatus(t, e.post(t, "/abort_request", `{"rid":"x"}`), http.StatusOK)
}

// checkKeepAlive sends one request on a connection and reads on until the server closes it.
func checkKeepAlive(t *testing.T, e *engine) {
	host := strings.TrimPrefix(e.url, "http://")
	conn, err := net.Dial("tcp", host)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	if _, err := io.WriteString(conn, "GET /ping HTTP/1.1\r\nHost: "+host+"\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	in := bufio.NewReader(conn)
	resp, err := http.ReadResponse(in, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := resp.Body.Close(); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	if err := conn.SetReadDeadline(began.Add(patience)); err != nil {
		t.Fatal(err)
	}
	if _, err := in.ReadByte(); !errors.Is(err, io.EOF) {
		t.Fatalf("the connection was not closed: %v", err)
	}
	if idle := time.Since(began); idle < time.Second {
		t.Errorf("closed after only %v", idle)
	}
}

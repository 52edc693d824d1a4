package proxy_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/berthmaster/berthmaster/internal/enginesim"
	"github.com/berthmaster/berthmaster/internal/router"
	"github.com/berthmaster/berthmaster/internal/router/proxy"
)

func TestWhatAnEngineTellsOfItselfIsPassedOnWithoutItsKeys(t *testing.T) {
	const key, admin = "marked-api-key", "marked-admin-key"
	url, _ := simulated(t, enginesim.Config{APIKey: key, AdminAPIKey: admin, DPSize: 2, WeightVersion: "v3", Legacy: enginesim.LegacyAlso})
	g := newRig(t, proxy.Config{Settings: func(router.PoolKey) proxy.Settings { return proxy.Settings{EngineKey: key, AdminKey: admin} }}, url)
	for _, path := range []string{"/server_info", "/get_server_info"} {
		status, text := ask(t.Context(), g.base+path, "")
		if status != 200 {
			t.Fatalf("%s: got %d %s", path, status, text)
		}
		var told struct {
			ModelPath  string `json:"model_path"`
			Version    string `json:"version"`
			Weights    string `json:"weight_version"`
			TPSize     int    `json:"tp_size"`
			DPSize     int    `json:"dp_size"`
			MaxRunning int    `json:"max_running_requests"`
			Ranks      []struct {
				MaxRunning int `json:"effective_max_running_requests_per_dp"`
				Memory     struct {
					Tokens int `json:"token_capacity"`
				} `json:"memory_usage"`
			} `json:"internal_states"`
		}
		if err := json.Unmarshal([]byte(text), &told); err != nil {
			t.Fatalf("%s: %v in %s", path, err, text)
		}
		if told.ModelPath == "" || told.Version != enginesim.Version || told.Weights != "v3" || told.TPSize != 1 || told.DPSize != 2 || told.MaxRunning == 0 ||
			len(told.Ranks) != 2 || told.Ranks[1].MaxRunning == 0 || told.Ranks[1].Memory.Tokens == 0 {
			t.Errorf("%s: what clients go by is missing in %s", path, text)
		}
	}
	// No other call that only informs tells them either.
	for _, path := range []string{"/", "/ping", "/v1/models", "/model_info", "/get_model_info", "/server_info", "/get_server_info", "/weight_version", "/get_weight_version",
		"/v1/loads", "/v1/loads?include=all", "/get_load", "/health", "/health_generate"} {
		status, text := ask(t.Context(), g.base+path, "")
		if status != 200 {
			t.Errorf("%s: got %d %s", path, status, text)
		}
		if strings.Contains(text, key) || strings.Contains(text, admin) || strings.Contains(text, "api_key") {
			t.Errorf("%s: %s", path, text)
		}
	}
}

func TestAnAnswerOfWhichOnlyAPartMayBeToldIsNeverPassedOnAsItIs(t *testing.T) {
	const secret = "marked"
	long := `{"api_key":"` + secret + `","x":"` + strings.Repeat("x", 4<<20) + `"}`
	for name, c := range map[string]struct {
		reply  string
		status int
		want   string
	}{
		"it is no JSON":           {sized(200, "text/plain", "api_key: "+secret), 502, "EngineReplyUnreadable"},
		"it is a list":            {sized(200, "application/json", `[{"api_key":"`+secret+`"}]`), 502, "EngineReplyUnreadable"},
		"it is longer than any":   {sized(200, "application/json", long), 502, "EngineReplyUnreadable"},
		"it breaks off":           {"HTTP/1.1 200 OK\r\nContent-Length: 999\r\n\r\n" + `{"api_key":"` + secret + `"}`, 502, "EngineReplyUnreadable"},
		"the engine fails":        {sized(500, "application/json", `{"error":{"message":"`+secret+`"}}`), 500, ""},
		"the engine has no such":  {sized(404, "application/json", `{"message":"`+secret+`"}`), 404, ""},
		"a header says it":        {"HTTP/1.1 200 OK\r\nX-Args: " + secret + "\r\nContent-Length: 13\r\n\r\n" + `{"tp_size":4}`, 200, `{"tp_size":4}`},
		"it is short and in JSON": {sized(200, "application/json", `{"tp_size":4,"api_key":"`+secret+`"}`), 200, `{"tp_size":4}`},
	} {
		t.Run(name, func(t *testing.T) {
			engine := script(t, replies(c.reply, hangUp))
			g := newRig(t, proxy.Config{}, engine.url)
			resp, err := http.Get(g.base + "/server_info")
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			text, err := io.ReadAll(resp.Body)
			if err != nil || resp.StatusCode != c.status || !strings.Contains(string(text), c.want) {
				t.Errorf("got %d %.300s (%v), want %d %s", resp.StatusCode, text, err, c.status, c.want)
			}
			if strings.Contains(fmt.Sprint(resp.Header), secret) || strings.Contains(string(text), secret) {
				t.Errorf("got %v %.300s", resp.Header, text)
			}
		})
	}
}

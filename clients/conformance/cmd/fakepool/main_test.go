package main

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// open runs the command for a test, and returns its URL.
func open(t *testing.T) string {
	t.Helper()
	stdin, hangUp := io.Pipe()
	out, stdout := io.Pipe()
	ended := make(chan error, 1)
	go func() { ended <- run(stdin, stdout) }()
	t.Cleanup(func() {
		_ = hangUp.Close()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(line)
}

func call(ctx context.Context, t *testing.T, method, url, body string) (int, map[string]any) {
	t.Helper()
	req, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	transport := &http.Transport{DisableKeepAlives: true}
	resp, err := (&http.Client{Transport: transport}).Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	var members map[string]any
	if err := json.NewDecoder(resp.Body).Decode(&members); err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, members
}

func TestARunIsBegunWatchedAndJudged(t *testing.T) {
	url := open(t)
	status, run := call(t.Context(), t, http.MethodPost, url+"/runs", `{"whole":{"name":"mine","do":[{"call":"generate","report":{"result":"Succeeded"}}]}}`)
	if status != http.StatusCreated || run["baseURL"] == "" {
		t.Fatalf("%d %v", status, run)
	}
	here := url + "/runs/" + run["run"].(string)
	// A call without the credential that the run named is a word in the trace, and a violation.
	call(t.Context(), t, http.MethodGet, run["baseURL"].(string), "")
	if status, got := call(t.Context(), t, http.MethodGet, here+"/await?word=live", ""); status != http.StatusOK {
		t.Errorf("%d %v", status, got)
	}
	if status, got := call(t.Context(), t, http.MethodPost, here+"/act", `{"call":"owner","does":"drain"}`); status != http.StatusBadRequest {
		t.Errorf("a scripted pool was drained: %d %v", status, got)
	}
	status, verdict := call(t.Context(), t, http.MethodPost, here+"/verdict", `{"reports":[{"result":"Unanswered"}]}`)
	violations, _ := verdict["violations"].([]any)
	if status != http.StatusOK || len(violations) == 0 {
		t.Errorf("%d %v", status, verdict)
	}
	if status, got := call(t.Context(), t, http.MethodPost, here+"/verdict", `{"reports":[]}`); status != http.StatusNotFound {
		t.Errorf("a run that was judged is still there: %d %v", status, got)
	}
}

func TestWhatIsNotThereIsSaidToBeMissing(t *testing.T) {
	url := open(t)
	for what, c := range map[string]struct {
		method, path, body string
		want               int
	}{
		"a scenario": {http.MethodPost, "/runs", `{"scenario":"none"}`, http.StatusNotFound},
		"a run":      {http.MethodGet, "/runs/7/await?word=send", "", http.StatusNotFound},
		"JSON":       {http.MethodPost, "/runs", `{`, http.StatusBadRequest},
		"an actor":   {http.MethodPost, "/runs/7/act", `{"call":"owner","does":"drain"}`, http.StatusNotFound},
	} {
		t.Run(what, func(t *testing.T) {
			if status, got := call(t.Context(), t, c.method, url+c.path, c.body); status != c.want {
				t.Errorf("%d %v", status, got)
			}
		})
	}
}

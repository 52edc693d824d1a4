package main

import (
	"bufio"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestThePoolIsOfferedAndEndsWithItsInput(t *testing.T) {
	stdin, hangUp := io.Pipe()
	out, stdout := io.Pipe()
	ended := make(chan error, 1)
	go func() { ended <- run(stdin, stdout) }()
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	url, transport := strings.TrimSpace(line), &http.Transport{DisableKeepAlives: true}
	call := func(method, path, body string) (int, map[string]any) {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), method, url+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
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
	if status, got := call(http.MethodGet, "/", ""); status != http.StatusOK || len(got["engines"].(map[string]any)) != 3 {
		t.Errorf("%d %v", status, got)
	}
	for path, body := range map[string]string{"/fleet": `{"epoch":2}`, "/takeover": "", "/verdict": `{"client":[]}`} {
		if status, got := call(http.MethodPost, path, body); status != http.StatusOK {
			t.Errorf("%s: %d %v", path, status, got)
		}
	}
	if status, got := call(http.MethodPost, "/fleet", `{"weather":"fine"}`); status != http.StatusBadRequest {
		t.Errorf("%d %v", status, got)
	}
	if err := hangUp.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

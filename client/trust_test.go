package client

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

func TestACredentialIsReadAgainForEachCall(t *testing.T) {
	path := filepath.Join(t.TempDir(), "token")
	read := FromFile(path)
	if _, err := read(t.Context()); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("without a file: %v", err)
	}
	for content, want := range map[string]string{"one\n": "one", " two ": "two"} {
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		if got, err := read(t.Context()); err != nil || got != want {
			t.Errorf("got %q, %v, want %q", got, err, want)
		}
	}
	if err := os.WriteFile(path, []byte("\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got, err := read(t.Context()); !errors.Is(err, errEmptyCredential) {
		t.Errorf("got %q, %v", got, err)
	}
}

// secureWorld is a router and an engine behind TLS, with certificates that no system trusts.
type secureWorld struct {
	router, engine *httptest.Server

	mu     sync.Mutex
	tokens []string // guarded by mu; those shown to the router
}

func newSecureWorld(t *testing.T) *secureWorld {
	t.Helper()
	w := &secureWorld{}
	w.engine = httptest.NewTLSServer(http.HandlerFunc(well))
	t.Cleanup(w.engine.Close)
	usual := &router{lease: map[string]any{
		"backend": map[string]any{"name": "a", "incarnation": "a/1", "url": w.engine.URL},
	}, engines: []string{"a"}}
	w.router = httptest.NewTLSServer(http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
		w.mu.Lock()
		w.tokens = append(w.tokens, r.Header.Get("Authorization"))
		w.mu.Unlock()
		call := asked{Method: r.Method, Path: r.URL.Path}
		if raw, err := io.ReadAll(r.Body); err == nil {
			_ = json.Unmarshal(raw, &call.Body)
		}
		status, body := usual.usual(call)
		out.WriteHeader(status)
		_ = json.NewEncoder(out).Encode(body)
	}))
	t.Cleanup(w.router.Close)
	return w
}

func trusting(s *httptest.Server) *tls.Config {
	roots := x509.NewCertPool()
	roots.AddCert(s.Certificate())
	return &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}
}

func TestRouterAndEnginesAreTrustedByTheirOwnAuthorities(t *testing.T) {
	w := newSecureWorld(t)
	cases := map[string]struct {
		config Config
		want   error
	}{
		"both are trusted":             {Config{TLS: trusting(w.router), EngineTLS: trusting(w.engine)}, nil},
		"the engine is not trusted":    {Config{TLS: trusting(w.router)}, ErrNotSent},
		"the router is not trusted":    {Config{EngineTLS: trusting(w.engine), RetryFor: 1}, ErrUntrusted},
		"the engine has another name":  {Config{TLS: trusting(w.router), EngineTLS: named(trusting(w.engine), "other.example")}, ErrNotSent},
		"the engine's name is the one": {Config{TLS: trusting(w.router), EngineTLS: named(trusting(w.engine), "example.com")}, nil},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			c.config.BaseURL, c.config.Attempts = w.router.URL, 1
			pool, err := New(c.config)
			if err != nil {
				t.Fatal(err)
			}
			defer pool.Close()
			_, err = pool.Session(SessionConfig{ID: "s", Sender: "train", Epoch: 1}).Generate(t.Context(), aTurn)
			if !errors.Is(err, c.want) {
				t.Errorf("got %v, want %v", err, c.want)
			}
		})
	}
}

func named(config *tls.Config, name string) *tls.Config {
	config.ServerName = name
	return config
}

func TestATokenThatIsReplacedIsShownFromThenOn(t *testing.T) {
	w := newSecureWorld(t)
	tokens := []string{"one", "two", "three"}
	pool, err := New(Config{
		BaseURL: w.router.URL, TLS: trusting(w.router), EngineTLS: trusting(w.engine),
		Token: func(context.Context) (string, error) {
			w.mu.Lock()
			defer w.mu.Unlock()
			return tokens[min(len(w.tokens), len(tokens)-1)], nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	if _, err := pool.Session(SessionConfig{ID: "s", Sender: "train", Epoch: 1}).Generate(t.Context(), aTurn); err != nil {
		t.Fatal(err)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if got := strings.Join(w.tokens, " "); !strings.HasPrefix(got, "Bearer one Bearer two") {
		t.Errorf("the router was shown %s", got)
	}
}

func TestAuthoritiesAreReadAgainAndOnesThatBreakCountAsTheyWere(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ca.crt")
	for name, field := range map[string]Config{"CAFile": {CAFile: path}, "EngineCAFile": {EngineCAFile: path}} {
		field.BaseURL = "https://router.example"
		if _, err := New(field); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("without a file: %v, want one about %s", err, name)
		}
	}
	w := newSecureWorld(t)
	good := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: w.router.Certificate().Raw})
	write := func(text []byte) {
		t.Helper()
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(good)
	trust, err := newAuthorities(path)
	if err != nil {
		t.Fatal(err)
	}
	first, err := trust.now()
	if err != nil || first == nil {
		t.Fatalf("got %v, %v", first, err)
	}
	for _, broken := range []string{"", "-----BEGIN CERTIFICATE-----\ntorn"} {
		write([]byte(broken))
		if got, err := trust.now(); got != first || err != nil {
			t.Errorf("with %q it was %p, %v, want %p as before", broken, got, err, first)
		}
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if got, err := trust.now(); got != first || err != nil {
		t.Errorf("without its file it was %p, %v", got, err)
	}
	write(append(good, '\n'))
	if got, err := trust.now(); got == first || err != nil {
		t.Errorf("what changed was not read: %p, %v", got, err)
	}
}

func TestARouterThatIsNotTrustedIsSaidToBeSo(t *testing.T) {
	w := newSecureWorld(t)
	pool, err := New(Config{BaseURL: w.router.URL, RetryFor: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	_, err = pool.Session(SessionConfig{ID: "s", Sender: "train", Epoch: 1}).Generate(t.Context(), aTurn)
	if !errors.Is(err, ErrUntrusted) || !errors.Is(err, ErrUnanswered) || !strings.Contains(err.Error(), "CAFile") {
		t.Errorf("got %v", err)
	}
}

package server

import (
	"bytes"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/berthmaster/berthmaster/internal/router"
)

// shared is a buffer that several write to.
type shared struct {
	mu   sync.Mutex
	text bytes.Buffer // guarded by mu
}

func (b *shared) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *shared) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

func TestStrangersDoNotFillTheLogButPanicsAreInIt(t *testing.T) {
	var said shared
	s, err := New(Config{Pools: router.NewPools(), Keys: Keys{Current: key(7)}, Log: slog.New(slog.NewTextHandler(&said, nil))})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	served := httptest.NewUnstartedServer(nil)
	served.Config = s.HTTPServer()
	served.Config.Handler = http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic("by mistake") })
	served.StartTLS()
	t.Cleanup(served.Close)
	for range 20 {
		c, err := new(net.Dialer).DialContext(t.Context(), "tcp", served.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.WriteString(c, "GET / HTTP/1.1\r\nHost: a\r\n\r\n")
		_, _ = io.ReadAll(c) // what is answered to one without TLS
		c.Close()
	}
	r, err := served.Client().Get(served.URL)
	if err == nil {
		r.Body.Close()
		t.Error("a handler that panics answers ", r.Status)
	}
	eventually(t, "the panic is told of", func() bool { return strings.Contains(said.String(), "by mistake") })
	if text := said.String(); strings.Contains(text, "handshake") {
		t.Error(text)
	}
}

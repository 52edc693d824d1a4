package server

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/berthmaster/berthmaster/internal/router"
)

// FuzzWire writes any bytes on a connection to a pool with a lease, and then hangs up. What comes back is HTTP,
// every refusal of ours is one that the protocol has, nothing panics, and the counts are those of the leases that were granted.
func FuzzWire(f *testing.F) {
	const pool = "/v1alpha1/namespaces/rl/inferencepools/policy"
	post := func(path, body string) string {
		return "POST " + path + " HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n\r\n" + body
	}
	for _, seed := range []string{
		"GET " + pool + " HTTP/1.1\r\nHost: a\r\n\r\n",
		"GET " + pool + " HTTP/1.1\r\nHost: a\r\n\r\nGET " + pool + "/sessions/s0 HTTP/1.1\r\nHost: a\r\n\r\n",
		post(pool+"/leases", askR1+strings.Repeat(" ", 1000-len(askR1))) + post(pool+"/leases/r0/renew", `{"token":"TOKEN"}`),
		"POST " + pool + "/leases:batch HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n",
		"POST " + pool + "/leases HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n{}",
		"GET " + pool + "/watch HTTP/1.1\r\nHost: a\r\nLast-Event-ID: x-1\r\n\r\n",
		"DELETE " + pool + "/sessions/s0?sender=train HTTP/1.0\r\n\r\n", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
		"OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n", "CONNECT a:1 HTTP/1.1\r\nHost: a:1\r\n\r\n", "\x16\x03\x01\x02\x00\x01", "",
	} {
		f.Add([]byte(seed))
	}
	known := meanings()
	f.Fuzz(func(t *testing.T, raw []byte) {
		var said shared
		s, table, token := fuzzed(t)
		s.log = slog.New(slog.NewTextHandler(&said, nil))
		s.Close() // whatever would wait, or stream, is answered at once
		said.mustNotPanic(t, raw, func() {
			answers := exchange(t, s.HTTPServer(), bytes.ReplaceAll(raw, []byte("TOKEN"), []byte(token)))
			checkAnswers(t, raw, answers, known)
		})
		counted, live := int64(0), table.Snapshot(time.Unix(1_700_000_000, 0))
		for _, b := range live.Backends {
			counted += b.Outstanding
		}
		if most := 1 + live.Totals.Grants*router.MaxExecutions; counted < 0 || counted > most {
			t.Fatalf("%q: %d executions are counted after %d grants", raw, counted, live.Totals.Grants)
		}
	})
}

// mustNotPanic fails if what is logged meanwhile has a panic: net/http catches those of handlers.
func (b *shared) mustNotPanic(t *testing.T, raw []byte, do func()) {
	t.Helper()
	do()
	if text := b.String(); strings.Contains(text, "panic") {
		t.Fatalf("%q: %s", raw, text)
	}
}

// checkAnswers reads the answers one after the other. The last may be cut.
func checkAnswers(t *testing.T, raw, answers []byte, known map[router.Reason]meaning) {
	t.Helper()
	for rest := bufio.NewReader(bytes.NewReader(answers)); ; {
		if _, err := rest.Peek(1); errors.Is(err, io.EOF) {
			return
		}
		r, err := http.ReadResponse(rest, nil)
		if err != nil {
			if bytes.HasPrefix(answers, []byte("HTTP/1.")) {
				return // the answer to a HEAD, whose length is not followed by a body
			}
			t.Fatalf("%q: %v in what is answered: %q", raw, err, answers)
		}
		text, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		var p problem
		if r.StatusCode >= 400 && r.Header.Get("Content-Type") == "application/problem+json" {
			if err := json.Unmarshal(text, &p); err != nil || known[p.Reason].status != r.StatusCode {
				t.Fatalf("%q: answered %d %q", raw, r.StatusCode, text)
			}
		}
	}
}

// exchange serves one connection on which somebody writes raw and hangs up, and returns what was answered.
func exchange(t *testing.T, h *http.Server, raw []byte) []byte {
	t.Helper()
	c := &scripted{left: bytes.NewReader(raw), closed: make(chan struct{})}
	l := &single{conns: make(chan net.Conn, 1), ended: make(chan struct{})}
	l.conns <- c
	served := make(chan error, 1)
	go func() { served <- h.Serve(l) }()
	patience := time.NewTimer(time.Minute)
	defer patience.Stop()
	select {
	case <-c.closed:
	case <-patience.C:
		t.Fatalf("%q: the connection is not closed", raw)
	}
	if err := errors.Join(h.Close(), ignored(<-served)); err != nil {
		t.Fatal(err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return bytes.Clone(c.written)
}

// ignored is nil for the error by which a server says that it was closed.
func ignored(err error) error {
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return err
}

// single is a listener with the connections that are put into it.
type single struct {
	conns chan net.Conn
	ended chan struct{}
	once  sync.Once
}

func (l *single) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.ended:
		return nil, net.ErrClosed
	}
}

func (l *single) Close() error   { l.once.Do(func() { close(l.ended) }); return nil }
func (l *single) Addr() net.Addr { return &net.TCPAddr{} }

// scripted is a connection whose other end has written all that it will, and reads everything.
type scripted struct {
	net.Conn // nil: a call that the server is not known to make is a fault of this test

	mu      sync.Mutex
	left    *bytes.Reader // guarded by mu
	written []byte        // guarded by mu
	closed  chan struct{}
	once    sync.Once
}

func (c *scripted) Read(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.left.Read(p)
}

func (c *scripted) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.written = append(c.written, p...)
	return len(p), nil
}

func (c *scripted) Close() error                     { c.once.Do(func() { close(c.closed) }); return nil }
func (c *scripted) CloseWrite() error                { return nil }
func (c *scripted) LocalAddr() net.Addr              { return &net.TCPAddr{} }
func (c *scripted) RemoteAddr() net.Addr             { return &net.TCPAddr{} }
func (c *scripted) SetDeadline(time.Time) error      { return nil }
func (c *scripted) SetReadDeadline(time.Time) error  { return nil }
func (c *scripted) SetWriteDeadline(time.Time) error { return nil }

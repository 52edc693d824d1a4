package server

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/berthmaster/berthmaster/internal/router"
)

// hostile opens a connection, and writes what no client of HTTP would.
func (w *world) hostile(text string) net.Conn {
	w.t.Helper()
	c, err := (&net.Dialer{}).DialContext(w.t.Context(), "tcp", strings.TrimPrefix(w.base, "http://"))
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { c.Close() })
	_ = c.SetDeadline(time.Now().Add(patience))
	// The server may close as soon as it has seen enough.
	_, _ = io.WriteString(c, text)
	return c
}

func TestMalformedRequestsAreRefusedOrCutAndChangeNothing(t *testing.T) {
	w := newWorld(t, 1, func(c *Config, _ *router.Fleet) { c.Limits.Read = 50 * time.Millisecond })
	path := strings.TrimPrefix(w.pool, w.base)
	before := w.snapshot().Totals
	for name, text := range map[string]string{
		"no HTTP":                        "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + strings.Repeat("\x00", 300),
		"nothing":                        "",
		"half a request line":            "POST " + path,
		"a method of spaces":             "   " + path + " HTTP/1.1\r\nHost: a\r\n\r\n",
		"an unknown version":             "POST " + path + "/leases HTTP/9.9\r\nHost: a\r\n\r\n",
		"no host":                        "GET " + path + " HTTP/1.1\r\n\r\n",
		"two hosts":                      "GET " + path + " HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
		"a header without a colon":       "GET " + path + " HTTP/1.1\r\nHost: a\r\nnonsense\r\n\r\n",
		"a header with a null byte":      "GET " + path + " HTTP/1.1\r\nHost: a\r\nX: \x00\r\n\r\n",
		"a negative length":              "POST " + path + "/leases HTTP/1.1\r\nHost: a\r\nContent-Length: -1\r\n\r\n",
		"two lengths that differ":        "POST " + path + "/leases HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\n{}",
		"a length beside chunks":         "POST " + path + "/leases HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\nTransfer-Encoding: gzip, chunked\r\n\r\n{}",
		"a chunk of no size":             "POST " + path + "/leases HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
		"a body that never comes":        "POST " + path + "/leases HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n\r\n{",
		"a path with an escape too many": "GET /v1alpha1/namespaces/%2e%2e/%zz HTTP/1.1\r\nHost: a\r\n\r\n",
		"ten thousand headers":           "GET " + path + " HTTP/1.1\r\nHost: a\r\n" + strings.Repeat("X-A: b\r\n", 10000) + "\r\n",
		"one header of a megabyte":       "GET " + path + " HTTP/1.1\r\nHost: a\r\nX: " + strings.Repeat("a", 1<<20) + "\r\n\r\n",
		"a request to be someone's hop":  "CONNECT 10.0.0.1:443 HTTP/1.1\r\nHost: 10.0.0.1:443\r\n\r\n",
	} {
		answer, err := http.ReadResponse(bufio.NewReader(w.hostile(text)), nil)
		if err != nil {
			continue // cut
		}
		_ = answer.Body.Close()
		if answer.StatusCode < 400 || answer.StatusCode >= 500 && answer.StatusCode != http.StatusNotImplemented && answer.StatusCode != http.StatusHTTPVersionNotSupported {
			t.Errorf("%s: answered %s", name, answer.Status)
		}
	}
	if diff := cmp.Diff(before, w.snapshot().Totals); diff != "" {
		t.Error("something has changed: ", diff)
	}
	if r := w.acquire("r1", "s1"); r.status != http.StatusCreated {
		t.Errorf("a well-behaved client afterwards: %d", r.status)
	}
}

func TestClientsThatSendSlowlyOrNotAtAllKeepNobodyFromBeingServed(t *testing.T) {
	w := newWorld(t, 1)
	path := strings.TrimPrefix(w.pool, w.base)
	for i := range 300 {
		switch i % 3 {
		case 0:
			w.hostile("") // half-open: connected, and silent
		case 1:
			w.hostile("POST " + path + "/leases HTTP/1.1\r\nHost: a\r\nX-Slow: ")
		case 2:
			w.hostile("POST " + path + "/leases HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: 60000\r\n\r\n{")
		}
	}
	for i := range 50 {
		id := fmt.Sprint("r", i)
		token := w.lease(id, fmt.Sprint("s", i)).text("token")
		if r := w.release(id, object{"token": token, "outcome": "Succeeded"}); r.status != http.StatusOK {
			t.Fatalf("%s: %d %s", id, r.status, r.raw)
		}
	}
	if n := w.outstanding(); n != 0 {
		t.Errorf("%d executions are counted", n)
	}
}

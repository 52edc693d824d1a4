package server

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/berthmaster/berthmaster/internal/router"
)

// unread serves a pool that leaves readers of a body all the time that a test has, and others none.
func unread(t *testing.T, guard Authorizer, data func(*Server) http.Handler) *world {
	w := newWorld(t, 1, func(c *Config, _ *router.Fleet) {
		c.Authorizer, c.Limits.Read, c.Limits.Unread = guard, time.Hour, time.Nanosecond
	})
	if data != nil {
		h := w.server.HTTPServer()
		h.Handler = data(w.server)
		beside := httptest.NewUnstartedServer(nil)
		beside.Config = h
		beside.Start()
		t.Cleanup(beside.Close)
		w.base = beside.URL
	}
	return w
}

// claims has a data path that refuses every call without reading its body.
func claims(s *Server) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if s.AnswersHere(w, r) {
			w.WriteHeader(http.StatusNotFound)
		}
	})
}

func TestNobodyKeepsAConnectionByABodyThatNobodyReads(t *testing.T) {
	const pool = "/v1alpha1/namespaces/rl/inferencepools/policy"
	for name, c := range map[string]struct {
		guard  Authorizer
		call   string
		header string
		data   func(*Server) http.Handler
		status int
	}{
		"a path outside the protocol":         {nil, "POST /x", "", nil, http.StatusNotFound},
		"a path that no call of a pool has":   {nil, "POST " + pool + "/engines", "", nil, http.StatusNotFound},
		"a method that the path has not":      {nil, "PUT " + pool + "/leases", "", nil, http.StatusMethodNotAllowed},
		"an id that is none":                  {nil, "POST " + pool + "/leases/-/renew", "", nil, http.StatusBadRequest},
		"a page of another origin":            {nil, "POST " + pool + "/leases", "Origin: https://elsewhere.example\r\n", nil, http.StatusForbidden},
		"the list":                            {nil, "GET " + listPath, "", nil, http.StatusOK},
		"the list, written to":                {nil, "POST " + listPath, "", nil, http.StatusMethodNotAllowed},
		"a pool that is not there":            {nil, "POST " + pool + "-not/leases", "", nil, http.StatusNotFound},
		"a call that has no body":             {nil, "GET " + pool, "", nil, http.StatusOK},
		"somebody who may not call":           {&gate{}, "POST " + pool + "/leases", "", nil, http.StatusUnauthorized},
		"somebody who may, and asks for none": {&gate{}, "GET " + pool, "Authorization: Bearer trainer\r\n", nil, http.StatusOK},
		"a data path that refuses":            {nil, "POST " + pool + "/senders/s/proxy/x", "", claims, http.StatusNotFound},
	} {
		for how, length := range map[string]string{"a length": "Content-Length: 1", "chunks": "Transfer-Encoding: chunked"} {
			t.Run(name+" with "+how, func(t *testing.T) {
				w := unread(t, c.guard, c.data)
				got, err := io.ReadAll(w.raw(c.call + " HTTP/1.1\r\nHost: x\r\n" + c.header + length + "\r\n\r\n"))
				if err != nil || !strings.HasPrefix(string(got), fmt.Sprintf("HTTP/1.1 %d ", c.status)) {
					t.Errorf("%v: %.60q, want %d and the end", err, got, c.status)
				}
			})
		}
	}
}

func TestABodyThatIsWantedHasTheTimeOfReaders(t *testing.T) {
	for name, c := range map[string]struct {
		guard  Authorizer
		header string
	}{"callers are judged": {&gate{}, "Authorization: Bearer trainer\r\n"}, "nobody is judged": {nil, ""}} {
		t.Run(name, func(t *testing.T) {
			w := unread(t, c.guard, nil)
			path := strings.TrimPrefix(w.pool, w.base)
			// With this expectation the server says when it begins to read the body, and so when the time has come to send it.
			conn := w.raw(fmt.Sprintf("POST %s/leases HTTP/1.1\r\nHost: x\r\n%sContent-Type: application/json\r\nContent-Length: %d\r\nExpect: 100-continue\r\nConnection: close\r\n\r\n",
				path, c.header, len(askR1)))
			reads := bufio.NewReader(conn)
			if line, err := reads.ReadString('\n'); err != nil || !strings.Contains(line, "100") {
				t.Fatal(line, err)
			}
			if _, err := io.WriteString(conn, askR1); err != nil {
				t.Fatal(err)
			}
			got, err := io.ReadAll(reads)
			if err != nil || !strings.Contains(string(got), "HTTP/1.1 201 ") {
				t.Errorf("%v: %s", err, got)
			}
		})
	}
}

// deadlines notes what deadline is set for reading.
type deadlines struct {
	*httptest.ResponseRecorder
	read *time.Time
}

func (d deadlines) SetReadDeadline(at time.Time) error {
	*d.read = at
	return nil
}

func TestAHandlerThatReadsNoBodiesHurriesThoseThatHaveOne(t *testing.T) {
	for name, c := range map[string]struct {
		body    io.Reader
		hurried bool
	}{"with a body": {strings.NewReader("x"), true}, "without": {nil, false}} {
		var read time.Time
		reached := false
		h := Hurried(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { reached = !read.IsZero() == c.hurried }))
		h.ServeHTTP(deadlines{httptest.NewRecorder(), &read}, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", c.body))
		if !reached || read.After(time.Now().Add(UnreadTime)) {
			t.Errorf("%s: deadline %v when the handler is reached", name, read)
		}
	}
}

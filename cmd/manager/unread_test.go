package main

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/berthmaster/berthmaster/internal/door"
	"github.com/berthmaster/berthmaster/internal/livepage"
	"github.com/berthmaster/berthmaster/internal/router/server"
)

// noted is an answer that notes what deadline is set for reading the body.
type noted struct {
	*httptest.ResponseRecorder
	read time.Time
}

// SetReadDeadline is what http.NewResponseController looks for.
func (n *noted) SetReadDeadline(at time.Time) error {
	n.read = at
	return nil
}

func TestNobodyKeepsAPlaceOfAnyPortByABodyThatNobodyReads(t *testing.T) {
	leases, _ := startAPI(t.Context(), t, func(context.Context) error { return nil })
	untilAnswers(t, leases)
	leases.page = livepage.New()
	small := smallPort{name: "probes", door: door.New(1), handler: probes(leases.check)}.endpoint().Handler
	for name, c := range map[string]struct {
		port         http.Handler
		method, path string
		status       int
	}{
		"the page":               {leases, http.MethodGet, "/", http.StatusOK},
		"no path of the port":    {leases, http.MethodPost, "/x", http.StatusNotFound},
		"a pool":                 {leases, http.MethodPost, poolPath + "/leases", http.StatusNotFound},
		"the proxy":              {leases, http.MethodPost, poolPath + "/senders/train/proxy/generate", http.StatusNotFound},
		"a probe":                {small, http.MethodGet, "/readyz", http.StatusOK},
		"no path of the probes'": {small, http.MethodPost, "/x", http.StatusNotFound},
	} {
		answer := &noted{ResponseRecorder: httptest.NewRecorder()}
		before := time.Now()
		c.port.ServeHTTP(answer, httptest.NewRequestWithContext(t.Context(), c.method, "http://localhost"+c.path, strings.NewReader("x")))
		after := time.Now()
		if answer.Code != c.status || answer.read.Before(before) || answer.read.After(after.Add(server.UnreadTime)) {
			t.Errorf("%s: %d, and the rest of the body has until %v; want %d, and at most %v", name, answer.Code, answer.read, c.status, server.UnreadTime)
		}
	}
}

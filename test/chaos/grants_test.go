package main

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"time"
)

// at is a moment of a test, in seconds.
func at(seconds int) time.Time { return time.Unix(int64(seconds), 0) }

func TestGrantsUnderTwoTermsAtOnceAreFoundOut(t *testing.T) {
	for name, c := range map[string]struct {
		grants []grant
		found  bool
	}{
		"one term after the other":                         {[]grant{{"a", 1, at(0), at(1)}, {"b", 2, at(2), at(3)}}, false},
		"an answer that took until the next term":          {[]grant{{"a", 1, at(0), at(9)}, {"b", 2, at(2), at(3)}}, false},
		"a grant of the old term after one of the new":     {[]grant{{"b", 2, at(2), at(3)}, {"a", 1, at(4), at(5)}}, true},
		"the same, noted in another order":                 {[]grant{{"a", 1, at(4), at(5)}, {"c", 2, at(6), at(7)}, {"b", 2, at(2), at(3)}}, true},
		"a term that was skipped":                          {[]grant{{"a", 1, at(0), at(1)}, {"b", 5, at(2), at(3)}, {"c", 5, at(4), at(5)}}, false},
		"a grant of the old term, two terms after its end": {[]grant{{"b", 3, at(2), at(3)}, {"a", 1, at(4), at(5)}}, true},
	} {
		g := &grants{all: c.grants}
		if got := g.overlap(); (got != "") != c.found {
			t.Errorf("%s: %q, want found: %t", name, got, c.found)
		}
	}
}

// answers is a router that gives one answer.
type answers struct {
	status int
	body   string
}

func (a answers) RoundTrip(*http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: a.status, Body: io.NopCloser(strings.NewReader(a.body))}, nil
}

func TestTheWitnessNotesNewGrantsAndPassesThemOn(t *testing.T) {
	const lease = `{"requestID":"r","term":3}`
	for name, c := range map[string]struct {
		path   string
		answer answers
		noted  int
	}{
		"a new lease":    {"/leases", answers{http.StatusCreated, lease}, 1},
		"the same again": {"/leases", answers{http.StatusOK, lease}, 0},
		"a refusal":      {"/leases", answers{http.StatusServiceUnavailable, `{}`}, 0},
		"a renewal":      {"/leases/r/renew", answers{http.StatusOK, lease}, 0},
	} {
		g := &grants{}
		call, err := http.NewRequest(http.MethodPost, "http://pool"+c.path, nil)
		if err != nil {
			t.Fatal(err)
		}
		reply, err := witness{next: c.answer, grants: g}.RoundTrip(call)
		if err != nil {
			t.Fatal(err)
		}
		if body, _ := io.ReadAll(reply.Body); string(body) != c.answer.body {
			t.Errorf("%s: passed on %q", name, body)
		}
		if len(g.all) != c.noted || c.noted == 1 && g.all[0].term != 3 {
			t.Errorf("%s: noted %v", name, g.all)
		}
	}
}

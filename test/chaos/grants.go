package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"
)

// grant is a lease that was granted, as its client saw it: at some moment between two.
type grant struct {
	id               string
	term             int64
	earliest, latest time.Time
}

// grants is the log of all leases that were granted in a run.
type grants struct {
	mu  sync.Mutex
	all []grant // guarded by mu
}

func (g *grants) add(one grant) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.all = append(g.all, one)
}

// overlap says that a lease was granted under a term after one had been granted under a later
// term: two managers had authority at once. Empty: none was.
func (g *grants) overlap() string {
	g.mu.Lock()
	defer g.mu.Unlock()
	first := map[int64]grant{} // of each term, the grant that was over first
	for _, one := range g.all {
		if known, has := first[one.term]; !has || one.latest.Before(known.latest) {
			first[one.term] = one
		}
	}
	for _, one := range g.all {
		for term, later := range first {
			if term > one.term && one.earliest.After(later.latest) {
				return fmt.Sprintf("lease %s was granted under term %d at least %s after lease %s under term %d",
					one.id, one.term, one.earliest.Sub(later.latest), later.id, term)
			}
		}
	}
	return ""
}

// after lists how many leases were certainly granted after a moment.
func (g *grants) after(moment time.Time) int {
	g.mu.Lock()
	defer g.mu.Unlock()
	n := 0
	for _, one := range g.all {
		if one.earliest.After(moment) {
			n++
		}
	}
	return n
}

// restart forgets what was granted: the terms of another pool begin anew.
func (g *grants) restart() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.all = nil
}

// latest is the highest term under which a lease was granted.
func (g *grants) latest() int64 {
	g.mu.Lock()
	defer g.mu.Unlock()
	var latest int64
	for _, one := range g.all {
		latest = max(latest, one.term)
	}
	return latest
}

// terms counts the terms under which leases were granted.
func (g *grants) terms() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	seen := map[int64]struct{}{}
	for _, one := range g.all {
		seen[one.term] = struct{}{}
	}
	return len(seen)
}

// witness carries calls to the router, and notes the leases that are granted.
type witness struct {
	next   http.RoundTripper
	grants *grants
}

// RoundTrip notes a grant if the call is answered with a new one.
func (w witness) RoundTrip(call *http.Request) (*http.Response, error) {
	sent := time.Now()
	reply, err := w.next.RoundTrip(call)
	if err != nil || reply.StatusCode != http.StatusCreated || !strings.HasSuffix(call.URL.Path, "/leases") {
		return reply, err
	}
	body, err := io.ReadAll(reply.Body)
	if err != nil {
		return nil, err
	}
	_ = reply.Body.Close() // it was read to its end
	reply.Body = io.NopCloser(bytes.NewReader(body))
	one, err := readGrant(body)
	if err != nil {
		return nil, err
	}
	one.earliest, one.latest = sent, time.Now()
	w.grants.add(one)
	return reply, nil
}

func readGrant(body []byte) (grant, error) {
	var lease struct {
		RequestID string `json:"requestID"`
		Term      int64  `json:"term"`
	}
	err := json.Unmarshal(body, &lease)
	if err == nil && lease.Term == 0 {
		err = fmt.Errorf("a lease without a term: %s", body)
	}
	return grant{id: lease.RequestID, term: lease.Term}, err
}

package fakepool

import (
	"net/http"
	"sync"
	"time"
)

// lease is one that was given.
type lease struct {
	requestID string
	engine    string
	rid       string
	token     string
	// outcomes are those with which it was released, each repetition included.
	outcomes []string
	// identity is what it was asked for with, as JSON.
	identity string
	answer   map[string]any
}

// arrival is one request at an engine, or what came of it.
type arrival struct {
	engine string
	// rid is empty if the request did not arrive whole.
	rid string
	// idle is how long its connection had rested after another request; negative: it was new.
	idle   time.Duration
	header http.Header
	path   string
}

// record is what a run has seen, beyond the order of it.
type record struct {
	mu       sync.Mutex
	leases   []*lease                  // guarded by mu
	arrivals []*arrival                // guarded by mu
	faults   []string                  // guarded by mu; violations that were noticed on the spot
	first    map[string]map[string]any // guarded by mu; the first body of each kind of call
	heads    map[string]http.Header    // guarded by mu; that of the first call of each kind
	asked    map[string]string         // guarded by mu; identity by request id
	turns    map[string]int            // guarded by mu; how many calls there were, by kind or engine
}

func newRecord() *record {
	return &record{first: map[string]map[string]any{}, heads: map[string]http.Header{}, asked: map[string]string{}, turns: map[string]int{}}
}

// turn counts a call of a kind, and returns its number from 0.
func (r *record) turn(kind string) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := r.turns[kind]
	r.turns[kind]++
	return n
}

func (r *record) fault(rule, text string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.faults = append(r.faults, rule+": "+text)
}

// arrive notes the first byte of a request.
func (r *record) arrive(a *arrival) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.arrivals = append(r.arrivals, a)
}

// complete notes that a request arrived whole.
func (r *record) complete(a *arrival, rid, path string, header http.Header) {
	r.heard("request", header)
	r.mu.Lock()
	defer r.mu.Unlock()
	a.rid, a.path, a.header = rid, path, header
}

// heard keeps the header of the first call of a kind.
func (r *record) heard(kind string, header http.Header) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.heads[kind] == nil {
		r.heads[kind] = header
	}
}

// byID returns the lease of a request, nil if there is none. The caller holds mu.
func (r *record) byID(requestID string) *lease {
	for _, l := range r.leases {
		if l.requestID == requestID {
			return l
		}
	}
	return nil
}

package fakepool

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// longRest is how long a connection may rest before it may not carry another request. The protocol
// says 2 s; the engine sees the next request a little after it was written.
const longRest = 2900 * time.Millisecond

// laws are what holds in every scenario.
func (r *record) laws() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := slices.Clone(r.faults)
	out = append(out, r.sentUnderLeases()...)
	out = append(out, r.honest()...)
	out = append(out, r.released()...)
	for _, a := range r.arrivals {
		out = append(out, a.clean()...)
	}
	return out
}

// sentUnderLeases: each request carries the rid of a lease on that engine, and no other does.
func (r *record) sentUnderLeases() []string {
	var out []string
	times := map[string]int{}
	for _, a := range r.arrivals {
		if a.rid == "" {
			continue
		}
		times[a.rid]++
		if !slices.ContainsFunc(r.leases, func(l *lease) bool { return l.rid == a.rid && l.engine == a.engine }) {
			out = append(out, fmt.Sprintf("C11: engine %s got rid %q, for which it has no lease", a.engine, a.rid))
		}
		if a.path != "/generate" {
			out = append(out, "C11: the request went to "+a.path)
		}
	}
	for rid, n := range times {
		if n > 1 {
			out = append(out, fmt.Sprintf("C12: rid %s arrived %d times", rid, n))
		}
	}
	return out
}

// honest: an engine has not seen more requests begin than it has leases that may have been used.
func (r *record) honest() []string {
	begun, used := map[string]int{}, map[string]int{}
	for _, a := range r.arrivals {
		begun[a.engine]++
	}
	for _, l := range r.leases {
		if !slices.Contains(l.outcomes, "NotSent") {
			used[l.engine]++
		}
	}
	var out []string
	for engine, n := range begun {
		if n > used[engine] {
			out = append(out, fmt.Sprintf("C14: engine %s saw %d requests begin, under %d leases that were not said to be unused", engine, n, used[engine]))
		}
	}
	return out
}

// released: each lease was released, with one outcome.
func (r *record) released() []string {
	var out []string
	for _, l := range r.leases {
		switch distinct := slices.Compact(slices.Clone(l.outcomes)); {
		case len(distinct) == 0:
			out = append(out, "C22: the lease of "+l.requestID+" was never released")
		case len(distinct) > 1:
			out = append(out, fmt.Sprintf("C23: the lease of %s was released as %v", l.requestID, l.outcomes))
		}
	}
	return out
}

// clean: the request came in time over its connection, and carried neither too much nor too little.
func (a *arrival) clean() []string {
	var out []string
	if a.idle > longRest {
		out = append(out, fmt.Sprintf("C13: a connection carried a request after it had rested for %v", a.idle))
	}
	if a.rid == "" {
		return out
	}
	if got := a.header.Get("Authorization"); got != "Bearer "+EngineKey {
		out = append(out, fmt.Sprintf("C27: the engine got Authorization %q", got))
	}
	for name := range a.header {
		value := a.header.Get(name)
		if strings.Contains(name, "Idempotency-Key") {
			out = append(out, "C12: the request carried "+name)
		}
		if strings.Contains(value, RouterToken) || strings.Contains(value, "lease-token") {
			out = append(out, "C27: the engine got a secret in "+name)
		}
	}
	return out
}

package routertest

import (
	"fmt"
	"testing"
	"time"

	"github.com/berthmaster/berthmaster/internal/router"
)

// FreshSessions as the number of sessions of a load gives every turn a session of its own.
const FreshSessions = 0

// Load is one client that takes and releases leases as fast as it can, a virtual millisecond
// apart. Its ids are made beforehand, so that only the router's own work is measured; they come
// round again after the retention time.
type Load struct {
	p        *Pool
	requests []router.RequestID
	sessions []router.SessionID
	turn     int
}

// NewLoad makes a load over so many backends and sessions. Half the capacity is taken by
// leases that stay, so that backends differ.
func NewLoad(t testing.TB, backends, sessions int) *Load {
	names := make([]router.BackendName, backends)
	for i := range names {
		names[i] = router.BackendName(fmt.Sprint("backend-", i))
	}
	p := New(t, Backends(names...), With(func(c *router.Config) {
		c.Retention, c.IdleTimeout, c.TTL = 30*time.Second, 30*time.Second, 10_000*time.Hour
	}))
	for i := range backends * 4 {
		id := fmt.Sprint("resident-", i)
		p.Acquire(router.RequestID(id), router.SessionID(id))
	}
	l := &Load{p: p}
	fresh := sessions == FreshSessions
	if fresh {
		sessions = 1 << 16
	}
	for i := range sessions {
		l.sessions = append(l.sessions, router.SessionID(fmt.Sprintf("session-%08d", i)))
	}
	for i := range 1 << 16 {
		l.requests = append(l.requests, router.RequestID(fmt.Sprintf("request-%08d", i)))
	}
	for range len(l.requests) { // records and idle sessions come and go from here on
		l.Turn()
	}
	return l
}

// Turn acquires a lease and releases it.
func (l *Load) Turn() {
	l.turn++
	l.p.now = l.p.now.Add(time.Millisecond)
	r := l.p.Request(l.requests[l.turn%len(l.requests)], l.sessions[l.turn%len(l.sessions)])
	g, err := l.p.Table.Acquire(r, l.p.now)
	if err != nil {
		l.p.t.Fatalf("acquire: %v", err)
	}
	if _, err := l.p.Table.Release(g.Claim, router.Succeeded, router.Reply{}, l.p.now); err != nil {
		l.p.t.Fatalf("release: %v", err)
	}
}

package router

import (
	"cmp"
	"slices"
	"time"
)

// Listing asks for a page of a pool's sessions, in the order of their ids.
type Listing struct {
	// After is the last id of the page before; empty: the first page.
	After SessionID
	// Backend and Sender narrow the page to sessions at home there, or of that sender; empty: all.
	Backend BackendName
	Sender  SenderName
	// Limit bounds the page; at least 1.
	Limit int
}

// SessionEntry is one session of a page.
type SessionEntry struct {
	Session SessionID
	Sender  SenderName
	// Backend and Incarnation are empty when it has no home.
	Backend     BackendName
	Incarnation Incarnation
	// Active leases of the session.
	Active int64
	// Idle is how long it has had none, by the pool's idle clock, which stands still while the pool
	// is held or paused; 0 while Active is above 0.
	Idle time.Duration
	// Why is Choice.Why.
	Why string
}

// listedAtOnce is how many sessions are looked at before the lock is given back.
const listedAtOnce = 1024

// Sessions returns a page, and whether more follow. A session that is there throughout is on
// exactly one page; one that begins or ends meanwhile may be missing. A pool may remember a
// million: the lock is given back again and again, so that a listing holds up no grant.
func (t *Table) Sessions(l Listing, now time.Time) (page []SessionEntry, more bool) {
	s, at := t.enter(now) // the state is the table's for life, only what is in it changes
	defer func() { t.leave(at) }()
	clock := s.idleClock.read(at)
	seen := 0
	// Go lets a map change while it is ranged over. Every step of this loop is made under the lock.
	for id, v := range s.sessions {
		if seen++; seen%listedAtOnce == 0 {
			t.leave(at)
			_, at = t.enter(now)
		}
		if !l.wants(v) || len(page) > l.Limit && id >= page[0].Session {
			continue
		}
		page = keepLeast(page, v.entry(clock), l.Limit+1)
	}
	slices.SortFunc(page, func(a, b SessionEntry) int { return cmp.Compare(a.Session, b.Session) })
	if len(page) > l.Limit {
		return page[:l.Limit], true
	}
	return page, false
}

func (l *Listing) wants(v *session) bool {
	return v.id > l.After && (l.Sender == "" || v.sender == l.Sender) &&
		(l.Backend == "" || v.home != nil && v.home.Name == l.Backend)
}

func (v *session) entry(clock instant) SessionEntry {
	e := SessionEntry{Session: v.id, Sender: v.sender, Active: v.active, Why: v.choice.why.String()}
	if v.home != nil {
		e.Backend, e.Incarnation = v.home.Name, v.home.Incarnation
	}
	if v.active == 0 {
		e.Idle = max(0, time.Duration(clock-v.idleSince))
	}
	return e
}

// keepLeast adds e to a heap of the n least ids, whose greatest is first.
func keepLeast(heap []SessionEntry, e SessionEntry, n int) []SessionEntry {
	if len(heap) < n {
		heap = append(heap, e)
		for i := len(heap) - 1; i > 0 && heap[(i-1)/2].Session < heap[i].Session; i = (i - 1) / 2 {
			heap[i], heap[(i-1)/2] = heap[(i-1)/2], heap[i]
		}
		return heap
	}
	heap[0] = e
	for i := 0; ; {
		greatest := i
		for _, child := range []int{2*i + 1, 2*i + 2} {
			if child < n && heap[child].Session > heap[greatest].Session {
				greatest = child
			}
		}
		if greatest == i {
			return heap
		}
		heap[i], heap[greatest] = heap[greatest], heap[i]
		i = greatest
	}
}

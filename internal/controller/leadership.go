package controller

import (
	"errors"
	"sync"
	"time"
)

// Election says whether this process has to be elected before it leads.
type Election int

const (
	// ElectionNone: it is the only one, and leads from its start to its end.
	ElectionNone Election = iota
	// ElectionAwaited: it follows until LeadUntil says that it leads.
	ElectionAwaited
)

// authority says whether this process may lead pools.
type authority int

const (
	authorityHeld authority = iota
	authorityNone
)

// errTooLate: authority ended while a term was being written or looked at. Somebody else may have
// granted meanwhile, so what was concluded is of no use.
var errTooLate = errors.New("leadership ended meanwhile")

// leadership is what this process knows of its authority (R11).
type leadership struct {
	election Election

	mu sync.Mutex
	// reign numbers the latest authority without a gap, which ends at until. Without an election it
	// is 0 and does not end. Both are guarded by mu, and so are the reigns of tenures.
	reign int64
	until time.Time
	// missed: somebody was told that there is no authority, and must hear when there is. Guarded by mu.
	missed bool
}

// at is the authority then, and the reign that it belongs to.
func (l *leadership) at(now time.Time) (authority, int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	command := l.atLocked(now)
	l.missed = l.missed || command == authorityNone
	return command, l.reign
}

// atLocked is the authority then for a caller that holds mu.
func (l *leadership) atLocked(now time.Time) authority {
	if l.election == ElectionNone || now.Before(l.until) {
		return authorityHeld
	}
	return authorityNone
}

// extend moves the end of authority, for the tables whose term was seen to stand in this reign. It
// reports whether that is news: the reign is a new one, or somebody saw its end, by another reading of
// the clock, just before it was moved.
func (l *leadership) extend(reign int64, until, now time.Time, list []*tenure) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	news := reign != l.reign || l.missed
	l.reign, l.until, l.missed = reign, until, false
	for _, t := range list {
		if t.reign == reign {
			t.table.LeadUntil(until, now)
		}
	}
	return news
}

// assume lets a tenure's table grant for the rest of a reign. Its term was written, or read from the
// API server itself, in that reign: if the reign is over by now, it fails with errTooLate.
func (l *leadership) assume(t *tenure, reign int64, now time.Time) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.election == ElectionNone {
		return nil
	}
	if reign != l.reign || l.atLocked(now) != authorityHeld {
		return errTooLate
	}
	t.reign = reign
	t.table.LeadUntil(l.until, now)
	return nil
}

// reignOf is the reign in which a tenure's term was last seen to stand; 0: in none.
func (l *leadership) reignOf(t *tenure) int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return t.reign
}

// LeadUntil says that this process may grant until then (R11), in an uninterrupted reign of that
// number. It is called before anybody else can know of it, and does not block.
func (r *Reconciler) LeadUntil(reign int64, until time.Time) {
	list := r.tenures.all()
	if !r.leadership.extend(reign, until, r.clock.Now(), list) {
		return
	}
	for _, t := range list {
		t.nudge()
	}
}

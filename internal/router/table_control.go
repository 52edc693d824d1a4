package router

import (
	"cmp"
	"time"
)

// Takeover is what a new term knows of earlier ones.
type Takeover struct {
	// Windows is the largest start window that an earlier term granted under; 0 with First.
	Windows time.Duration
	// Failure is the pool's failure as status has it; nil: none.
	Failure *Failure
}

// Lead begins a term, once it is written to status. Members whose Load is LoadUnknown carry
// unknown load until 5.3 (b), (c) or (d) clears it.
func (t *Table) Lead(term Term, past Takeover, now time.Time) {
	s, at := t.enter(now)
	defer t.leave(at)
	s.lead(term, instant(past.Windows), past.Failure, at)
}

// LeadUntil moves the end of leadership: no grant is made at or after until (R11). The zero
// time means that leadership does not end.
func (t *Table) LeadUntil(until, now time.Time) {
	s, at := t.enter(now)
	defer t.leave(at)
	s.authority.until = 0
	if !until.IsZero() {
		s.authority.until = cmp.Or(t.at(until), -1) // 0 would mean that it does not end
	}
	s.freed, s.fates = true, true // what became known meanwhile may be told again
}

// Apply takes a fleet over whole, and then what is known of it: nobody who waits is placed before
// all of it is, or the first backend of a list would be given everything. An error names what is
// wrong with the fleet, and nothing changes.
func (t *Table) Apply(f Fleet, now time.Time, known ...Observation) error {
	s, at := t.enter(now)
	defer t.leave(at)
	if err := s.apply(&f, at); err != nil {
		return err
	}
	for i := range known {
		s.observe(&known[i], at)
	}
	return nil
}

// Observe takes the prober's word about one incarnation.
func (t *Table) Observe(o Observation, now time.Time) {
	s, at := t.enter(now)
	defer t.leave(at)
	s.observe(&o, at)
}

// Gone takes note that engine processes are known to have ended: the kubelet reported it, or a
// person vouches for it. Those that the table never met are remembered as well; saying it again changes nothing.
func (t *Table) Gone(incarnations []Incarnation, now time.Time) {
	s, at := t.enter(now)
	defer t.leave(at)
	for _, inc := range incarnations {
		s.gone(inc, at)
	}
}

// PauseAborted says that an abort-mode pause of the engine, asked for at begun, was answered 200.
func (t *Table) PauseAborted(inc Incarnation, begun, now time.Time) {
	s, at := t.enter(now)
	defer t.leave(at)
	s.pauseAborted(inc, t.at(begun), at)
}

// FailureRecorded says that the failure of that request's execution is in status: the release
// that caused it may now be answered.
func (t *Table) FailureRecorded(id RequestID, now time.Time) {
	s, at := t.enter(now)
	defer t.leave(at)
	s.failureRecorded(id)
}

// IsolationRecorded says that the isolation of an incarnation is in status.
func (t *Table) IsolationRecorded(inc Incarnation, now time.Time) {
	s, at := t.enter(now)
	defer t.leave(at)
	s.isolationRecorded(inc)
}

// Chores lists what the engines should be asked now, each at most every half second. Answers go
// to AbortAnswered and LoadsRead; a call that failed is simply not answered.
func (t *Table) Chores(now time.Time) []Chore {
	s, at := t.enter(now)
	defer t.leave(at)
	var out []Chore
	for _, c := range s.chores(at) {
		out = append(out, Chore{Incarnation: c.at.Incarnation, URL: c.at.URL, Abort: c.aborts, ReadLoads: c.reads, Stamp: c.stamp})
	}
	return out
}

// AbortAnswered says that the engine answered 200 to the aborts of those rids.
func (t *Table) AbortAnswered(inc Incarnation, rids []RID, now time.Time) {
	s, at := t.enter(now)
	defer t.leave(at)
	s.abortAnswered(inc, rids)
}

// LoadsRead hands in the load snapshot that a chore with ReadLoads asked for, with its stamp.
func (t *Table) LoadsRead(inc Incarnation, stamp uint64, ranks []RankLoad, now time.Time) {
	s, at := t.enter(now)
	defer t.leave(at)
	s.loadsRead(inc, stamp, ranks, at)
}

// Tick brings what happens by itself up to now: leases run out, records are forgotten, and whoever
// waits for time alone is served. The settler calls it; no other call serves the last of these.
func (t *Table) Tick(now time.Time) {
	s, at := t.enter(now)
	defer t.leave(at)
	s.advance(at)
	s.freed = true // a waiter may wait for time alone, such as the end of a cool-down
}

// Snapshot copies what the table knows.
func (t *Table) Snapshot(now time.Time) Snapshot {
	s, at := t.enter(now)
	defer t.leave(at)
	s.advance(at)
	return s.snapshot(t.began, at)
}

package router

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"io"
	mathrand "math/rand/v2"
	"sync"
	"time"
)

// Table is one pool's router and the package's only mutable state. Every method may be called
// from any goroutine. While mu is held nothing logs, blocks, records metrics or calls out of
// this package. Pools share nothing: each has its own table (R12).
type Table struct {
	pool     PoolUID
	began    time.Time
	changes  chan struct{}
	lifetime lifetime

	mu    sync.Mutex
	state *state        // guarded by mu
	fates chan struct{} // guarded by mu; nil unless somebody waits; closed when a fate becomes known
	// latest is the latest time that any operation was given. Callers read their clocks before
	// they have the lock, so an earlier time may come after a later one; time does not go back.
	latest instant // guarded by mu
}

// NewTable makes the table of one pool. It grants nothing until Lead is called and a fleet is
// applied. random feeds the rids (16 bytes each); nil: a generator seeded by the system.
func NewTable(pool PoolUID, random io.Reader, now time.Time) *Table {
	if random == nil {
		random = seeded()
	}
	return &Table{
		pool: pool, began: now, changes: make(chan struct{}, 1), lifetime: newLifetime(),
		state: newState(pool, ridsFrom(random)),
	}
}

// seeded is a cryptographic generator in this process: no system call per grant.
func seeded() io.Reader {
	var seed [32]byte
	_, _ = rand.Read(seed[:]) // never fails: crypto/rand documents that it aborts instead
	return mathrand.NewChaCha8(seed)
}

// ridsFrom makes rids of 32 hexadecimal digits: of one length, so that none is the prefix of
// another.
func ridsFrom(random io.Reader) func() RID {
	var raw [16]byte
	var text [32]byte
	return func() RID {
		_, _ = io.ReadFull(random, raw[:])
		hex.Encode(text[:], raw[:])
		return RID(text[:])
	}
}

func (t *Table) at(now time.Time) instant { return instant(now.Sub(t.began)) }

// enter locks the table for one operation, which ends with leave.
func (t *Table) enter(now time.Time) (*state, instant) {
	t.mu.Lock()
	t.latest = max(t.latest, t.at(now))
	return t.state, t.latest
}

// leave serves the waiters that the operation made room for, unlocks, and tells those concerned.
func (t *Table) leave(now instant) {
	s := t.state
	s.dispatch(now)
	woken := s.queue.woken
	s.queue.woken = nil
	if s.fates && t.fates != nil {
		close(t.fates)
		t.fates = nil
	}
	s.fates = false
	changed := s.changed
	s.changed = false
	t.mu.Unlock()
	for _, w := range woken {
		close(w.done)
	}
	if changed {
		t.notify()
	}
}

func (t *Table) notify() {
	select {
	case t.changes <- struct{}{}:
	default: // a notice is pending already
	}
}

// Changes delivers one notice after anything that status or the settler should look at; notices
// merge while nobody reads.
func (t *Table) Changes() <-chan struct{} { return t.changes }

// Acquire returns a lease at once, or a *Refusal: Invalid, StaleEpoch, RequestConflict,
// LeaseEnded, ExecutionLost, NoLeader, PoolFailed, SenderUnknown, StaleGeneration,
// SenderFenced, LeasingHeld, Contended or NoBackend.
func (t *Table) Acquire(r Request, now time.Time) (Grant, error) {
	if err := r.Validate(); err != nil {
		return Grant{}, err
	}
	s, at := t.enter(now)
	defer t.leave(at)
	return s.acquire(&r, at)
}

// AcquireWait is Acquire that waits, through refusals that waiting can help, until ctx is done;
// it then returns the refusal that stood. A client that goes away leaves no trace. clock is
// read once more when the waiting ends without a lease.
func (t *Table) AcquireWait(ctx context.Context, r Request, clock func() time.Time) (Grant, error) {
	if err := r.Validate(); err != nil {
		return Grant{}, err
	}
	w, g, err := t.acquireOrQueue(r, clock())
	if w == nil {
		return g, err
	}
	select {
	case <-w.done:
	case <-ctx.Done():
	}
	if ctx.Err() != nil { // also when both came at once: nobody is there to take the lease
		return Grant{}, t.giveUpWaiting(w, err, clock())
	}
	return w.grant, w.err
}

func (t *Table) acquireOrQueue(r Request, now time.Time) (*waiter, Grant, error) {
	s, at := t.enter(now)
	defer t.leave(at)
	g, err := s.acquire(&r, at)
	if !s.mayWait(&r, err) {
		return nil, g, err
	}
	w := &waiter{req: r, done: make(chan struct{})}
	s.wait(w, at)
	return w, g, err
}

// TakeBack undoes a grant whose caller is not told of it: its token has not left this process. Others
// that were given the same lease keep it. It is to be called at most once for each grant.
func (t *Table) TakeBack(g *Grant, now time.Time) {
	s, at := t.enter(now)
	defer t.leave(at)
	s.takeBack(g, at)
}

// giveUpWaiting takes w out of the queue, and back what it was granted meanwhile.
func (t *Table) giveUpWaiting(w *waiter, stood error, now time.Time) error {
	s, at := t.enter(now)
	defer t.leave(at)
	s.leave(w, WaitAbandoned, at)
	s.freed = true // whoever stood behind w may be served
	s.takeBack(&w.grant, at)
	if w.err != nil {
		return w.err
	}
	return stood
}

// Renew extends an active lease; begun closes its start window for good. It is served in every
// state of the pool. Refusals: LeaseEnded, ExecutionLost, StaleEpoch, LeaseUnknown,
// PoolNotFound, NoLeader.
func (t *Table) Renew(c Claim, begun Start, now time.Time) (Renewal, error) {
	s, at := t.enter(now)
	defer t.leave(at)
	return s.renew(&c, begun, at)
}

// Release ends a lease with the outcome that its client reports and what it saw of the reply. For Ambiguous the Ending may not be settled; see
// AwaitFate. Refusals: Invalid, RequestConflict, LeaseUnknown, StaleEpoch, PoolNotFound,
// NoLeader.
func (t *Table) Release(c Claim, o Outcome, reply Reply, now time.Time) (Ending, error) {
	if !ValidOutcome(o) {
		return Ending{}, refuse(ReasonInvalid, "outcome", "outcome must be Succeeded, Aborted, NotSent, Rejected, Cancelled or Ambiguous")
	}
	if err := reply.Validate(); err != nil {
		return Ending{}, err
	}
	s, at := t.enter(now)
	defer t.leave(at)
	return s.release(&c, o, reply, at)
}

// Forgo is the NotSent release of a client that holds no token; the id is spent.
func (t *Table) Forgo(r Request, now time.Time) (Ending, error) {
	if err := r.Validate(); err != nil {
		return Ending{}, err
	}
	s, at := t.enter(now)
	defer t.leave(at)
	return s.forgo(&r, at)
}

// AwaitFate waits until the fate of an ambiguously released lease is known, and in status where
// it must be, or until ctx is done; it then returns how things stand.
func (t *Table) AwaitFate(ctx context.Context, c Claim) (Ending, error) {
	for {
		e, known, err := t.fate(&c)
		if err != nil || e.Settled {
			return e, err
		}
		select {
		case <-known:
		case <-ctx.Done():
			return e, nil
		}
	}
}

func (t *Table) fate(c *Claim) (Ending, <-chan struct{}, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	l := t.state.find(c)
	if l == nil {
		return Ending{}, nil, refuse(ReasonLeaseUnknown, "", "no such lease: it ended more than the retention time ago")
	}
	if t.fates == nil {
		t.fates = make(chan struct{})
	}
	e := l.ending(t.state.failureInStatus())
	e.Settled = e.Settled && t.state.mayGrant(t.latest)
	return e, t.fates, nil
}

// EndSession forgets a session on behalf of its sender; an unknown one has ended already.
// Without authority it is forgotten here, and the refusal is NoLeader: whoever leads may know the
// session too, by a token, and has to hear of its end. Refusal: Forbidden for another sender's session.
func (t *Table) EndSession(id SessionID, sender SenderName, now time.Time) error {
	s, at := t.enter(now)
	defer t.leave(at)
	if err := s.end(id, sender); err != nil || s.mayGrant(at) {
		return err
	}
	return lapsed()
}

// Session explains where a session lives and why. Refusal: SessionUnknown.
func (t *Table) Session(id SessionID) (SessionView, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.state.view(id)
}

package router

// lease is the record of one request, from its grant until the retention time after its end.
type lease struct {
	links[lease]
	id      RequestID
	who     identity
	rid     RID
	at      *backend
	session *session // nil for one served without affinity
	version Version
	term    Term

	phase phase
	// others is how many callers were given the lease besides the first, less those it was taken back from.
	others  int32
	outcome Outcome
	fate    Fate
	span    versionSpan
	abort   abortion
	filed   filing

	// windowEnd is when the client may no longer begin to write; a client that has begun, or
	// has released, closed its window at that moment.
	windowEnd instant
	begun     Start
	expires   instant
	place     int // in state.deadlines; -1: not there
	endedAt   instant
	// uncertainSince is the reading of the backend's running clock when the client said
	// Ambiguous.
	uncertainSince instant
}

// versionSpan says whether the weights changed under a lease.
type versionSpan uint8

const (
	spanOne versionSpan = iota
	spanMixed
)

// abortion is how far the abort of an execution has come: of one that is held, or that an aborting
// drain ends.
type abortion uint8

const (
	abortDue abortion = iota
	abortAnswered
)

// filing is where the record of a lease is kept.
type filing uint8

const (
	// filedByID: in state.leases.
	filedByID filing = iota
	// filedAsStray: in state.strays, beside the lease that holds its id.
	filedAsStray
)

func leaseLinks(l *lease) *links[lease] { return &l.links }

// closeWindow notes that nothing is written under l from now on.
func (l *lease) closeWindow(now instant) { l.windowEnd = min(l.windowEnd, now) }

// counted reports whether the execution is in the ledger.
func (l *lease) counted() bool { return l.phase != phaseEnded }

// matches reports whether a token speaks of this very grant.
func (l *lease) matches(c *Claim) bool {
	return l.id == c.Request && l.rid == c.RID && l.at.Incarnation == c.Incarnation && l.who == c.identity()
}

func (l *lease) claim(pool PoolUID) Claim {
	return Claim{
		Pool: pool, Request: l.id, RID: l.rid, Backend: l.at.Name, Incarnation: l.at.Incarnation,
		Session: l.who.session, Sender: l.who.sender, Generation: l.who.generation, Group: l.who.group,
		Executions: l.who.executions, Epoch: l.who.epoch, Term: l.term, Version: l.version,
	}
}

// shownFate: what is lost on a paused engine cannot resolve before the engine runs (R10).
func (l *lease) shownFate() Fate {
	if l.phase == phaseLost && l.fate == FatePending && !l.at.generates() {
		return FateUnresolved
	}
	return l.fate
}

// refusal is what an acquire or renew of a lease that is no longer active gets.
func (l *lease) refusal(epoch Epoch) *Refusal {
	r := &Refusal{Outcome: l.outcome, Fate: l.shownFate()}
	switch {
	case l.outcome != OutcomeNone:
		r.Reason, r.Detail = ReasonLeaseEnded, "this request has ended; use a new requestID for a new request"
	case l.who.epoch < epoch:
		r.Reason, r.Detail = ReasonStaleEpoch, "the pool's epoch was raised after this lease was granted"
		r.Epoch = epoch
	default:
		r.Reason, r.Detail = ReasonExecutionLost, "the lease was not renewed in time or its engine process has ended; what it ran is not answered for"
	}
	return r
}

// ending is what a release of l answers; what failed or isolated is told once it is in status.
func (l *lease) ending(failureInStatus bool) Ending {
	e := Ending{Outcome: l.outcome, Fate: l.shownFate(), Mixed: l.span == spanMixed, Settled: true}
	if l.outcome != Ambiguous {
		return e
	}
	switch l.fate {
	case FatePending:
		e.Settled = false
	case FateIsolated:
		e.Settled = l.at.isolation == isolatedRecorded
	case FateFailed:
		e.Settled = failureInStatus
	case FateNone, FateDead, FateUnresolved:
	}
	return e
}

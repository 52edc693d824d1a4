package router

// Outcome is how a lease ended, said by the client on release (design 5.2).
type Outcome string

// The outcomes. The zero value means that nobody has said yet.
const (
	OutcomeNone Outcome = ""
	// Succeeded: a complete reply.
	Succeeded Outcome = "Succeeded"
	// Aborted: the engine's own terminal abort was received.
	Aborted Outcome = "Aborted"
	// NotSent: nothing was written to the engine.
	NotSent Outcome = "NotSent"
	// Rejected: a complete reply from the short list of refusals, written once.
	Rejected Outcome = "Rejected"
	// Cancelled: the client cut its own written request; lost until known to be gone.
	Cancelled Outcome = "Cancelled"
	// Ambiguous: everything else.
	Ambiguous Outcome = "Ambiguous"
)

// ValidOutcome reports whether o is one that a client may report.
func ValidOutcome(o Outcome) bool {
	return o == Cancelled || o == Ambiguous || o.terminal()
}

// terminal outcomes prove by themselves that nothing runs any more (5.3 a).
func (o Outcome) terminal() bool {
	return o == Succeeded || o == Aborted || o == NotSent || o == Rejected
}

// Fate is what is known of an execution whose client cannot say how it ended.
type Fate string

// The fates. The zero value: the client's own outcome says it all.
const (
	FateNone Fate = ""
	// FatePending: it may still run; it stays counted.
	FatePending Fate = "Pending"
	// FateUnresolved: lost while its engine is paused; nothing can be known until it runs.
	FateUnresolved Fate = "Unresolved"
	// FateDead: it is known to be gone; the turn may be made again under a new id.
	FateDead Fate = "Dead"
	// FateIsolated: it could not be made certain; its incarnation takes no leases.
	FateIsolated Fate = "Isolated"
	// FateFailed: it could not be made certain, and the pool has failed.
	FateFailed Fate = "Failed"
)

// phase is where an execution stands in its life.
type phase uint8

const (
	// phaseActive: leased, renewed, counted.
	phaseActive phase = iota
	// phaseUncertain: its client said Ambiguous; counted, the certainty clock runs.
	phaseUncertain
	// phaseCancelled: its client cut it; counted.
	phaseCancelled
	// phaseLost: not renewed in time; counted.
	phaseLost
	// phaseOrphaned: of an earlier epoch, or contradicted by a token; counted.
	phaseOrphaned
	// phaseEnded: not counted any more; kept for the retention time.
	phaseEnded
)

func (p phase) String() string {
	return [...]string{"Active", "Uncertain", "Cancelled", "Lost", "Orphaned", "Ended"}[p]
}

// held phases are counted though no client answers for them.
func (p phase) held() bool { return p != phaseActive && p != phaseEnded }

// event is what can happen to an execution.
type event uint8

const (
	// eventTerminal: released with a terminal outcome under the lease's token.
	eventTerminal event = iota
	// eventAmbiguous: released as Ambiguous.
	eventAmbiguous
	// eventCancelled: released as Cancelled.
	eventCancelled
	// eventExpired: its TTL ran out.
	eventExpired
	// eventOrphaned: the epoch rose, or a token contradicted what was known.
	eventOrphaned
	// eventGone: known to be gone by 5.3 (b), (c) or (d).
	eventGone
)

func eventOf(o Outcome) event {
	switch o {
	case Ambiguous:
		return eventAmbiguous
	case Cancelled:
		return eventCancelled
	default:
		return eventTerminal
	}
}

// next is the life of an execution; ok is false where the move is illegal. A lost lease
// stays lost when its client says Ambiguous or Cancelled late, because lost leases never
// fail the pool; an orphan stays one for the same reason.
func (p phase) next(e event) (to phase, ok bool) {
	if p == phaseEnded {
		return p, false
	}
	switch e {
	case eventTerminal, eventGone:
		return phaseEnded, true
	case eventOrphaned:
		return phaseOrphaned, true
	case eventExpired:
		return phaseLost, p == phaseActive
	case eventAmbiguous:
		return p.unanswered(phaseUncertain)
	case eventCancelled:
		return p.unanswered(phaseCancelled)
	}
	return p, false
}

// unanswered is the move of a client that cannot say how its request ended.
func (p phase) unanswered(to phase) (phase, bool) {
	switch p {
	case phaseActive:
		return to, true
	case phaseLost, phaseOrphaned:
		return p, true
	case phaseUncertain, phaseCancelled, phaseEnded:
		return p, false
	}
	return p, false
}

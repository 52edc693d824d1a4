package router

// state is all that a pool's router knows, as plain data: no lock, no clock, no logger. Table
// is its lock; tests drive it directly.
type state struct {
	pool   PoolUID
	newRID func() RID

	config    Config
	epoch     Epoch
	term      Term
	authority authority
	// earlierWindows is when the last start window of earlier terms closes.
	earlierWindows instant
	leasing        Leasing
	published      Version
	target         Version
	// ending says whether sessions of pinned senders may begin.
	ending Pins
	// publications counts changes of published, for AfterPublish.
	publications int64
	failure      *failure

	backends map[Incarnation]*backend
	graves   graves
	// loads holds the backends that take new sessions, in no particular order.
	loads []load
	// ranking holds the same backends in the order of R1.
	ranking ranking
	members int
	choices int64

	senders map[SenderName]*sender
	// rights is the last one given out.
	rights   Rights
	sessions map[SessionID]*session
	groups   map[GroupID]*group
	idle     list[session]
	// idleClock stands still while leasing is held or an engine is paused or updating (R10).
	idleClock stopwatch

	leases map[RequestID]*lease
	// strays are executions whose id another lease holds, made known by a token (R11).
	strays    map[RID]*lease
	deadlines deadlines
	ended     list[lease]
	// uncertain are the leases whose certainty clock runs.
	uncertain map[*lease]struct{}

	queue queue

	// unsettled: what settles must be decided anew. freed: a waiter may be served now.
	// fates: somebody's fate became known. changed: the controller should look.
	unsettled, freed, fates, changed bool

	totals Totals
}

type sender struct {
	Sender
	counted int64
	// declared is false once the sender has left the spec with something still counted.
	declared bool
	// rights tells one set of subjects from another.
	rights Rights
}

// failure is Failure by the table's own clock.
type failure struct {
	lease    *lease
	at       instant
	recorded bool
	// durable is a failure read from status at a take-over, when there is no lease.
	durable Failure
}

// authority is until when this term may grant (R11).
type authority struct {
	// until is the end of leadership as last renewed; 0: it does not end.
	until instant
}

func newState(pool PoolUID, newRID func() RID) *state {
	s := &state{
		pool: pool, newRID: newRID, config: DefaultConfig(), leasing: LeasingOpen,
		backends: map[Incarnation]*backend{}, senders: map[SenderName]*sender{},
		sessions: map[SessionID]*session{}, groups: map[GroupID]*group{}, leases: map[RequestID]*lease{},
		strays:    map[RID]*lease{},
		uncertain: map[*lease]struct{}{},
		totals:    Totals{Released: map[Outcome]int64{}, Refused: map[Reason]int64{}, Waits: map[WaitEnd]Waits{}},
	}
	s.idle.link, s.ended.link = sessionLinks, leaseLinks
	s.queue.init()
	s.idleClock.set(true, 0)
	return s
}

// mayGrant reports whether grants are allowed at all: a term is written and, with an
// election, leadership has not run out (R11).
func (s *state) mayGrant(now instant) bool {
	return s.term > 0 && (s.authority.until == 0 || now < s.authority.until)
}

// advance brings everything that happens by itself up to now. Each operation calls it first,
// so that no answer depends on how often a timer fires.
func (s *state) advance(now instant) {
	for len(s.deadlines) > 0 && s.deadlines[0].expires <= now {
		l := s.deadlines[0]
		s.totals.Lost++
		s.hold(l, phaseLost, now)
		s.changed, s.freed = true, true // its session may be between two turns now, and free to move
	}
	s.endCertainty(now)
	s.forgetEnded(now)
	s.forgetIdle(now)
	s.reviewSettling(now)
}

// forgetEnded drops the records whose retention time is over.
func (s *state) forgetEnded(now instant) {
	for l := range s.ended.all {
		if l.endedAt.add(s.config.Retention) > now {
			return
		}
		s.ended.remove(l)
		s.forgetRecord(l)
		s.freed = true
	}
}

func (s *state) forgetRecord(l *lease) {
	switch l.filed {
	case filedByID:
		delete(s.leases, l.id)
	case filedAsStray:
		delete(s.strays, l.rid)
	}
}

// endCertainty decides about executions that could not be made certain in time (5.3). The
// clock of each stands still while its engine is paused or updating.
func (s *state) endCertainty(now instant) {
	for l := range s.uncertain {
		if l.at.running.read(now) >= l.uncertainSince.add(s.config.Certainty) {
			s.giveUp(l, now)
		}
	}
}

// giveUp fails the pool or isolates the incarnation.
func (s *state) giveUp(l *lease, now instant) {
	delete(s.uncertain, l)
	s.changed, s.unsettled = true, true
	s.fates = true // what contains it may be in status already, by an earlier one
	if s.config.OnAmbiguous == IsolateBackend {
		l.fate = FateIsolated
		if l.at.isolation == notIsolated {
			l.at.isolation = isolatedUnrecorded
		}
		s.refresh(l.at)
		s.freed = true
		return
	}
	l.fate = FateFailed
	if s.failure == nil {
		s.failure = &failure{lease: l, at: now}
		s.refuseForGood(now)
	}
}

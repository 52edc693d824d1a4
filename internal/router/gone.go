package router

// gone takes note that an incarnation's engine process is known to have ended (5.3 b, d): all
// that ran there is dead. The watch handler and a person's word both end here. One that the table has
// not met is remembered: a token may make it known yet, or a fleet that was read before its end.
func (s *state) gone(inc Incarnation, now instant) {
	s.advance(now)
	b := s.backends[inc]
	if b == nil {
		s.graves.add(inc, processEnded)
		return
	}
	for l := range b.active.all {
		s.die(l, now)
	}
	b.process = processEnded
	s.quiesce(b, now)
	s.refresh(b)
	s.forgetIfRetired(b)
	s.reviewSettling(now)
}

// quiesce is what follows from knowing that nothing of the past runs on b: what no client
// answers for is dead, unknown load is none, and an isolation is over.
func (s *state) quiesce(b *backend, now instant) {
	for l := range b.held.all {
		s.die(l, now)
	}
	b.past, b.settling.unknown = pastClosed, false
	b.settling.windowsEnd = 0
	b.estimate = 0
	b.isolation = notIsolated
	b.disturb()
	s.unsettled, s.changed, s.fates, s.freed = true, true, true, true
}

// die ends an execution that is known to be gone without its client having said so.
func (s *state) die(l *lease, now instant) {
	delete(s.uncertain, l)
	l.fate = FateDead
	s.totals.Dead++
	s.drop(l, now)
	s.fates, s.changed = true, true
}

// pauseAborted takes note that an abort-mode pause, begun at the given time, was answered 200:
// the engine had nothing in flight then. It proves as much as quiescence if every start window
// of what is held or unknown had closed before it began (5.3 c): what was written to the paused
// engine later waits there. Without a term nobody knows how long those of earlier terms last.
func (s *state) pauseAborted(inc Incarnation, begun, now instant) {
	s.advance(now)
	b := s.backends[inc]
	if b == nil || s.term == 0 || !b.unproven() || begun <= b.settling.windowsEnd {
		return
	}
	s.quiesce(b, now)
	s.refresh(b)
	s.forgetIfRetired(b)
	s.reviewSettling(now)
}

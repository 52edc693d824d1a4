package router

// adopt counts the execution that a token of an earlier term speaks of (R11), unless it is known to be
// gone. Nothing is merged: where the router knows another lease of that id, the token's is an orphan
// at the incarnation where it ran.
func (s *state) adopt(c *Claim, now instant) (*lease, error) {
	switch {
	case c.Epoch < s.epoch:
		return nil, s.staleEpoch(c.Epoch)
	case c.Epoch > s.epoch:
		return nil, refuse(ReasonNoLeader, "", "this router has not read the pool's epoch yet")
	case c.Term == s.term:
		return nil, refuse(ReasonLeaseUnknown, "", "no such lease: it ended more than the retention time ago")
	}
	l := &lease{id: c.Request, who: c.identity(), rid: c.RID, version: c.Version, term: c.Term, place: -1}
	known := s.leases[c.Request]
	if known != nil {
		l.filed = filedAsStray
		s.totals.Orphaned++
	}
	if b := s.over(c, now); b != nil {
		s.bury(l, b, now)
		return l, nil
	}
	b := s.backendOf(c, now)
	l.span = b.spanSince(c.Version)
	if known != nil {
		s.strays[l.rid] = l
		s.count(l, b)
		l.windowEnd = now.add(s.config.StartWindow)
		s.hold(l, phaseOrphaned, now)
		return l, nil
	}
	l.session = s.adoptSession(c, b, now)
	s.spans(l.session, l)
	b.estimate = max(0, b.estimate-c.Executions) // it is known now, no longer guessed
	s.enter(l, b, now)
	return l, nil
}

// backendOf finds where the token's execution runs. An incarnation that has left the fleet is
// remembered as retired, since what runs there is counted until known to be gone.
func (s *state) backendOf(c *Claim, now instant) *backend {
	if b := s.backends[c.Incarnation]; b != nil {
		return b
	}
	b := newBackend(Member{Name: c.Backend, Incarnation: c.Incarnation, Load: LoadUnknown}, now)
	b.retired, b.settling.unknown, b.settling.windowsEnd = true, true, s.earlierWindows
	s.backends[c.Incarnation], s.unsettled = b, true
	return b
}

// adoptSession makes the token's backend the home of a session unknown here.
func (s *state) adoptSession(c *Claim, b *backend, now instant) *session {
	if v := s.sessions[c.Session]; v != nil {
		if v.sender != c.Sender {
			return nil
		}
		return v
	}
	v := s.openSession(c.Session, c.Sender)
	if v != nil && !b.retired {
		s.moveHome(v, b, s.explain(whyAdopted, b, -1), now)
	}
	return v
}

// lead begins a term. With earlier terms behind it (windows > 0), everything met in the first
// fleet may carry load of theirs, written within that long from now.
func (s *state) lead(t Term, windows instant, past *Failure, now instant) {
	s.term, s.earlierWindows = t, now+windows
	for _, b := range s.backends {
		b.settling.windowsEnd = max(b.settling.windowsEnd, s.earlierWindows)
	}
	if past != nil && s.failure == nil {
		s.failure = &failure{at: now, recorded: true, durable: *past}
	}
	s.freed = true
}

// failureInStatus reports that no failure of the pool is still unwritten.
func (s *state) failureInStatus() bool { return s.failure == nil || s.failure.recorded }

func (s *state) failureRecorded(id RequestID) {
	if f := s.failure; f != nil && f.lease != nil && f.lease.id == id {
		f.recorded, s.fates = true, true
	}
}

func (s *state) isolationRecorded(inc Incarnation) {
	if b := s.backends[inc]; b != nil && b.isolation == isolatedUnrecorded {
		b.isolation, s.fates = isolatedRecorded, true
	}
}

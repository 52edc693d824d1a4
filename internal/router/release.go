package router

// find returns the lease that a token speaks of: the one under its request id, or a stray.
func (s *state) find(c *Claim) *lease {
	for _, l := range [...]*lease{s.leases[c.Request], s.strays[c.RID]} {
		if l != nil && l.matches(c) {
			return l
		}
	}
	return nil
}

// locate is find, and after a take-over adoption.
func (s *state) locate(c *Claim, now instant) (*lease, error) {
	if c.Pool != s.pool {
		return nil, refuse(ReasonPoolNotFound, "token", "the token is of another pool of this name")
	}
	if s.term == 0 || c.Term > s.term {
		return nil, refuse(ReasonNoLeader, "", "the token is of a later term than this router's")
	}
	if l := s.find(c); l != nil {
		return l, nil
	}
	return s.adopt(c, now)
}

// renew extends an active lease (R3, R5): it revives nothing.
func (s *state) renew(c *Claim, begun Start, now instant) (Renewal, error) {
	s.advance(now)
	l, err := s.locate(c, now)
	if err != nil {
		return Renewal{}, err
	}
	if !s.mayGrant(now) && (l.phase != phaseActive || begun == NotStarted && l.begun == NotStarted) {
		return Renewal{}, lapsed()
	}
	if l.phase != phaseActive {
		return Renewal{}, l.refusal(s.epoch)
	}
	if begun == Started && l.begun == NotStarted {
		l.begun = Started
		l.closeWindow(now)
	}
	s.extend(l, now)
	return Renewal{TTL: s.config.TTL, StartWindow: s.config.StartWindow, Mixed: l.span == spanMixed, Pool: s.poolState(c.Sender)}, nil
}

func (s *state) poolState(name SenderName) PoolState {
	p := PoolState{Epoch: s.epoch, Term: s.term, Published: s.published, Leasing: s.leasing, Access: AccessFenced, Failed: s.failure != nil}
	if v := s.senders[name]; v != nil {
		p.Access = v.Access
	}
	return p
}

// release ends a lease with the outcome that its client reports. The first outcome stands:
// saying it again is answered alike, another one is a conflict (R3).
func (s *state) release(c *Claim, o Outcome, reply Reply, now instant) (Ending, error) {
	s.advance(now)
	l, err := s.locate(c, now)
	if err != nil {
		return Ending{}, err
	}
	switch repeated := l.outcome != OutcomeNone; {
	case repeated && l.outcome != o:
		return Ending{}, refuse(ReasonRequestConflict, "outcome", "the lease was released before as "+string(l.outcome))
	case !s.mayGrant(now) && (!o.terminal() || !repeated && l.phase != phaseActive):
		return Ending{}, lapsed()
	case repeated:
		return l.ending(s.failureInStatus()), nil
	}
	s.conclude(l, o, reply, now)
	s.reviewSettling(now)
	return l.ending(s.failureInStatus()), nil
}

// conclude applies the first outcome of a lease.
func (s *state) conclude(l *lease, o Outcome, reply Reply, now instant) {
	l.outcome = o
	l.closeWindow(now)
	s.totals.Released[o]++
	s.learn(l, reply)
	to, ok := l.phase.next(eventOf(o))
	switch {
	case !ok: // ended before as gone: the fate is known already
	case to == phaseEnded:
		l.fate = FateNone
		s.drop(l, now)
	default:
		s.beginUncertainty(l, to, now)
	}
	s.fates = true
}

// learn keeps what a reply says about the session and the weights.
func (s *state) learn(l *lease, r Reply) {
	s.totals.OutputTokens += r.OutputTokens
	l.at.serve(r.OutputTokens)
	if r.Version != "" && l.version != "" && r.Version != l.version && l.span == spanOne {
		s.totals.VersionMismatches++
	}
	if l.session != nil {
		l.session.learn(r)
	}
}

// beginUncertainty holds a lease whose client cannot say how it ended; for Ambiguous the
// certainty clock starts.
func (s *state) beginUncertainty(l *lease, to phase, now instant) {
	s.hold(l, to, now)
	if to != phaseUncertain {
		return
	}
	l.uncertainSince = l.at.running.read(now)
	s.uncertain[l] = struct{}{}
	if s.config.Certainty == 0 {
		s.giveUp(l, now)
	}
}

// forgo is the release of a client that holds no token: it gave up waiting, so nothing was
// written. The id is spent. It proves nothing (5.3 a), and ends nothing that may run: another process may
// hold the token.
func (s *state) forgo(r *Request, now instant) (Ending, error) {
	s.advance(now)
	l := s.leases[r.ID]
	if l == nil {
		return s.spend(r, now)
	}
	if l.who != r.identity() {
		return Ending{}, refuse(ReasonRequestConflict, "requestID", "this requestID was used with another identity")
	}
	if l.outcome != OutcomeNone {
		if l.outcome != NotSent {
			return Ending{}, refuse(ReasonRequestConflict, "outcome", "the lease was released before as "+string(l.outcome))
		}
		return l.ending(true), nil
	}
	if l.begun == Started || l.phase.held() {
		return Ending{}, refuse(ReasonRequestConflict, "token", "the request was written, or its lease was not renewed in time: only its token ends it")
	}
	s.conclude(l, NotSent, Reply{}, now)
	return l.ending(true), nil
}

// spend records an id that never got a lease.
func (s *state) spend(r *Request, now instant) (Ending, error) {
	if len(s.leases) >= s.config.MaxRequests {
		return Ending{}, refuse(ReasonContended, "", "the router keeps as many request records as spec.leases.maxRequests allows")
	}
	l := &lease{id: r.ID, who: r.identity(), phase: phaseEnded, outcome: NotSent, endedAt: now, place: -1}
	s.file(l)
	s.ended.add(l)
	return l.ending(true), nil
}

package router

// This file is the ledger: the only place that changes what is counted. Every change goes
// through count, hold, drop or resident, each of which moves a lease exactly once (R5).

// count enters an active lease at b.
func (s *state) count(l *lease, b *backend) {
	l.at, l.phase = b, phaseActive
	b.active.add(l)
	s.outstanding(b, l.who.executions)
	s.senderCounted(l.who.sender, l.who.executions)
	s.busy(l.session)
	b.disturb()
}

// hold turns an active lease into one that no client answers for; it stays counted.
func (s *state) hold(l *lease, p phase, now instant) {
	if l.phase == phaseActive {
		s.deadlines.drop(l)
		s.rested(l.session, now)
		l.at.heldExecutions += l.who.executions
		l.at.held.add(l)
		l.at.disturb()
	}
	l.phase, l.abort = p, abortDue
	if l.fate == FateNone {
		l.fate = FatePending
	}
	l.at.settling.windowsEnd = max(l.at.settling.windowsEnd, l.windowEnd)
	s.unsettled = true
}

// drop takes a lease out of the ledger: it is known to be gone.
func (s *state) drop(l *lease, now instant) {
	if l.phase == phaseActive {
		s.deadlines.drop(l)
		s.rested(l.session, now)
	} else {
		l.at.heldExecutions -= l.who.executions
		s.unsettled = true
	}
	s.outstanding(l.at, -l.who.executions)
	s.senderCounted(l.who.sender, -l.who.executions)
	l.phase, l.endedAt, l.session = phaseEnded, now, nil
	s.ended.add(l)
	s.forgetIfRetired(l.at)
	s.freed = true
}

// takeBack undoes a grant that its caller has not seen. While others were given the same lease it stays
// theirs; after the last it is as if never asked for: no record stays, nor a session begun by it.
func (s *state) takeBack(g *Grant, now instant) {
	l := s.leases[g.Claim.Request]
	switch {
	case l == nil || l.rid != g.Claim.RID || l.phase != phaseActive:
		return
	case l.others > 0:
		l.others--
		return
	}
	v := l.session
	s.drop(l, now)
	s.ended.remove(l)
	delete(s.leases, l.id)
	s.totals.Grants--
	if v == nil {
		return
	}
	if v.grants--; v.grants == 0 {
		s.endSession(v)
	}
}

// outstanding changes a backend's count and its mirror.
func (s *state) outstanding(b *backend, by int64) {
	b.outstanding += by
	if b.outstanding == 0 && (b.retired || b.Drain != NotDraining || b.Engine != EngineRunning || s.leasing == LeasingHeld) {
		s.changed = true // a drain, a hold, a rollout, or the wait for a retired incarnation may have ended
	}
	if b.slot >= 0 {
		s.loads[b.slot].outstanding = b.outstanding + b.estimate
		s.ranking.put(b)
	}
}

// resident changes the number of sessions at home on a backend by one of a sender's, and its mirror.
func (s *state) resident(b *backend, sender SenderName, by int64) {
	b.sessions += by
	if s.pins(sender) {
		b.pinned += by
		if b.pinned == 0 {
			s.unsettled, s.changed = true, true // a change of weights may wait for it
		}
	}
	if b.Drain == DrainKeep && (b.sessions == 0 || b.sessions == by) {
		// Whether the drain waits, and whether it has ended, depends on whether anybody is at home.
		s.unsettled, s.changed = true, true
	}
	if b.slot >= 0 {
		s.loads[b.slot].sessions = b.sessions
		s.ranking.put(b)
	}
}

// chosen notes that b was the latest choice, the last tie-break of R1. A turn at home is none.
func (s *state) chosen(b *backend) {
	s.choices++
	b.lastChosen = s.choices
	if b.slot >= 0 {
		s.loads[b.slot].lastChosen = b.lastChosen
		s.ranking.put(b)
	}
}

func (s *state) senderCounted(name SenderName, by int64) {
	v := s.senders[name]
	if v == nil {
		return
	}
	v.counted += by
	if v.counted == 0 && v.Access == AccessFenced {
		s.changed = true // the fence is closed
	}
}

// forgetIfRetired drops the record of an incarnation that left the fleet once nothing there is
// counted or unknown. Sessions may still point at it: they re-home at their next turn.
func (s *state) forgetIfRetired(b *backend) {
	if b.retired && b.outstanding == 0 && !b.settling.unknown && s.backends[b.Incarnation] == b {
		delete(s.backends, b.Incarnation)
		if b.past == pastClosed {
			s.graves.add(b.Incarnation, b.process)
		}
	}
}

// refresh brings the placement slice in line with whether b takes new sessions.
func (s *state) refresh(b *backend) {
	open := b.closedFor(s.published, s.target) == "" && b.Drain == NotDraining
	switch {
	case open && b.slot < 0:
		b.slot = len(s.loads)
		s.loads = append(s.loads, load{})
		s.freed = true
	case !open && b.slot >= 0:
		end := len(s.loads) - 1
		s.loads[b.slot] = s.loads[end]
		s.loads[b.slot].at.slot = b.slot
		s.loads[end] = load{}
		s.loads, b.slot = s.loads[:end], -1
		s.ranking.drop(b)
	}
	if b.slot >= 0 {
		switch before := s.loads[b.slot].capacity; before {
		case b.capacity:
		case 0:
			s.catchUp(b, b.served)
		default:
			s.catchUp(b, 0) // what it served was for another capacity
		}
		s.loads[b.slot] = b.entry()
		s.ranking.put(b)
	}
}

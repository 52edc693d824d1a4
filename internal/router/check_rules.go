package router

import "fmt"

// checkSenders, I5: what a sender counts is what its leases say.
func (s *state) checkSenders() error {
	counted := map[SenderName]int64{}
	for _, b := range s.backends {
		for l := range b.active.all {
			counted[l.who.sender] += l.who.executions
		}
		for l := range b.held.all {
			counted[l.who.sender] += l.who.executions
		}
	}
	for name, v := range s.senders {
		if v.counted != counted[name] {
			return fmt.Errorf("sender %s counts %d, leases say %d", name, v.counted, counted[name])
		}
	}
	return nil
}

// checkCaps, I6: memory is bounded. Adoption may pass the caps: those are promises kept for
// another term, bounded by its own cap.
func (s *state) checkCaps() error {
	if s.term <= 1 && len(s.leases) > s.config.MaxRequests {
		return fmt.Errorf("%d records, the cap is %d", len(s.leases), s.config.MaxRequests)
	}
	if len(s.sessions) > s.config.MaxSessions {
		return fmt.Errorf("%d sessions, the cap is %d", len(s.sessions), s.config.MaxSessions)
	}
	if n := len(s.graves.process); n > maxGraves || n != len(s.graves.order) {
		return fmt.Errorf("%d ends are remembered, in an order of %d", n, len(s.graves.order))
	}
	for inc, b := range s.backends {
		if b.retired && b.outstanding == 0 && !b.settling.unknown {
			return fmt.Errorf("retired %s is kept for nothing", inc)
		}
	}
	return nil
}

// checkEpochs, I7: nothing of an earlier epoch is active, and without a term nothing is.
func (s *state) checkEpochs() error {
	for _, l := range s.deadlines {
		if l.who.epoch != s.epoch || s.term == 0 || l.term > s.term {
			return fmt.Errorf("lease %s of epoch %d, term %d is active at epoch %d, term %d", l.id, l.who.epoch, l.term, s.epoch, s.term)
		}
	}
	return nil
}

// checkSettling, I8: of the members that could take leases at most a quarter, and at least one,
// settle at once; what settles has a reason.
func (s *state) checkSettling() error {
	n := 0
	for inc, b := range s.backends {
		if b.settling.why == settledCause {
			continue
		}
		if !b.unproven() && !s.unsettled {
			return fmt.Errorf("backend %s settles for nothing", inc)
		}
		if s.forgoesLeases(b) {
			n++
		}
	}
	if limit := max(1, s.members/settlingShare); n > limit && !s.unsettled {
		return fmt.Errorf("%d settle, the limit is %d", n, limit)
	}
	return nil
}

// checkUncertain, I9: the certainty clock runs for exactly those Uncertain and not yet given
// up on; a failed pool has an execution to name.
func (s *state) checkUncertain() error {
	for _, b := range s.backends {
		for l := range b.held.all {
			_, clocked := s.uncertain[l]
			if want := l.phase == phaseUncertain && l.fate == FatePending; clocked != want {
				return fmt.Errorf("lease %s in phase %v, fate %q: clocked %v", l.id, l.phase, l.fate, clocked)
			}
		}
	}
	for l := range s.uncertain {
		if l.phase != phaseUncertain {
			return fmt.Errorf("lease %s in phase %v has a certainty clock", l.id, l.phase)
		}
	}
	return nil
}

// checkQueue, I10: the queue counts right, each lane is by ticket, and no client waits that
// could be served.
func (s *state) checkQueue() error {
	n := 0
	for k, l := range s.queue.lanes {
		n += l.n
		var last int64
		for w := range l.all {
			if w.lane != k || w.ticket <= last {
				return fmt.Errorf("waiter %s is out of order", w.req.ID)
			}
			last = w.ticket
		}
		if l.n == 0 {
			return fmt.Errorf("an empty lane is kept")
		}
	}
	byID := 0
	for _, waiting := range s.queue.ids {
		byID += waiting
	}
	if n != s.queue.n || n != byID {
		return fmt.Errorf("%d wait, the queue says %d, by id %d", n, s.queue.n, byID)
	}
	return nil
}

// checkFates, I11: a record without a client's word is accounted for by a fate, and only the
// dead are uncounted without a terminal outcome.
func (s *state) checkFates() error {
	for id, l := range s.leases {
		if l.phase.held() && l.fate == FateNone {
			return fmt.Errorf("lease %s is held without a fate", id)
		}
		if l.phase == phaseEnded && !l.outcome.terminal() && l.fate != FateDead {
			return fmt.Errorf("lease %s ended as %q with fate %q", id, l.outcome, l.fate)
		}
	}
	return nil
}

package router

import "fmt"

// check returns the first invariant of doc.go that does not hold. It is called by tests after
// every step; it changes nothing.
func (s *state) check() error {
	for _, inv := range []struct {
		name string
		test func() error
	}{
		{"I1", s.checkCounts}, {"I2", s.checkMirror}, {"I3", s.checkPlaces}, {"I4", s.checkSessions},
		{"I5", s.checkSenders}, {"I6", s.checkCaps}, {"I7", s.checkEpochs}, {"I8", s.checkSettling},
		{"I9", s.checkUncertain}, {"I10", s.checkQueue}, {"I11", s.checkFates},
	} {
		if err := inv.test(); err != nil {
			return fmt.Errorf("%s: %w", inv.name, err)
		}
	}
	return nil
}

// checkCounts, I1: what a backend counts is what its leases say, and never negative.
func (s *state) checkCounts() error {
	for inc, b := range s.backends {
		active, err := sum(&b.active, b)
		if err != nil {
			return err
		}
		held, err := sum(&b.held, b)
		if err != nil {
			return err
		}
		if b.outstanding != active+held || b.heldExecutions != held || b.outstanding < 0 {
			return fmt.Errorf("backend %s counts %d with %d held, its leases say %d and %d", inc, b.outstanding, b.heldExecutions, active+held, held)
		}
	}
	return nil
}

func sum(l *list[lease], b *backend) (int64, error) {
	var n int64
	for v := range l.all {
		if v.at != b || !v.counted() || v.phase.held() != (l == &b.held) {
			return 0, fmt.Errorf("lease %s in phase %v is in the wrong list of %s", v.id, v.phase, b.Incarnation)
		}
		n += v.who.executions
	}
	return n, nil
}

// checkMirror, I2: loads holds exactly the backends that take new sessions, with their figures.
func (s *state) checkMirror() error {
	open := 0
	for inc, b := range s.backends {
		if takes := b.closedFor(s.published, s.target) == "" && b.Drain == NotDraining; takes != (b.slot >= 0) {
			return fmt.Errorf("backend %s takes new sessions: %v, its slot is %d", inc, takes, b.slot)
		}
		if b.slot < 0 {
			continue
		}
		open++
		if want := b.entry(); s.loads[b.slot] != want {
			return fmt.Errorf("backend %s: mirror %+v, want %+v", inc, s.loads[b.slot], want)
		}
	}
	if open != len(s.loads) {
		return fmt.Errorf("%d loads for %d open backends", len(s.loads), open)
	}
	return s.checkRanking(open)
}

// checkRanking: each open backend is in the heap of its capacity, none before its parent.
func (s *state) checkRanking(open int) error {
	for _, c := range s.ranking.classes {
		for i, b := range c.heap {
			if b.rank != (rank{c, i}) || b.capacity != c.capacity || b.slot < 0 {
				return fmt.Errorf("backend %s of capacity %d is ranked at %d of %d", b.Incarnation, b.capacity, i, c.capacity)
			}
			if i > 0 && ahead(b, c.heap[(i-1)/2]) {
				return fmt.Errorf("backend %s is ranked behind %s", b.Incarnation, c.heap[(i-1)/2].Incarnation)
			}
		}
		open -= len(c.heap)
		if len(c.heap) == 0 {
			return fmt.Errorf("the heap of capacity %d is kept for nothing", c.capacity)
		}
	}
	if open != 0 {
		return fmt.Errorf("%d open backends are not ranked", open)
	}
	return nil
}

// checkPlaces, I3: every record is where its phase says: active ones in the heap and their
// backend's list, ended ones in the retention list by the order of their end.
func (s *state) checkPlaces() error {
	ended := 0
	for id, l := range s.leases {
		if err := s.checkPlace(id, l); err != nil {
			return err
		}
		if l.phase == phaseEnded {
			ended++
		}
	}
	strays, err := s.checkStrays()
	if err != nil {
		return err
	}
	ended += strays
	if ended != s.ended.n {
		return fmt.Errorf("%d ended records, %d in the list", ended, s.ended.n)
	}
	return s.checkOrder()
}

func (s *state) checkPlace(id RequestID, l *lease) error {
	switch {
	case l.id != id:
		return fmt.Errorf("lease %s is filed as %s", l.id, id)
	case (l.phase == phaseActive) != (l.place >= 0), l.place >= 0 && s.deadlines[l.place] != l:
		return fmt.Errorf("lease %s in phase %v has place %d in the heap", id, l.phase, l.place)
	case (l.phase == phaseEnded) != (l.in == &s.ended):
		return fmt.Errorf("lease %s in phase %v: wrong list", id, l.phase)
	case l.counted() && s.backends[l.at.Incarnation] != l.at:
		return fmt.Errorf("lease %s is counted on %s, which is forgotten", id, l.at.Incarnation)
	}
	return nil
}

// checkStrays counts the strays that have ended.
func (s *state) checkStrays() (ended int, err error) {
	for rid, l := range s.strays {
		if l.rid != rid || l.phase == phaseActive || (l.phase == phaseEnded) != (l.in == &s.ended) {
			return 0, fmt.Errorf("stray %s of %s in phase %v: wrong place", rid, l.id, l.phase)
		}
		if l.phase == phaseEnded {
			ended++
		}
	}
	return ended, nil
}

func (s *state) checkOrder() error {
	var last instant
	for l := range s.ended.all {
		if l.endedAt < last {
			return fmt.Errorf("lease %s ended before the one ahead of it", l.id)
		}
		last = l.endedAt
	}
	for i, l := range s.deadlines {
		if i > 0 && s.deadlines[(i-1)/2].expires > l.expires {
			return fmt.Errorf("the heap is out of order at %d", i)
		}
	}
	return nil
}

// checkSessions, I4: residents and active leases are counted right, and exactly the sessions
// without an active lease are idle.
func (s *state) checkSessions() error {
	homes, pinned, active, idle := map[*backend]int64{}, map[*backend]int64{}, map[*session]int64{}, 0
	for _, l := range s.deadlines {
		active[l.session]++
	}
	for id, v := range s.sessions {
		homes[v.home]++
		if s.pins(v.sender) {
			pinned[v.home]++
		}
		if v.id != id || v.standing != sessionKnown || v.active != active[v] || (v.active == 0) != (v.in == &s.idle) {
			return fmt.Errorf("session %s says %d active, leases say %d, idle %v", id, v.active, active[v], v.in == &s.idle)
		}
		if v.active == 0 {
			idle++
		}
	}
	if idle != s.idle.n {
		return fmt.Errorf("%d idle sessions, %d in the list", idle, s.idle.n)
	}
	return s.checkResidents(homes, pinned)
}

func (s *state) checkResidents(homes, pinned map[*backend]int64) error {
	for inc, b := range s.backends {
		if b.pinned != pinned[b] {
			return fmt.Errorf("backend %s says %d pinned residents, sessions say %d", inc, b.pinned, pinned[b])
		}
		if b.sessions != homes[b] {
			return fmt.Errorf("backend %s says %d residents, sessions say %d", inc, b.sessions, homes[b])
		}
	}
	return nil
}

package router

// pins reports whether a sender's sessions stay on their version while the pool changes its weights.
func (s *state) pins(name SenderName) bool {
	v := s.senders[name]
	return v != nil && v.Versions == VersionPinned
}

// countPinned counts the sessions of pinned senders anew: which senders are has changed.
func (s *state) countPinned() {
	for _, b := range s.backends {
		b.pinned = 0
	}
	for _, v := range s.sessions {
		if v.home != nil && s.pins(v.sender) {
			v.home.pinned++
		}
	}
	s.unsettled, s.changed = true, true
}

// updatedFirst is the choice during a rolling change of weights: backends on the new version go first,
// as long as they have room for the request, so that a session is moved by the change at most once; the
// few that were updated first are not to be drowned by it.
func (s *state) updatedFirst(r *Request) (best, second int) {
	n := r.Executions
	return s.scan(n, func(a, b *load) bool {
		if l, r := s.updatedRoom(a, n), s.updatedRoom(b, n); l != r {
			return l
		}
		return less(a, b, n)
	})
}

// updatedRoom reports whether a backend is on the new version and has room for n more executions.
func (s *state) updatedRoom(l *load, n int64) bool {
	return l.at.version() == s.target && l.outstanding+n <= l.capacity
}

package router

// choose finds the backend of a request: the session's home while it serves, else the last
// backend that the client names for a session unknown here, else the policy's pick. It changes
// nothing.
func (s *state) choose(r *Request, now instant) (*backend, choice, error) {
	return s.chooseFor(s.sessions[r.Session], r, now)
}

func (s *state) chooseFor(v *session, r *Request, now instant) (*backend, choice, error) {
	if s.unseenHome(v, r) != nil {
		return nil, choice{}, refuse(ReasonNoBackend, "", "the backend that the session was on has not been probed yet")
	}
	return s.chooseKnowing(v, r, now)
}

// chooseKnowing is chooseFor once it is known how the backend is that the session was on.
func (s *state) chooseKnowing(v *session, r *Request, now instant) (*backend, choice, error) {
	if v != nil && s.keepsHome(v) {
		return s.homeOrBetter(v, r, now)
	}
	if v == nil {
		if b := s.named(r); b != nil {
			return b, s.explain(whyLastBackend, b, -1), nil
		}
	}
	best, second := s.byPolicy(r)
	switch {
	case best < 0 && v != nil && s.serves(v):
		return s.homeOrBetter(v, r, now) // asked to move, with nowhere to go
	case best < 0:
		return nil, choice{}, s.noPlace()
	}
	if b := s.besideSiblings(r, best); b != nil {
		return b, s.explain(whyGroup, b, best), nil
	}
	return s.loads[best].at, s.explain(whyPlaced, s.loads[best].at, second), nil
}

// noPlace is why a session without a home gets no backend.
func (s *state) noPlace() error {
	if len(s.loads) == 0 {
		return refuse(ReasonNoBackend, "", "no backend is admissible now: see the pool's status for the reason of each")
	}
	return s.contended()
}

func (s *state) contended() error {
	return refuse(ReasonContended, "", "every backend that may serve this holds as much as spec.routing.admissionPercent allows")
}

// homeOrBetter is the home, unless Rebalance moves the session. One whose home is full waits for
// it: it is not moved.
func (s *state) homeOrBetter(v *session, r *Request, now instant) (*backend, choice, error) {
	if to, c := s.better(v, r.Executions, now); to != nil {
		return to, c, nil
	}
	if s.full(v.home, r.Executions) {
		return nil, choice{}, s.contended()
	}
	return v.home, v.choice, nil
}

// full: n more would exceed the admission limit. An idle backend takes a request of any size,
// so that none waits for ever.
func (s *state) full(b *backend, n int64) bool {
	limit := s.config.AdmissionPercent
	return limit > 0 && b.outstanding > 0 && (b.outstanding+n)*100 > b.capacity*limit
}

// keepsHome: the home serves those at home, and no newly published version asks to move (R2).
func (s *state) keepsHome(v *session) bool {
	return s.serves(v) && (s.config.AfterPublish != ResetHomes || v.published == s.publications || v.active > 0)
}

// serves reports whether a session's home, if it has one, serves it there.
func (s *state) serves(v *session) bool {
	return v.home != nil && v.home.closedFor(s.published, s.target) == "" && (v.home.Drain != DrainPinned || s.pins(v.sender))
}

// unseenHome is the backend that the session was on, if nothing but its first probe is missing, which
// is so only after a take-over: nobody knows yet whether it is admissible, and a session moved
// meanwhile would leave its cache behind for good (R2). A probe ends, and so does the waiting.
func (s *state) unseenHome(v *session, r *Request) *backend {
	var b *backend
	if v != nil {
		b = v.home
	} else if b = s.backends[r.LastIncarnation]; b != nil && (b.Name != r.LastName || b.Drain != NotDraining) {
		return nil
	}
	if b == nil || b.seen.Seq != 0 || b.closedFor(s.published, s.target) != notProbed {
		return nil
	}
	return b
}

// named is the backend that the client was last on, if that very incarnation takes sessions and
// has room: whoever waits without a home waits for any backend.
func (s *state) named(r *Request) *backend {
	b := s.backends[r.LastIncarnation]
	if b == nil || b.slot < 0 || b.Name != r.LastName || s.full(b, r.Executions) {
		return nil
	}
	return b
}

// leastOutstanding returns the indexes in loads of the best and the second best backend with
// room for n more executions, -1 where there is none (R1).
func (s *state) leastOutstanding(n int64) (best, second int) {
	if s.config.AdmissionPercent > 0 {
		return s.scan(n, func(a, b *load) bool { return less(a, b, n) })
	}
	best, second = -1, -1
	for b := range s.ranking.top {
		i, l := b.slot, &s.loads[b.slot]
		switch {
		case second >= 0 && !less(l, &s.loads[second], n):
		case best < 0 || less(l, &s.loads[best], n):
			best, second = i, best
		default:
			second = i
		}
	}
	return best, second
}

// less orders backends as R1 says: load per capacity after taking n more executions, then
// resident sessions per capacity, then least recently chosen. Products of two counts below
// 2^31 are exact.
func less(a, b *load, n int64) bool {
	if l, r := (a.outstanding+n)*b.capacity, (b.outstanding+n)*a.capacity; l != r {
		return l < r
	}
	if l, r := a.sessions*b.capacity, b.sessions*a.capacity; l != r {
		return l < r
	}
	return a.lastChosen < b.lastChosen
}

// explain packs the scores of a choice for SessionView.
func (s *state) explain(w why, b *backend, second int) choice {
	c := choice{why: w, candidates: int32(len(s.loads)), chosen: tally{int32(b.outstanding), int32(b.capacity), int32(b.sessions)}}
	if second >= 0 {
		l := &s.loads[second]
		c.runnerUp = l.at.Name
		c.second = tally{int32(l.outstanding), int32(l.capacity), int32(l.sessions)}
	}
	return c
}

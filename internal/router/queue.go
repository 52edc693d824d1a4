package router

// queue holds those who wait for a lease: first come first served within what they wait for.
// Each lane is for one sender and one home (nil: none yet), so that a freed place looks at
// the head of each lane instead of at every waiter.
type queue struct {
	lanes   map[lane]*list[waiter]
	tickets int64
	n       int
	// woken have their answer; Table tells them after the lock is released.
	woken []*waiter
}

type lane struct {
	sender SenderName
	home   *backend
}

// waiter is one acquire that may be answered later.
type waiter struct {
	links[waiter]
	ticket int64
	lane   lane
	req    Request
	grant  Grant
	err    error
	// done is closed by Table once grant or err is set.
	done chan struct{}
}

func waiterLinks(w *waiter) *links[waiter] { return &w.links }

func (q *queue) init() { q.lanes = map[lane]*list[waiter]{} }

// wait puts w at the end of its lane.
func (s *state) wait(w *waiter) {
	s.queue.tickets++
	w.ticket = s.queue.tickets
	s.queue.n++
	s.enqueue(w)
}

// enqueue puts w in its lane by the order of its ticket.
func (s *state) enqueue(w *waiter) {
	w.lane = lane{w.req.Sender, s.homeOf(w.req.Session)}
	l := s.queue.lanes[w.lane]
	if l == nil {
		l = &list[waiter]{link: waiterLinks}
		s.queue.lanes[w.lane] = l
	}
	l.addOrdered(w, func(a, b *waiter) bool { return a.ticket < b.ticket })
}

func (s *state) homeOf(id SessionID) *backend {
	if v := s.sessions[id]; v != nil {
		return v.home
	}
	return nil
}

// leave takes w out: it has its answer, or its client has gone.
func (s *state) leave(w *waiter) {
	l := s.queue.lanes[w.lane]
	if l == nil || w.in != l {
		return
	}
	l.remove(w)
	s.queue.n--
	if l.n == 0 {
		delete(s.queue.lanes, w.lane)
	}
}

// dispatch serves every waiter that can be served now, oldest first; one whose home is full is
// passed over, not moved. A lease may be what another waiter waits for (the same id asked for
// twice), so it looks again until a round serves nobody.
func (s *state) dispatch(now instant) {
	for s.freed && s.queue.n > 0 {
		s.freed = false
		s.round(now)
	}
	s.freed = false
}

func (s *state) round(now instant) {
	blocked := map[lane]struct{}{}
	for {
		w := s.oldest(blocked)
		switch {
		case w == nil:
			return
		case s.serve(w, now):
			s.freed = true
		default:
			s.passOver(w, blocked)
		}
	}
}

// passOver blocks the lane of a waiter that cannot be served; one whose session has found a
// home since it came changes lanes first.
func (s *state) passOver(w *waiter, blocked map[lane]struct{}) {
	if home := s.homeOf(w.req.Session); home != w.lane.home {
		s.leave(w)
		s.queue.n++
		s.enqueue(w)
		return
	}
	blocked[w.lane] = struct{}{}
}

// oldest is the first waiter of the lanes that are not blocked.
func (s *state) oldest(blocked map[lane]struct{}) *waiter {
	var first *waiter
	for k, l := range s.queue.lanes {
		if _, skip := blocked[k]; !skip && (first == nil || l.first.ticket < first.ticket) {
			first = l.first
		}
	}
	return first
}

// serve answers w with a lease or for good, or leaves it waiting.
func (s *state) serve(w *waiter, now instant) bool {
	g, err := s.attempt(&w.req, now)
	if mayWait(err) {
		return false
	}
	s.leave(w)
	w.grant, w.err = g, err
	s.queue.woken = append(s.queue.woken, w)
	return true
}

// refuseForGood answers every waiter that no waiting can help: after an epoch, a failure or a
// generation has moved on, also those behind others in their lane.
func (s *state) refuseForGood(now instant) {
	for _, l := range s.queue.lanes {
		for w := range l.all {
			if _, err := s.precheck(&w.req, now); err != nil && !mayWait(err) {
				s.leave(w)
				w.err = err
				s.queue.woken = append(s.queue.woken, w)
			}
		}
	}
}

// mayWait reports whether err is a refusal that waiting may turn into a grant.
func mayWait(err error) bool {
	r, ok := err.(*Refusal)
	return ok && r.Reason.retryable()
}

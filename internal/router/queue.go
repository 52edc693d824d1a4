package router

import "errors"

// queue holds those who wait for a lease: first come first served within what they wait for.
// Each lane is for one sender and one place, so that a freed place looks at the head of each lane
// instead of at every waiter.
type queue struct {
	lanes   map[lane]*list[waiter]
	tickets int64
	n       int
	// ids counts the waiters of each request id; recorded are those ids that have a record now,
	// so that whoever waits under them is answered.
	ids      map[RequestID]int
	recorded []RequestID
	// woken have their answer; Table tells them after the lock is released.
	woken []*waiter
}

// lane is what waiters wait for: a place at their session's home, a look at the backend that they
// were on, or, with neither, any place.
type lane struct {
	sender SenderName
	home   *backend
	unseen *backend
}

// waiter is one acquire that may be answered later.
type waiter struct {
	links[waiter]
	ticket int64
	// since is when it began to wait.
	since instant
	lane  lane
	req   Request
	grant Grant
	err   error
	// done is closed by Table once grant or err is set.
	done chan struct{}
}

func waiterLinks(w *waiter) *links[waiter] { return &w.links }

func (q *queue) init() {
	q.lanes, q.ids = map[lane]*list[waiter]{}, map[RequestID]int{}
}

// wait puts w at the end of its lane.
func (s *state) wait(w *waiter, now instant) {
	w.since = now
	s.queue.tickets++
	w.ticket = s.queue.tickets
	s.queue.n++
	s.queue.ids[w.req.ID]++
	s.enqueue(w)
}

// enqueue puts w in its lane by the order of its ticket.
func (s *state) enqueue(w *waiter) {
	w.lane = s.laneOf(&w.req)
	l := s.queue.lanes[w.lane]
	if l == nil {
		l = &list[waiter]{link: waiterLinks}
		s.queue.lanes[w.lane] = l
	}
	l.addOrdered(w, func(a, b *waiter) bool { return a.ticket < b.ticket })
}

func (s *state) laneOf(r *Request) lane {
	if v := s.sessions[r.Session]; v != nil {
		return lane{sender: r.Sender, home: v.home}
	}
	return lane{sender: r.Sender, unseen: s.unseenHome(nil, r)}
}

// leave takes w out: it has its answer, or its client has gone.
func (s *state) leave(w *waiter, end WaitEnd, now instant) {
	if !s.queue.remove(w) {
		return
	}
	s.waited(w, end, now)
	s.queue.n--
	if s.queue.ids[w.req.ID]--; s.queue.ids[w.req.ID] == 0 {
		delete(s.queue.ids, w.req.ID)
	}
}

// remove takes w out of its lane; false: it was in none.
func (q *queue) remove(w *waiter) bool {
	l := q.lanes[w.lane]
	if l == nil || w.in != l {
		return false
	}
	l.remove(w)
	if l.n == 0 {
		delete(q.lanes, w.lane)
	}
	return true
}

// file puts a record under its id, and remembers to answer who waits under it.
func (s *state) file(l *lease) {
	s.leases[l.id] = l
	if s.queue.ids[l.id] > 0 {
		s.queue.recorded = append(s.queue.recorded, l.id)
		s.freed = true
	}
}

// answerTwins serves those who wait under ids that have a record now: concurrent acquires of one
// id share one grant (R3).
func (s *state) answerTwins(now instant) {
	for len(s.queue.recorded) > 0 {
		id := s.queue.recorded[0]
		s.queue.recorded = s.queue.recorded[1:]
		if s.queue.ids[id] == 0 {
			continue // the one that it was granted to was the only one
		}
		for _, l := range s.queue.lanes {
			for w := range l.all {
				if w.req.ID == id {
					s.serve(w, now)
				}
			}
		}
	}
}

// dispatch serves every waiter that can be served now, oldest first; one whose home is full is
// passed over, not moved.
func (s *state) dispatch(now instant) {
	if !s.freed {
		return
	}
	s.freed = false
	if s.queue.n == 0 {
		return
	}
	blocked, turns := map[lane]struct{}{}, s.queue.turns()
	for {
		s.answerTwins(now)
		w := turns.oldest(&s.queue, blocked)
		switch {
		case w == nil:
			return
		case w.lane != s.laneOf(&w.req):
			s.queue.remove(w) // its session found or lost its home since it came, or the unseen was seen
			s.enqueue(w)
			turns.moved(w)
		case !s.serve(w, now):
			blocked[w.lane] = struct{}{}
		}
	}
}

// serve answers w with a lease or for good, or leaves it waiting.
func (s *state) serve(w *waiter, now instant) bool {
	g, err := s.attempt(&w.req, now)
	if s.mayWait(&w.req, err) {
		return false
	}
	end := WaitGranted
	if err != nil {
		end = WaitRefused
	}
	s.leave(w, end, now)
	w.grant, w.err = g, err
	s.queue.woken = append(s.queue.woken, w)
	return true
}

// refuseForGood answers every waiter that no waiting can help: after an epoch, a failure or a
// generation has moved on, also those behind others in their lane.
func (s *state) refuseForGood(now instant) {
	for _, l := range s.queue.lanes {
		for w := range l.all {
			if _, err := s.precheck(&w.req, now); err != nil && !s.mayWait(&w.req, err) {
				s.leave(w, WaitRefused, now)
				w.err = err
				s.queue.woken = append(s.queue.woken, w)
			}
		}
	}
}

// mayWait reports whether err, which r was refused with, is something that waiting may turn into a
// grant. An id that has a record gets no other lease however long it waits.
func (s *state) mayWait(r *Request, err error) bool {
	var why *Refusal
	return errors.As(err, &why) && why.Reason.retryable() && s.leases[r.ID] == nil
}

package enginesim

import (
	"time"
)

// drive advances the models whenever something is due, until the engine ends.
func (s *Server) drive() {
	for {
		var timer <-chan time.Time
		stop := func() bool { return false }
		if d, ok := s.untilNext(); ok {
			t := s.cfg.Clock.NewTimer(d)
			timer, stop = t.C(), t.Stop
		}
		select {
		case <-timer:
		case <-s.kick:
		case <-s.gone:
			stop()
			return
		}
		stop()
	}
}

// untilNext brings the engine up to date, tells the streams what is new, and returns how long, in real time,
// until there is more to do.
func (s *Server) untilNext() (time.Duration, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.advanceLocked()
	now := s.st.at
	next, ok := s.nextEventLocked()
	if !ok {
		return 0, false
	}
	wait := s.time.real(next - now)
	if s.wakeStreamsLocked() {
		wait = min(wait, s.cfg.StreamInterval)
	}
	return max(wait, 1), true
}

func (s *Server) nextEventLocked() (next time.Duration, ok bool) {
	for _, r := range s.st.ranks {
		if at, has := r.model.NextEvent(); has && (!ok || at < next) {
			next, ok = at, true
		}
	}
	return next, ok
}

// wakeStreamsLocked wakes every handler that streams, and reports whether there is one.
func (s *Server) wakeStreamsLocked() bool {
	found := false
	for _, q := range s.st.sequences {
		if q.stream {
			found = true
			q.notify()
		}
	}
	return found
}

// advanceLocked moves the models to this moment and logs what ended.
func (s *Server) advanceLocked() {
	if s.exit.happened == ended {
		return
	}
	done := s.st.advance(s.time.now())
	for _, q := range done {
		s.finishLocked(q)
	}
	if len(done) > 0 {
		s.changedLocked()
	}
}

package router

import "time"

// instant is a time as nanoseconds since the table was made, by the monotonic clock of this
// process; clocks of two machines are never compared.
type instant int64

func (i instant) add(d time.Duration) instant { return i + instant(d) }

// stopwatch measures time that may stand still (R10).
type stopwatch struct {
	ran     instant
	since   instant
	running bool
}

// set starts or stops the watch.
func (s *stopwatch) set(running bool, now instant) {
	if running == s.running {
		return
	}
	if s.running {
		s.ran += now - s.since
	}
	s.running, s.since = running, now
}

// read is how long the watch has run.
func (s *stopwatch) read(now instant) instant {
	if s.running {
		return s.ran + now - s.since
	}
	return s.ran
}

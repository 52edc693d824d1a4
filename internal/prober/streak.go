package prober

import "time"

// mode is who decides whether the engine generates.
type mode int

const (
	running mode = iota
	pausedByUs
)

// clock is whether failing is being timed.
type clock int

const (
	// clockStopped: the engine is not failing, or shows that it lives.
	clockStopped clock = iota
	// clockRunning: it is failing.
	clockRunning
	// clockHeld: it was failing when we paused it; the clock runs on from the resume.
	clockHeld
)

// kind is what can happen to a target.
type kind int

const (
	// probeAnswered: the engine proved that it generates.
	probeAnswered kind = iota
	// probeFailed: it did not, and the connection was not refused.
	probeFailed
	// probeRefused: nobody listens.
	probeRefused
	// probeParked: it does not generate, and its scheduler answers.
	probeParked
	// budgetDue: time has passed since the last failure.
	budgetDue
	// wePause and weResume: this operator pauses the engine, or has let it go on.
	wePause
	weResume
	// weWereRefused: somebody of this operator, other than a probe, could not connect.
	weWereRefused
)

// stamped reports whether the event started from a state that may have passed since: all do but those
// that are news in themselves.
func (k kind) stamped() bool { return k != wePause && k != weResume && k != weWereRefused }

// event is one thing that happened. The stamped ones carry the stamp of the state from which they
// started.
type event struct {
	kind    kind
	stamp   uint64
	message string
	// What an answered probe read: capacity is 0, version empty and total noTotal if it could not.
	capacity int64
	version  string
	total    int64
}

// rule is when failing is enough.
type rule struct {
	threshold int           // consecutive failed probes; below 1 counts as 1
	budget    time.Duration // of continuous failing; 0: no such limit
}

// state is all that is remembered of a target. It is a value: next returns a new one.
type state struct {
	stamp    uint64
	mode     mode
	verdict  Verdict
	reason   Reason
	message  string
	failures int // consecutive failed or refused probes
	// wanting is when it was last found to be anything but healthy.
	wanting time.Time

	// spent is the time of failing that has been counted; since is where the part that has not
	// begins, meaningful while the clock runs.
	clock clock
	spent time.Duration
	since time.Time

	capacity  int64
	total     int64
	version   string
	confirmed bool
}

// noTotal is the total of an engine whose load was not read.
const noTotal = -1

func newState() state {
	return state{reason: ReasonNotProbed, message: "the engine has not been probed yet", total: noTotal}
}

// next is the whole rule of health: what becomes of a target when e happens at now. An event
// that started under another stamp, and a probe that lands in a pause, change nothing; the caller
// recognises that by an equal state.
func next(s state, e event, r rule, now time.Time) state {
	if !e.kind.stamped() {
		return s.told(e.kind, now)
	}
	if e.stamp != s.stamp || s.mode == pausedByUs {
		return s
	}
	switch e.kind {
	case probeAnswered:
		return s.answered(e)
	case probeParked:
		return s.parked(e, now)
	case budgetDue:
		return s.judged(r, now)
	case probeFailed, probeRefused, wePause, weResume, weWereRefused:
	}
	return s.failed(e, now).judged(r, now)
}

// told is what becomes of a target by what this operator does or meets itself.
func (s state) told(k kind, now time.Time) state {
	switch k {
	case wePause:
		return s.pause(now)
	case weResume:
		return s.resume(now)
	case weWereRefused:
		return s.refused(now)
	case probeAnswered, probeFailed, probeRefused, probeParked, budgetDue:
	}
	return s
}

// pause stops the budget and makes every probe in flight stale. The weights may change from here
// on, so that the version must be read again afterwards.
func (s state) pause(now time.Time) state {
	if s.mode == pausedByUs {
		return s
	}
	s.stamp++
	s.mode = pausedByUs
	s.confirmed, s.total = false, noTotal
	if s.clock == clockStopped {
		return s
	}
	s = s.stopClock(now)
	s.clock = clockHeld
	return s
}

// resume lets the budget run on from where it stood, if the engine was failing.
func (s state) resume(now time.Time) state {
	if s.mode == running {
		return s
	}
	s.stamp++
	s.mode = running
	if s.clock == clockHeld {
		s.clock, s.since = clockRunning, now
	}
	return s
}

// refused makes the probe in flight stale, which may have read the version before the engine ended. It is
// no failed probe, and spends nothing: the next probe, sent at once, tells how the engine is. In a pause
// of ours nothing is in flight, and nothing confirmed.
func (s state) refused(now time.Time) state {
	if s.mode == pausedByUs {
		return s
	}
	s.stamp++
	s.confirmed, s.total, s.wanting = false, noTotal, now
	if s.verdict == Healthy {
		s.verdict, s.reason, s.message = Refused, ReasonConnectionRefused, refusal().message
	}
	return s
}

func (s state) answered(e event) state {
	// A version that was not read now still holds if nothing happened since it was.
	holds := s.verdict == Healthy && s.confirmed
	s.verdict, s.reason, s.message = Healthy, ReasonProbeSucceeded, "the engine generates"
	s.failures, s.clock, s.spent = 0, clockStopped, 0
	s.total = e.total
	if e.capacity > 0 {
		s.capacity = e.capacity
	}
	if e.version != "" {
		s.version, s.confirmed = e.version, true
		return s
	}
	s.confirmed = holds
	s.reason, s.message = ReasonVersionUnread, e.message
	return s
}

// parked neither spends nor refunds: the engine shows that it lives, not that it works.
func (s state) parked(e event, now time.Time) state {
	s.verdict, s.reason, s.message = SuspectedPaused, ReasonSuspectedPaused, e.message
	s.total = noTotal
	s.confirmed, s.wanting = false, now
	return s.stopClock(now)
}

// failed counts one failed probe. Short of the rule it leaves the verdict, but for a refusal.
func (s state) failed(e event, now time.Time) state {
	s.failures++
	if s.clock == clockStopped {
		s.clock, s.since = clockRunning, now
	}
	s.message, s.total = e.message, noTotal
	switch {
	case s.verdict == Unhealthy:
		s.wanting = now
	case e.kind == probeRefused:
		s.wanting = now
		s.verdict, s.reason, s.confirmed = Refused, ReasonConnectionRefused, false
	default:
		s.reason = ReasonProbeFailed
	}
	return s
}

// judged turns a target Unhealthy once the rule is met. The reason stays the one that was first,
// so that a condition does not change while the problem does not.
func (s state) judged(r rule, now time.Time) state {
	if s.verdict == Unhealthy || s.failures == 0 {
		return s
	}
	switch {
	case s.failures >= max(r.threshold, 1):
		s.reason = ReasonFailureThreshold
	case r.budget > 0 && s.failingFor(now) >= r.budget:
		s.reason = ReasonBudgetSpent
	default:
		return s
	}
	s.verdict, s.confirmed, s.wanting = Unhealthy, false, now
	return s
}

// failingFor is how long the target has been failing, without the time in which its clock stood.
func (s state) failingFor(now time.Time) time.Duration {
	if s.clock != clockRunning {
		return s.spent
	}
	return s.spent + now.Sub(s.since)
}

func (s state) stopClock(now time.Time) state {
	s.spent, s.clock = s.failingFor(now), clockStopped
	return s
}

// budgetIn is how long from now the budget lasts. It is false if no budget is being spent.
func (s state) budgetIn(r rule, now time.Time) (time.Duration, bool) {
	if s.clock != clockRunning || s.verdict == Unhealthy || r.budget <= 0 {
		return 0, false
	}
	return max(r.budget-s.failingFor(now), 0), true
}

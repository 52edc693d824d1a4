package router

import (
	"cmp"
	"slices"
)

// cause is why an incarnation settles, in rising urgency; the zero value is that it does not.
type cause uint8

const (
	settledCause cause = iota
	// causeExcess: more than a tenth of its capacity is held.
	causeExcess
	// causeWaited: a fence, a hold, a drain or a rollout waits for it, or an Ambiguous that has been
	// decided.
	causeWaited
	// causeUncertain: the certainty clock of an Ambiguous runs. It is the only wait that fails a pool.
	causeUncertain
)

// excessShare is the part of a capacity that may be held before an incarnation settles.
const excessShare = 10

// settlingShare: at most one in this many members settles at once, and at least one.
const settlingShare = 4

// settling is how far an incarnation has come towards quiescence (5.3 c).
type settling struct {
	why cause
	// want is why it should settle, whether or not it has a place.
	want cause
	// since orders those that wait for a place; 0: it needs none.
	since instant
	// stamp changes whenever something new could run there; an answer asked for under an
	// older stamp proves nothing.
	stamp uint64
	// unknown: executions of earlier terms or other pools may run there (R11).
	unknown bool
	// windowsEnd is when the last start window of what is held or unknown closes.
	windowsEnd instant
	// baseline is each rank's clock in a snapshot read after the aborts; nil: not read.
	baseline map[int]float64
	// nextChore paces calls to the engine; nextAbort paces repeated aborts.
	nextChore, nextAbort instant
}

// disturb forgets what was proven so far: something new may run on the incarnation.
func (b *backend) disturb() {
	b.settling.stamp++
	b.settling.baseline = nil
}

// unproven reports whether something there is counted or feared without a client to answer.
func (b *backend) unproven() bool { return b.held.n > 0 || b.settling.unknown }

// leaseless reports whether no lease can be granted there, settling or not.
func (b *backend) leaseless() bool {
	return b.retired || b.isolation != notIsolated || b.Drain == DrainMove || b.Drain == DrainAbort
}

// forgoesLeases reports whether settling costs b leases: it would take some if it did not settle. One
// that is unhealthy, refused, paused, excluded or on the wrong version takes none anyway, and often
// cannot be proven quiet before that is mended.
func (s *state) forgoesLeases(b *backend) bool {
	unsettled := *b
	unsettled.settling.why = settledCause
	return unsettled.closedFor(s.published, s.target) == ""
}

// quiet reports whether no lease can be granted there as things stand.
func (b *backend) quiet() bool { return b.leaseless() || b.settling.why != settledCause }

// reviewSettling decides anew which incarnations settle, if anything has changed.
func (s *state) reviewSettling(now instant) {
	if !s.unsettled {
		return
	}
	s.unsettled = false
	var wanting []*backend
	for _, b := range s.backends {
		b.settling.want = s.causeOf(b)
		switch {
		case b.settling.want == settledCause:
			b.settling.since = 0
			s.setSettling(b, settledCause)
		case !s.forgoesLeases(b):
			// No place needed. One that would serve again joins those that wait at the end: no proof
			// under way is given up for it.
			b.settling.since = 0
			s.setSettling(b, b.settling.want)
		default:
			b.settling.since = cmp.Or(b.settling.since, now)
			wanting = append(wanting, b)
		}
	}
	s.sharePlaces(wanting)
}

// sharePlaces lets at most a quarter of the members give up leases to settle at once, those waited for
// first, then the longest waiting.
func (s *state) sharePlaces(wanting []*backend) {
	slices.SortFunc(wanting, func(a, b *backend) int {
		return cmp.Or(
			cmp.Compare(b.settling.want, a.settling.want),
			cmp.Compare(a.settling.since, b.settling.since),
			cmp.Compare(a.Incarnation, b.Incarnation))
	})
	places := max(1, s.members/settlingShare)
	for i, b := range wanting {
		if i < places {
			s.setSettling(b, b.settling.want)
		} else {
			s.setSettling(b, settledCause)
		}
	}
}

func (s *state) setSettling(b *backend, why cause) {
	if b.settling.why == why {
		return
	}
	b.settling.why = why
	s.changed, s.freed = true, true // also when it closes: those at home may go elsewhere
	s.refresh(b)
}

// causeOf is why b should settle.
func (s *state) causeOf(b *backend) cause {
	switch {
	case !b.unproven():
		return settledCause
	case s.timed(b):
		return causeUncertain
	case b.emptying():
		return causeWaited
	case s.leasing == LeasingHeld || s.awaited(b):
		return causeWaited
	case b.capacity > 0 && b.heldExecutions*excessShare > b.capacity:
		return causeExcess
	default:
		return settledCause
	}
}

// timed reports whether the certainty clock of something held on b runs.
func (s *state) timed(b *backend) bool {
	for l := range b.held.all {
		if _, runs := s.uncertain[l]; runs {
			return true
		}
	}
	return false
}

// emptying reports whether a drain waits for nothing but what is counted or feared there.
func (b *backend) emptying() bool {
	switch b.Drain {
	case DrainMove, DrainAbort:
		return true
	case DrainKeep:
		return b.sessions == 0
	case DrainPinned:
		return b.pinned == 0
	case NotDraining:
	}
	return false
}

// awaited reports whether a fence or an Ambiguous waits for what is held or unknown on b.
func (s *state) awaited(b *backend) bool {
	if b.settling.unknown && s.fencing() {
		return true
	}
	for l := range b.held.all {
		if l.phase == phaseUncertain || l.outcome == Ambiguous {
			return true
		}
		if v := s.senders[l.who.sender]; v != nil && v.Access == AccessFenced {
			return true
		}
	}
	return false
}

func (s *state) fencing() bool {
	for _, v := range s.senders {
		if v.declared && v.Access == AccessFenced {
			return true
		}
	}
	return false
}

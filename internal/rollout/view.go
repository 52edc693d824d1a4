package rollout

import "time"

// course is what a plan does with the pool as a whole.
type course int

const (
	// courseSettled: the pool has the version it is after; single backends are brought to it.
	courseSettled course = iota
	// courseBarrier: nobody gets leases until the version is published.
	courseBarrier
	// courseRolling: backends are taken in turn while two versions are admissible.
	courseRolling
	// courseInPlace: engines are updated under their requests, and admitted when it is published.
	courseInPlace
)

// view is what one plan is made from.
type view struct {
	ask  Ask
	all  []Backend
	now  time.Time
	goal Version
	// other is a version besides goal that the router admits; empty: none.
	other  Version
	course course
	// turn has true where Rolling lets a backend that serves be taken.
	turn []bool
	// pinned: sessions of pinned senders hold the whole pool on the published version.
	pinned bool
	// again is the earliest moment at which something happens by the clock alone.
	again time.Time
}

func newView(ask Ask, all []Backend, now time.Time) *view {
	v := &view{ask: ask, all: all, now: now, goal: ask.Target, turn: make([]bool, len(all))}
	if v.givesUp() {
		v.goal = ask.Published
	}
	v.course = v.chooseCourse()
	if v.rolls() && ask.Target != ask.Published {
		v.other = ask.Published
		if v.goal == ask.Published {
			v.other = ask.Target
		}
	}
	v.pinned = v.poolIsPinned()
	v.takeTurns()
	return v
}

// rolls reports whether the strategy keeps the pool serving. A pool that has no version yet has
// nothing to serve under, and gets its first one behind a barrier.
func (v *view) rolls() bool {
	return v.ask.Source == Disk && v.ask.Strategy == Rolling && v.ask.Published != ""
}

func (v *view) chooseCourse() course {
	switch {
	case v.goal == v.ask.Published:
		return courseSettled
	case v.rolls():
		return courseRolling
	case v.ask.Source == Disk && v.ask.Strategy == InPlace && v.ask.Published != "":
		return courseInPlace
	default:
		return courseBarrier
	}
}

// givesUp reports whether the deadline has passed without enough backends, and there is a version to
// go back to. The trainer's own push cannot be taken back.
func (v *view) givesUp() bool {
	return v.ask.Published != "" && v.ask.Source == Disk && v.late() && !v.poll().carries(v)
}

// late reports whether the deadline has passed. It is looked at again when it does.
func (v *view) late() bool {
	return v.ask.Deadline > 0 && v.ask.Target != v.ask.Published && v.passed(v.ask.Start.Add(v.ask.Deadline))
}

// passed reports whether a moment has come, and has the plan made anew when it does.
func (v *view) passed(at time.Time) bool {
	if !v.now.Before(at) {
		return true
	}
	if v.again.IsZero() || at.Before(v.again) {
		v.again = at
	}
	return false
}

// clearing is what is done to what runs on an engine before its weights change.
func (v *view) clearing() Clearing {
	switch {
	case v.ask.Strategy == Rolling, v.ask.Strategy == AllAtOnce && v.ask.Clearing == "":
		return ClearDrain
	case v.ask.Strategy == InPlace:
		return ClearFreeze
	default:
		return v.ask.Clearing
	}
}

// on reports whether a backend has a version for certain: no call that may change it is under way,
// and either the engine has been read on it or the trainer's word stands for it.
func (v *view) on(b *Backend, version Version) bool {
	switch {
	case v.begun(b) || b.Call == StepUpdate:
		return false
	case v.ask.Source == External && v.ask.Verification == VerifyDeclared && b.Declared == version:
		return true
	default:
		return b.Call != StepStamp && b.Report.Freshness == Fresh && b.Report.Version == version
	}
}

// begun reports whether an update may still change the weights of an engine. Once the trainer changes
// them, an older update of ours is its business: it says when they are what it wants.
func (v *view) begun(b *Backend) bool { return b.Begun != "" && v.ask.Source == Disk }

// idle reports whether nothing can be running on an engine, nor begin to.
func (v *view) idle(b *Backend) bool {
	return b.Counted == 0 && b.Load == LoadKnown && (b.Door == DoorShut || v.ask.Told == LeasesStopped)
}

// lookAtOnce has the plan made anew as soon as it is carried out.
func (v *view) lookAtOnce() { v.again = v.now }

// failed reports whether the last attempt to bring a backend to the goal has failed.
func (v *view) failed(b *Backend) bool { return b.Failure.Count > 0 && b.Failure.Version == v.goal }

// lost reports whether nobody knows when a backend will be on the goal.
func (v *view) lost(b *Backend) bool {
	return !v.on(b, v.goal) && (v.failed(b) || v.silent(b))
}

// silent reports whether nothing can be done about a backend.
func (v *view) silent(b *Backend) bool {
	return b.Contact == Unreachable || v.ask.Source == Disk && b.Pause == PausedByOthers
}

// poolIsPinned reports whether the whole pool waits for sessions of pinned senders. Rolling waits at
// each backend instead, and what the trainer has pushed cannot wait.
func (v *view) poolIsPinned() bool {
	if v.ask.Source == External || v.ask.Published == "" || v.course == courseSettled || v.course == courseRolling {
		return false
	}
	for i := range v.all {
		if v.pins(&v.all[i]) {
			return true
		}
	}
	return false
}

// pins reports whether sessions hold a backend on the version that it has.
func (v *view) pins(b *Backend) bool {
	return b.Pinned > 0 && v.on(b, v.ask.Published) && v.goal != v.ask.Published &&
		!v.passed(v.ask.Start.Add(v.ask.PinDeadline))
}

package rollout

import "time"

// repauseAfter is how long what a pause has aborted may take to be released, before the engine is
// continued and paused again to abort what came to it in between.
const repauseAfter = 2 * time.Second

// rereadAfter is how long a reading that is not the trainer's version is left alone while the pool
// waits for it. The pool has it sooner than the prober would.
const rereadAfter = time.Second

// move is what a plan does about one backend.
type move struct {
	activity Activity
	step     Step
	drain    Drain
	message  string
}

func wait(a Activity, message string) move { return move{activity: a, message: message} }

func do(a Activity, s Step) move { return move{activity: a, step: s} }

// next is what comes next for a backend: first what must be known before anything may be done.
func (v *view) next(i int) move {
	b := &v.all[i]
	has := v.on(b, v.goal)
	switch {
	case b.Call != NoStep:
		return wait(activityOf(b.Call), "")
	case b.Contact == Unreachable:
		return wait(Absent, "the engine cannot be spoken to")
	case v.rests(b):
		return v.rest(b)
	case has:
		return v.finish(b)
	case b.Pause == PausedByOthers: // what it says now is not believed once it goes on
		return wait(Absent, "the engine is paused by somebody else")
	case v.unread(b):
		return do(Verifying, Step{Kind: StepVerify})
	case v.ask.Source == External:
		return v.expect(b)
	case v.waitsForTurn(i):
		return wait(Serving, "")
	default:
		return v.bring(b)
	}
}

// unread reports whether an engine's version has to be read before anything else is done.
func (v *view) unread(b *Backend) bool { return !v.begun(b) && b.Report.Freshness == Stale }

// waitsForTurn reports whether a backend is left to serve the version that the pool leaves.
func (v *view) waitsForTurn(i int) bool {
	b := &v.all[i]
	if v.other != "" && v.serves(b) {
		return !v.turn[i]
	}
	return v.pinned && v.on(b, v.ask.Published)
}

// rests reports whether a backend has failed and its back-off has not passed.
func (v *view) rests(b *Backend) bool { return v.failed(b) && !v.passed(b.Failure.RetryAt) }

// rest is what is said of a backend before its back-off has passed.
func (v *view) rest(b *Backend) move {
	if !v.on(b, v.goal) {
		return wait(Failed, b.Failure.Message)
	}
	m := v.finish(b)
	return wait(m.activity, b.Failure.Message)
}

func activityOf(call StepKind) Activity {
	switch call {
	case StepPause, StepRepause:
		return Pausing
	case StepUpdate, StepStamp:
		return Updating
	case StepVerify:
		return Verifying
	case StepContinue:
		return Resuming
	case NoStep:
	}
	return Serving
}

// finish is what is left to do on a backend that has the version that the plan is after.
func (v *view) finish(b *Backend) move {
	waits := v.course == courseBarrier
	switch {
	case v.stampDue(b):
		return do(Updating, Step{Kind: StepStamp, Version: v.goal})
	case waits && v.mustBeIdle() && !v.idle(b):
		return v.clear(b)
	case waits, v.course == courseInPlace && !b.Pause.ours():
		return wait(Verifying, "it has the version, which is not published yet")
	case b.Pause.ours():
		return v.resume(b)
	default:
		return wait(Serving, "")
	}
}

// resume continues an engine that we have paused. That its version was read since is asked of every
// engine, that of one for which the trainer vouches included: it shows that it answers.
func (v *view) resume(b *Backend) move {
	switch {
	case v.ask.Engines == EnginesPaused:
		return wait(Verifying, "spec.engineMode keeps the engine paused")
	case b.Report.Freshness == Stale:
		return do(Verifying, Step{Kind: StepVerify})
	default:
		return do(Resuming, Step{Kind: StepContinue})
	}
}

// stampDue reports whether an engine is to be told the name of the weights that the trainer has
// pushed to it.
func (v *view) stampDue(b *Backend) bool {
	return v.ask.Source == External && v.ask.Stamping == StampEnabled && b.Declared == v.goal &&
		b.Report.Freshness == Fresh && b.Report.Version != v.goal
}

// expect waits for the trainer's version on an engine that does not have it.
func (v *view) expect(b *Backend) move {
	switch {
	case v.stampDue(b):
		return do(Updating, Step{Kind: StepStamp, Version: v.goal})
	case v.course != courseBarrier && b.Pause.ours():
		return v.resume(b)
	case v.course == courseBarrier && v.passed(b.Report.At.Add(rereadAfter)):
		return do(Verifying, Step{Kind: StepVerify})
	default:
		return wait(Verifying, "the engine reports another version: it waits for the trainer")
	}
}

// bring changes the weights of an engine, once it is clear. One with an update begun is updated as it
// is: nothing there may go on before its weights are known, and nobody can prove it empty before, since
// what waits behind an update is in no snapshot of its load. If it is not paused, it lets what runs end
// first by itself.
func (v *view) bring(b *Backend) move {
	frozen := b.Pause == PausedByUs && (v.begun(b) || !v.clearing().empties()) || b.Pause == NotPaused && v.begun(b)
	switch {
	case v.pins(b):
		return move{activity: Draining, drain: DrainPinned, message: "sessions of pinned senders live there"}
	case v.idle(b), frozen:
		return v.update(b)
	default:
		return v.clear(b)
	}
}

// clear does what the strategy does to what runs on an engine.
func (v *view) clear(b *Backend) move {
	if b.Counted == 0 && b.Load == LoadKnown {
		v.lookAtOnce() // the router is told to shut it in this very plan, which is all that is missing
		return wait(Draining, "it is being shut")
	}
	if v.ask.Source == External {
		return v.drain(b)
	}
	switch v.clearing() {
	case ClearAbort:
		return v.abort(b)
	case ClearRetract:
		return v.freeze(PauseRetract)
	case ClearFreeze:
		return v.freeze(PauseInPlace)
	case ClearDrain:
	}
	return v.drain(b)
}

func (v *view) update(b *Backend) move {
	s := Step{Kind: StepUpdate, Version: v.goal}
	if v.flushable(b) {
		s.Flush = FlushIdle
	}
	return do(Updating, s)
}

// flushable reports whether nothing at all is in the engine's schedulers. An engine that runs lets
// what it has end before it updates, and one that is paused by abort has nothing; a frozen one may
// hold a probe of somebody's that no ledger counts, and dies of a flush.
func (v *view) flushable(b *Backend) bool {
	switch b.Pause {
	case NotPaused:
		return v.idle(b) || v.begun(b)
	case PausedByUs:
		return v.idle(b) && b.PausedHow == PauseAbort
	case PauseBegun, PausedByOthers:
	}
	return false
}

// drain waits until an engine is empty. One that is paused, since an earlier plan had another way,
// must go on for that; what an update may have changed under it already comes first.
func (v *view) drain(b *Backend) move {
	switch {
	case !b.Pause.ours():
		return wait(Draining, "something is counted there, or may run")
	case v.ask.Engines == EnginesPaused:
		return wait(Pausing, "spec.engineMode keeps the engine paused, and what runs there cannot end")
	case v.begun(b):
		return v.update(b)
	case b.Report.Freshness == Stale:
		return do(Verifying, Step{Kind: StepVerify})
	default:
		return do(Draining, Step{Kind: StepContinue})
	}
}

// abort clears an engine by a pause that aborts, and by another for what was written to it meanwhile.
func (v *view) abort(b *Backend) move {
	switch {
	case b.Pause != PausedByUs && v.ask.Engines == EnginesPaused:
		return wait(Pausing, "spec.engineMode is about to pause the engine")
	case b.Pause != PausedByUs:
		return do(Pausing, Step{Kind: StepPause, Pause: PauseAbort})
	case v.ask.Engines == EnginesPaused && b.PausedHow != PauseAbort:
		return wait(Pausing, "spec.engineMode keeps the engine paused, and what runs there cannot be aborted")
	case b.PausedHow != PauseAbort, v.passed(b.PausedAt.Add(repauseAfter)):
		return do(Pausing, Step{Kind: StepRepause, Pause: PauseAbort})
	default:
		return wait(Pausing, "what was aborted there is still counted")
	}
}

// freeze pauses an engine with what runs on it.
func (v *view) freeze(mode PauseMode) move {
	if v.ask.Engines == EnginesPaused {
		return wait(Pausing, "spec.engineMode is about to pause the engine")
	}
	return do(Pausing, Step{Kind: StepPause, Pause: mode})
}

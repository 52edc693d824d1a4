package controller

import (
	"time"

	"github.com/berthmaster/berthmaster/api/v1alpha1"
	"github.com/berthmaster/berthmaster/internal/prober"
	"github.com/berthmaster/berthmaster/internal/rollout"
	"github.com/berthmaster/berthmaster/internal/router"
)

// pause is how and for what an engine is paused; the zero value: it is not.
type pause struct {
	by   v1alpha1.PauseOwner
	mode v1alpha1.PauseMode
}

// asked reports whether there is a pause.
func (p pause) asked() bool { return p.mode != "" }

// pauseOf is what spec.engineMode asks for.
func pauseOf(mode v1alpha1.EngineMode) pause {
	switch mode {
	case v1alpha1.EnginesPausedAbort:
		return pause{v1alpha1.PausedByEngineMode, v1alpha1.PauseAbort}
	case v1alpha1.EnginesPausedRetract:
		return pause{v1alpha1.PausedByEngineMode, v1alpha1.PauseRetract}
	case v1alpha1.EnginesPausedInPlace:
		return pause{v1alpha1.PausedByEngineMode, v1alpha1.PauseInPlace}
	case v1alpha1.EnginesRunning:
	}
	return pause{}
}

// pausedIn is the fact that the status has of a backend's engine.
func pausedIn(entry *v1alpha1.BackendStatus) pause { return pause{entry.PausedBy, entry.PauseMode} }

// engineWork is what a plan does about one engine.
type engineWork struct {
	// paused is a fact: written before the order to pause, and taken back after the answer to the
	// order to continue.
	paused pause
	// mode is what the router is told: no leases from before the order to pause until after the answer
	// to the order to continue.
	mode router.EngineMode
	// order is what to tell the engine now.
	order order
	// state is what the status says of it; empty: nothing about its engine.
	state v1alpha1.BackendState
	// delay is why it is not paused although that is wanted.
	delay delay
	// updating is a fact: the version of an update that was begun and whose answer is not known.
	updating rollout.Version
	// drain and excluded are what a change of weights tells the router beside mode; activity and message
	// are what it says of the backend.
	drain    router.Drain
	excluded string
	activity rollout.Activity
	message  string
	// vouched is the version that the router may believe it to have; empty: as the prober says.
	// vouchedAt is the Seq of the observation that it was judged by.
	vouched   router.Version
	vouchedAt uint64
	// fault is why the engine did not do what it was told.
	fault string
	// retryAt is when to look again. Zero: when something happens.
	retryAt time.Time
}

// delay is why an engine that is to be paused is not told to.
type delay int

const (
	// delayUnserving: it is not known to generate now. The zero value is that it is told.
	delayUnserving delay = iota + 1
	// delayOthers: somebody else seems to have paused it.
	delayOthers
)

// engineSight is all that the work on one engine follows from.
type engineSight struct {
	// wanted is how the engine is to be paused, recorded is the fact in the status.
	wanted, recorded pause
	verdict          prober.Verdict
	memory           engineMemory
}

// workOn decides what is done about one engine. The fact is what survives this process; what the
// engine has answered is remembered by this process alone, and asked again if it is not.
//
//	wanted  recorded            then
//	no      no                  it runs
//	M       no                  record M, take its leases away, order the pause
//	M       M                   order the pause until it is answered
//	no, N   M                   order it to continue until that is answered; then the fact goes
func workOn(s engineSight, now time.Time) engineWork {
	switch {
	case !s.recorded.asked() && !s.wanted.asked():
		return engineWork{}
	case !s.recorded.asked():
		return s.begin(now)
	case s.recorded.mode == s.wanted.mode:
		return s.keep(now)
	case s.memory.did(order{kind: orderContinue}):
		if s.wanted.asked() {
			return s.begin(now)
		}
		return engineWork{}
	default:
		return s.release(now)
	}
}

// begin is a pause that nothing records yet. What somebody else has paused is not ours to pause, for
// then it would be ours to continue. An engine that does not serve is paused once it does: one that is
// paused in its warm-up never comes to the end of it, and its start-up probe ends it.
func (s engineSight) begin(now time.Time) engineWork {
	switch s.verdict {
	case prober.SuspectedPaused:
		return engineWork{mode: router.EnginePaused, delay: delayOthers}
	case prober.Unknown, prober.Unhealthy, prober.Refused:
		return engineWork{mode: router.EnginePaused, delay: delayUnserving}
	case prober.Healthy:
	}
	work := engineWork{paused: s.wanted, mode: router.EnginePaused, state: v1alpha1.BackendPausing}
	return s.ordered(work, order{kind: orderPause, mode: s.wanted.mode, first: first}, now)
}

// keep is a pause that is recorded and wanted.
func (s engineSight) keep(now time.Time) engineWork {
	work := engineWork{paused: s.recorded, mode: router.EnginePaused, state: v1alpha1.BackendPaused}
	pausing := order{kind: orderPause, mode: s.recorded.mode}
	if s.memory.did(pausing) {
		return work
	}
	work.state = v1alpha1.BackendPausing
	return s.ordered(work, pausing, now)
}

// release is a pause that is recorded and not wanted any more.
func (s engineSight) release(now time.Time) engineWork {
	work := engineWork{paused: s.recorded, mode: router.EnginePaused, state: v1alpha1.BackendContinuing}
	return s.ordered(work, order{kind: orderContinue}, now)
}

// ordered adds an order that is due to the work.
func (s engineSight) ordered(work engineWork, o order, now time.Time) engineWork {
	if s.memory.failed.same(o) {
		work.fault = s.memory.fault
	}
	if s.memory.busy() {
		return work
	}
	if work.retryAt = s.memory.waits(o, now); work.retryAt.IsZero() {
		work.order = o
	}
	return work
}

// planEngines decides for every berth what is done about its engine. Only a member's engine is ever
// paused, and not once its pod is being deleted; whatever the pool has paused is continued, members or not.
//
// What was paused and has ended, or has no address any more, needs nothing.
func (p *plan) planEngines(w world, now time.Time) {
	for i := range p.berths {
		b := &p.berths[i]
		if b.hasEngine() && (w.pool.Spec.Weights == nil || !b.usable()) {
			b.engine = workOn(sightOf(&w, b), now)
			p.lookAgain(b.engine.retryAt, now)
		}
	}
	p.planWeights(&w, now)
}

// hasEngine reports whether there may be an engine to tell something.
func (b *berth) hasEngine() bool {
	return b.incarnation != "" && b.url != "" && b.process == processLives
}

// sightOf gathers what the work on a berth's engine follows from.
func sightOf(w *world, b *berth) engineSight {
	sight := engineSight{
		verdict: w.verdicts[string(b.incarnation)].Verdict, memory: w.engines[b.incarnation],
	}
	if entry := find(w.pool.Status.Backends, b.name, string(b.incarnation)); entry != nil {
		sight.recorded = pausedIn(entry)
	}
	// What waits in an engine that is paused could never end there, and its pod would only be killed.
	if b.pausable() {
		sight.wanted = pauseOf(w.pool.Spec.EngineMode)
	}
	return sight
}

// lookAgain has the pool looked at then, if not before. Zero: nothing changes.
func (p *plan) lookAgain(at, now time.Time) {
	if at.After(now) && (p.deadline.IsZero() || at.Before(p.deadline)) {
		p.deadline = at
	}
}

package rollout

import "time"

// reopenWithin is how long after a publication the pool stays shut while engines come back, so that
// it opens with all of them and the first is not given every session that waits.
const reopenWithin = 5 * time.Second

// ExcludedFailed is BackendPlan.Excluded of a backend that could not be brought to its version.
const ExcludedFailed = "RolloutFailed"

// Decide plans the next steps of a pool's rollout. It changes nothing and remembers nothing.
func Decide(ask Ask, backends []Backend, now time.Time) Plan {
	if ask.Target == "" {
		return release(ask, backends)
	}
	v := newView(ask, backends, now)
	p := Plan{Published: ask.Published, Goal: v.goal, Leases: v.leases(), Total: len(backends)}
	if v.other != "" {
		p.Second = ask.Target
	}
	moves := make([]move, len(backends))
	for i := range backends {
		b := &backends[i]
		moves[i] = v.next(i)
		p.Backends = append(p.Backends, v.backendPlan(b, moves[i], p.Leases))
		if v.on(b, ask.Target) {
			p.Ready++
		}
	}
	if v.publishes() {
		p.Published, p.Second = ask.Target, ""
		v.lookAtOnce()
	}
	p.Reason, p.Message = v.explain(p.Backends)
	p.Events = events(backends, p.Backends)
	p.Again = v.again
	return p
}

// release is the plan of a pool that does not look at versions: what a rollout left paused goes on.
func release(ask Ask, backends []Backend) Plan {
	p := Plan{Reason: Unasked, Total: len(backends)}
	for i := range backends {
		b := &backends[i]
		bp := BackendPlan{Name: b.Name, Incarnation: b.Incarnation, Activity: Serving}
		switch {
		case b.Call != NoStep:
			bp.Activity = activityOf(b.Call)
		case b.Pause.ours() && ask.Engines == EnginesRun && b.Contact == Reachable:
			bp.Activity, bp.Step = Resuming, Step{Kind: StepContinue}
		}
		bp.Engine = engineOf(b, bp.Step.Kind, false)
		p.Backends = append(p.Backends, bp)
	}
	p.Events = events(backends, p.Backends)
	return p
}

// leases is whom the router may grant leases.
func (v *view) leases() Leases {
	switch v.course {
	case courseBarrier:
		return v.barrierLeases()
	case courseInPlace:
		if v.pinned {
			return LeasesEndingPins
		}
	case courseSettled:
		if v.ask.Told == LeasesStopped && v.reopens() {
			return LeasesStopped
		}
	case courseRolling:
	}
	return LeasesOpen
}

// barrierLeases: the barrier falls when its deadline has passed and the trainer's version is not there;
// what is still on the published one serves again.
func (v *view) barrierLeases() Leases {
	switch {
	case v.pinned:
		return LeasesEndingPins
	case v.ask.Published != "" && v.late() && !v.poll().carries(v):
		return LeasesOpen
	default:
		return LeasesStopped
	}
}

// reopens reports whether engines that have the version are about to be admitted.
func (v *view) reopens() bool {
	if v.ask.PublishedAt.IsZero() || v.count(v.comesBack) == 0 {
		return false
	}
	return !v.passed(v.ask.PublishedAt.Add(reopenWithin))
}

// comesBack reports whether an engine has the version, takes no leases yet, and is about to.
func (v *view) comesBack(b *Backend) bool {
	if !v.on(b, v.goal) || b.Door == DoorOpen || b.Contact == Unreachable || v.failed(b) {
		return false
	}
	return b.Pause == NotPaused || b.Pause.ours() && v.ask.Engines == EnginesRun
}

// backendPlan says a move in the words of the router.
func (v *view) backendPlan(b *Backend, m move, leases Leases) BackendPlan {
	p := BackendPlan{
		Name: b.Name, Incarnation: b.Incarnation,
		Activity: m.activity, Step: m.step, Drain: m.drain, Message: m.message,
	}
	p.Engine = engineOf(b, m.step.Kind, v.begun(b))
	if p.Engine == EngineRunning && v.ask.Source == Disk && (m.step.Kind == StepVerify || b.Call == StepVerify) {
		p.Engine = EngineUpdating // whoever was updated is not known to be what it was
	}
	if m.activity == Draining && m.drain == NotDraining && leases != LeasesStopped {
		p.Drain = DrainMove
	}
	if m.activity == Failed {
		p.Excluded = ExcludedFailed
	}
	return p
}

// engineOf is what the router is told of an engine, given the step that the plan has for it and
// whether an update may still change its weights.
func engineOf(b *Backend, next StepKind, begun bool) Engine {
	switch {
	case begun, next == StepUpdate, b.Call == StepUpdate:
		return EngineUpdating
	case b.Pause.ours(), next == StepPause, next == StepRepause, b.Call == StepPause, b.Call == StepRepause:
		return EnginePaused
	default:
		return EngineRunning
	}
}

package rollout

// poll counts the backends that are asked for the target.
type poll struct {
	// asked are those in service; ready and busy are on the target, busy with something from before
	// counted that the publication must not leave behind; awaited are not on it, and not given up.
	asked, ready, busy, awaited int
}

func (v *view) poll() poll {
	var p poll
	for i := range v.all {
		b := &v.all[i]
		if b.Station == OutOfService {
			continue
		}
		p.asked++
		switch {
		case v.on(b, v.ask.Target) && v.mustBeIdle() && !v.idle(b):
			p.busy++
		case v.on(b, v.ask.Target):
			p.ready++
		case b.Failure.Count > 0 && b.Failure.Version == v.ask.Target, v.silent(b):
		default:
			p.awaited++
		}
	}
	return p
}

// carries reports whether the target may be published once nothing is busy.
func (p poll) carries(v *view) bool {
	on := p.ready + p.busy
	return on > 0 && (on == p.asked || on >= v.needed(p.asked) && (p.awaited == 0 || v.late()))
}

// publishes reports whether the target is to be published now.
func (v *view) publishes() bool {
	if v.goal != v.ask.Target || v.ask.Target == v.ask.Published {
		return false
	}
	p := v.poll()
	return p.carries(v) && p.busy == 0
}

// mustBeIdle reports whether nothing from before may be counted where the target is, when it is
// published. It says nothing of a backend that is left behind: what runs there runs on the version
// that its lease says.
func (v *view) mustBeIdle() bool {
	switch {
	case v.ask.Source == External:
		return true
	case v.ask.Strategy == AllAtOnce || v.ask.Published == "":
		return v.clearing().empties()
	default:
		return false
	}
}

// needed is how many of the backends asked must be on the target.
func (v *view) needed(asked int) int {
	if v.ask.OnFailure != Proceed {
		return asked
	}
	return max(1, (asked*v.ask.MinReadyPercent+99)/100)
}

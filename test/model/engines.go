package model

// engineSteps are what happens on engines, and between engines and managers.
func (x exploration) engineSteps(s leases, add adder) {
	for i, g := range s.grants {
		if g.exec == execRunning {
			next := s
			next.grants[i].exec = execFinished
			add("", "lease %d: the engine finishes", []any{i}, next)
		}
		if g.open {
			next := s
			next.grants[i].open = false
			add("", "lease %d: the start window closes", []any{i}, next)
		}
	}
	for m := range s.managers {
		if s.managers[m].term == 0 {
			continue
		}
		x.recordSteps(s, m, add)
		for b := range uint8(backends) {
			x.prove(s, m, b, add)
		}
	}
}

// recordSteps lose leases and abort what nobody answers for.
func (x exploration) recordSteps(s leases, m int, add adder) {
	for c := range clients {
		for a := range attempts {
			r := s.managers[m].records[c][a]
			next := s
			switch r.phase {
			case phaseActive:
				next.managers[m].records[c][a].phase = phaseHeld
				if x.fault == ForgetsLost {
					next.managers[m].records[c][a].phase = phaseEnded
				}
				add("", "manager %d loses lease %d", []any{m, r.grant}, next)
			case phaseHeld:
				next.managers[m].records[c][a].phase = phaseAborted
				if next.grants[r.grant].exec == execRunning {
					next.grants[r.grant].exec = execAborted
				}
				add("", "manager %d aborts lease %d", []any{m, r.grant}, next)
				if x.fault == BelievesAborts {
					next.managers[m].records[c][a].phase = phaseDead
					add("", "manager %d takes lease %d for dead", []any{m, r.grant}, next)
				}
			case phaseNone, phaseAborted, phaseDead, phaseEnded:
			}
		}
	}
}

// prove is quiescence: an engine that is shown empty ends what nobody answers for there.
func (x exploration) prove(s leases, m int, b uint8, add adder) {
	man := &s.managers[m]
	changed := man.unknown[b]
	if x.busy(s, man.term, b) {
		return
	}
	for i := range clients * attempts {
		r := &man.records[i/attempts][i%attempts]
		switch {
		case s.grants[r.grant].backend != b:
		case r.phase == phaseHeld, r.phase == phaseAborted && s.grants[r.grant].open:
			return
		case r.phase == phaseAborted:
			r.phase, changed = phaseDead, true
		}
	}
	man.unknown[b] = false
	if changed {
		add("", "manager %d sees backend %d empty", []any{m, b}, s)
	}
}

// busy reports whether something runs on a backend, or may begin there under an earlier term.
func (x exploration) busy(s leases, term, b uint8) bool {
	for _, g := range s.grants {
		if g.made && g.backend == b && (g.exec == execRunning || g.open && g.term < term && x.fault != IgnoresWindows) {
			return true
		}
	}
	return false
}

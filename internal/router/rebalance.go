package router

import "time"

// mayMove reports whether Rebalance lets a session leave its admissible home for the load at
// best: at a turn boundary, outside its cool-down, when the home is heavier by the margin, and
// when the next turn would save more than it costs to prefill the context again.
func (s *state) mayMove(v *session, to *load, n int64, now instant) bool {
	m := &s.config.Moving
	home := v.home.entry()
	switch {
	case s.config.Mode != Rebalance || v.active > 0 || to.at == v.home:
		return false
	case now < v.movedAt.add(m.CoolDown):
		return false
	case (home.outstanding+n)*to.capacity*100 <= (to.outstanding+n)*home.capacity*(100+m.MarginPercent):
		return false
	}
	return v.savedByMove(&home, to, n, m) > v.costOfMove(m)
}

// savedByMove is how much sooner the next turn of mean length should end on the other backend:
// each execution running beside it adds to every decode step, up to the engine's capacity, and
// what is beyond capacity waits for others to finish.
func (v *session) savedByMove(home, to *load, n int64, m *Moving) time.Duration {
	if v.turns == 0 {
		return 0
	}
	tokens := v.outputs / int64(v.turns)
	steps := beside(home, n) - beside(to, n)
	return time.Duration(tokens*steps) * m.StepPerExecution
}

// beside is how many executions would run or wait beside n new ones. Those beyond capacity
// count twice: they are run beside, and then waited for.
func beside(l *load, n int64) int64 {
	all := l.outstanding + n
	return all + max(0, all-l.capacity)
}

// costOfMove is the time to prefill the session's context on a backend that has none of it.
func (v *session) costOfMove(m *Moving) time.Duration {
	return time.Duration(v.context) * time.Second / time.Duration(m.PrefillTokensPerSecond)
}

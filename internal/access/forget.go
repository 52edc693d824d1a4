package access

import "time"

// makeRoom lets go of entries until there is room for another. mu is held.
func (m *memo[K, A, V]) makeRoom() {
	for len(m.known) > 0 && len(m.known) >= m.memory.answers {
		m.forgetOne()
	}
}

// reweigh counts what the entry's new value weighs, and lets go of others, or of it, if that is too much. mu
// is held.
func (m *memo[K, A, V]) reweigh(k K, e *entry[V]) {
	if m.memory.weigh == nil || m.known[k] != e { // what was forgotten meanwhile weighs nothing
		return
	}
	m.weight -= e.weight
	e.weight = m.memory.weigh(e.value)
	m.weight += e.weight
	for m.weight > m.memory.bytes {
		m.forgetOne()
	}
}

// forgetOne lets go of an entry. It looks at a few only, so that a flood of questions does not cost more than it
// asks, and takes what matters least: so that a flood of refused callers displaces each other rather than
// those who are allowed.
func (m *memo[K, A, V]) forgetOne() {
	const looks = 8
	var victim K
	least, looked, now := -1, 0, m.clock()
	for k, e := range m.known { // in random order
		if worth := e.worth(now); least < 0 || worth < least {
			victim, least = k, worth
		}
		if looked++; looked == looks || least == 0 {
			break
		}
	}
	m.weight -= m.known[victim].weight
	delete(m.known, victim)
}

// worth is how much is lost with the entry.
func (e *entry[V]) worth(now time.Time) int {
	switch {
	case e.asked != nil && !e.known:
		return 2 // those who wait for the answer have it anyway, but the next asks again
	case !now.Before(e.holds.fresh) && !now.Before(e.holds.stale):
		return 0
	case e.holds.stale.IsZero():
		return 1 // a refusal
	}
	return 3
}

package model

import "cmp"

// client makes one turn, under up to attempts request ids.
type client struct {
	standing standing
	attempt  uint8
	grant    uint8 // with every standing from holding to unsure
}

type standing uint8

const (
	clientAsks standing = iota
	// clientHolds a lease and has written nothing.
	clientHolds
	// clientWaits for the reply of the engine.
	clientWaits
	// clientUnsure has lost the connection.
	clientUnsure
	// clientDone has the reply.
	clientDone
	// clientStopped gives the turn up.
	clientStopped
)

// holds reports whether a client may still write under a lease.
func (s leases) holds(g uint8) bool {
	for _, c := range s.clients {
		if c.standing == clientHolds && c.grant == g {
			return true
		}
	}
	return false
}

// clientSteps are what a client does with its engine, and by itself.
func (x exploration) clientSteps(s leases, c int, add adder) {
	me := s.clients[c]
	next := s
	mine, g := &next.clients[c], &next.grants[me.grant]
	switch me.standing {
	case clientHolds:
		if g.open {
			g.exec, g.open = execRunning, false
			mine.standing = clientWaits
			add(s.second(c), "client %d writes its request under lease %d", []any{c, me.grant}, next)
		}
	case clientWaits:
		if g.exec != execRunning {
			mine.standing = clientDone
			add("", "client %d reads the reply", []any{c}, next)
		}
		mine.standing = clientUnsure
		if x.fault == RepeatsUnsure && me.attempt+1 < attempts {
			mine.standing, mine.attempt = clientAsks, me.attempt+1
		}
		add("", "client %d loses its connection", []any{c}, next)
	case clientUnsure, clientAsks, clientDone, clientStopped:
	}
	if me.standing > clientAsks && me.standing < clientDone {
		next = s
		next.clients[c] = client{standing: clientStopped}
		add("", "client %d loses all it knows", []any{c}, next)
	}
}

// second finds that a turn is executed although an earlier execution of it was not known to be
// gone. One that ended while its client was unsure, and whose reply is lost therefore, is gone.
func (s leases) second(c int) string {
	for i, g := range s.grants {
		if !g.made || int(g.client) != c || g.exec == execNone {
			continue
		}
		if g.exec != execRunning && g.dead && uint8(i) != s.clients[c].grant {
			continue
		}
		return "a turn is executed twice"
	}
	return ""
}

// callSteps are the calls of a client to a manager. The answer to an acquire may be lost, which is
// a step of its own; losing another answer is as if the client had not heard it yet.
func (x exploration) callSteps(s leases, c, m int, add adder) {
	me := s.clients[c]
	if me.standing == clientAsks {
		x.acquire(s, c, m, add)
		return
	}
	if me.standing == clientStopped || s.managers[m].term < s.grants[me.grant].term {
		return // there is no token, or it is of a later term than the manager's
	}
	next := s
	r := x.locate(&next, c, m)
	opened := opened(s, next, m)
	tell := func(broken, format string, of []any, to leases) { add(cmp.Or(broken, opened), format, of, to) }
	switch me.standing {
	case clientHolds, clientWaits:
		x.renew(next, c, m, tell)
	case clientUnsure:
		x.ambiguous(next, c, m, tell)
	case clientDone:
		r.phase = phaseEnded
		next.clients[c].standing = clientStopped
		tell("", "client %d releases to manager %d", []any{c, m}, next)
	case clientAsks, clientStopped:
	}
}

// ambiguous has a client say that it is unsure, and hear Dead where that is known.
func (x exploration) ambiguous(s leases, c, m int, add adder) {
	if !x.mayGrant(s, m) && x.fault != VouchesLapsed {
		return // NoLeader
	}
	me := s.clients[c]
	r := &s.managers[m].records[c][me.attempt]
	if r.phase == phaseActive {
		r.phase = phaseHeld
	}
	s.grants[me.grant].open = false
	if r.phase == phaseDead {
		s.grants[me.grant].dead = true
		s.clients[c] = anew(me)
	}
	add("", "client %d says Ambiguous to manager %d", []any{c, m}, s)
}

// anew is a client that may make its turn under another id.
func anew(c client) client {
	if c.attempt+1 == attempts {
		return client{standing: clientStopped}
	}
	return client{attempt: c.attempt + 1}
}

// locate finds the record that a token speaks of, or adopts it: as dead, where nothing that an earlier
// term granted runs or may begin any more.
func (x exploration) locate(s *leases, c, m int) *record {
	me, man := s.clients[c], &s.managers[m]
	r := &man.records[c][me.attempt]
	if r.phase != phaseNone {
		return r
	}
	*r = record{phaseActive, me.grant}
	if g := s.grants[me.grant]; g.term < man.term && !man.unknown[g.backend] && x.fault != OpensProven {
		r.phase = phaseDead
	}
	return r
}

// opened finds that a token has a manager count something on a backend that it took for empty: a fence or
// a drain that was called complete would not be any more.
func opened(before, after leases, m int) string {
	for b := range uint8(backends) {
		if man := before.managers[m]; !man.unknown[b] && !before.counts(man, b) && after.counts(after.managers[m], b) {
			return "a token opens what was called complete"
		}
	}
	return ""
}

// renew opens the start window anew where the manager may grant.
func (x exploration) renew(s leases, c, m int, add adder) {
	me := s.clients[c]
	if s.managers[m].records[c][me.attempt] != (record{phaseActive, me.grant}) {
		if !x.mayGrant(s, m) {
			return // NoLeader
		}
		s.clients[c] = client{standing: clientUnsure, attempt: me.attempt, grant: me.grant}
		add("", "client %d is refused by manager %d", []any{c, m}, s)
		return
	}
	if me.standing == clientHolds {
		if !x.mayGrant(s, m) && x.fault != RenewsUnstarted {
			return // NoLeader
		}
		s.grants[me.grant].open = true
	}
	add("", "client %d renews with manager %d", []any{c, m}, s)
}

// mayGrant is R11.
func (x exploration) mayGrant(s leases, m int) bool {
	if x.fault == GrantsWithoutAuthority {
		return s.managers[m].term > 0
	}
	return s.managers[m].term > 0 && s.authority == uint8(m+1) && s.managers[m].confirmed
}

// acquire answers with the lease that the id has, or grants one.
func (x exploration) acquire(s leases, c, m int, add adder) {
	me, man := s.clients[c], s.managers[m]
	if !x.mayGrant(s, m) {
		return
	}
	r := man.records[c][me.attempt]
	if r.phase > phaseActive {
		next := s
		next.clients[c] = client{standing: clientStopped}
		add("", "client %d asks for an id that has ended", []any{c}, next)
		return
	}
	if r.phase == phaseActive {
		x.hand(s, c, r.grant, add)
		return
	}
	free := s.free()
	if free >= x.bounds.Grants {
		return
	}
	for b := range uint8(backends) {
		next := s
		next.grants[free] = grant{made: true, client: uint8(c), attempt: me.attempt, backend: b, term: man.term, open: true}
		next.managers[m].records[c][me.attempt] = record{phaseActive, uint8(free)}
		broken := ""
		if s.later(man.term) {
			broken = "a grant under an earlier term follows one under a later"
		}
		add(broken, "manager %d grants lease %d on backend %d to client %d, who does not hear of it", []any{m, free, b, c}, next)
		x.hand(next, c, uint8(free), add)
	}
}

// free is the first grant that was not made.
func (s leases) free() int {
	free := 0
	for free < maxGrants && s.grants[free].made {
		free++
	}
	return free
}

// hand lets the client have its lease, which opens the start window.
func (x exploration) hand(s leases, c int, g uint8, add adder) {
	s.grants[g].open = s.grants[g].exec == execNone
	s.clients[c].standing, s.clients[c].grant = clientHolds, g
	add("", "client %d has lease %d", []any{c, g}, s)
}

// later reports whether anything was granted under a later term.
func (s leases) later(term uint8) bool {
	for _, g := range s.grants {
		if g.term > term {
			return true
		}
	}
	return false
}

package model

import "hash/maphash"

const (
	managers = 2
	clients  = 2
	backends = 2
	// attempts is how many request ids a client has for its one turn.
	attempts = 2
)

// Bounds keep an exploration finite.
type Bounds struct {
	// Grants is how many leases are granted in all, at most 3.
	Grants int
	// Crashes is how many managers die; each is replaced at once.
	Crashes int
	// Terms is how many terms there are at most, counted from 1.
	Terms int
	// Clients is how many clients there are, at most 2.
	Clients int
}

const maxGrants = 3

// LeaseFault is a rule of leases, terms and take-over, left out.
type LeaseFault int

// The faults.
const (
	// LeaseSound leaves nothing out.
	LeaseSound LeaseFault = iota
	// GrantsWithoutAuthority grants by the term alone: a manager that stood still goes on.
	GrantsWithoutAuthority
	// BlindTerm writes the term whatever the status has become.
	BlindTerm
	// ResumesUnseen goes on under its old term with authority regained, without a look at the status.
	ResumesUnseen
	// TakesForEmpty takes over without unknown load.
	TakesForEmpty
	// IgnoresWindows believes an engine empty while leases of earlier terms may yet be used.
	IgnoresWindows
	// RenewsUnstarted opens start windows anew without authority.
	RenewsUnstarted
	// VouchesLapsed says Dead without authority.
	VouchesLapsed
	// BelievesAborts says Dead once an abort was answered, whatever the engine's load.
	BelievesAborts
	// ForgetsLost uncounts leases that were not renewed.
	ForgetsLost
	// KeepsLateTerm leads under a term although authority had ended before its write was answered.
	KeepsLateTerm
	// OpensProven adopts a lease of an earlier term where all of those was seen to be gone.
	OpensProven
	// RepeatsUnsure has a client that is unsure make its turn anew before it is told Dead.
	RepeatsUnsure
)

// grant is a lease that was ever granted, as nobody but the model sees it.
type grant struct {
	made            bool
	client, attempt uint8
	backend, term   uint8
	// open: its holder may begin to write.
	open bool
	exec execution
	// dead: its client was told that it is Dead.
	dead bool
}

type execution uint8

const (
	execNone execution = iota
	execRunning
	execFinished
	execAborted
)

// record is what a manager knows under a request id.
type record struct {
	phase phase
	grant uint8
}

type phase uint8

const (
	phaseNone phase = iota
	phaseActive
	phaseHeld    // nobody answers for it
	phaseAborted // held, and its abort was answered
	phaseDead
	phaseEnded
)

// manager is one process. The zero value has just started.
type manager struct {
	term uint8
	// reads is the status that a take-over has read: its version plus 1; 0: none is under way.
	reads, readTerm uint8
	// confirmed: the status was seen to have its term since it last gained authority.
	confirmed bool
	unknown   [backends]bool
	records   [clients][attempts]record
}

// leases is a state of the second part.
type leases struct {
	// authority is who has it: a manager's number plus 1, or nobody.
	authority     uint8
	term, version uint8 // the status
	grants        [maxGrants]grant
	managers      [managers]manager
	clients       [clients]client
	crashes       uint8
}

// exploration is a fault and bounds.
type exploration struct {
	fault  LeaseFault
	bounds Bounds
}

// ExploreLeases explores the second part.
func ExploreLeases(fault LeaseFault, bounds Bounds) Found {
	x := exploration{fault, bounds}
	return Explore(leases{}, World[leases]{Steps: x.steps, Check: x.check, Key: func(seed maphash.Seed, s leases) uint64 { return s.key(seed) }})
}

// check: a backend that the manager in charge takes for empty is empty, and stays so.
func (x exploration) check(s leases) string {
	if s.authority == 0 {
		return ""
	}
	m := s.managers[s.authority-1]
	if m.term == 0 || !m.confirmed {
		return ""
	}
	for b := range uint8(backends) {
		if !m.unknown[b] && !s.counts(m, b) && s.mayRun(b) {
			return "a backend is taken for empty and is not"
		}
	}
	return ""
}

// counts reports whether the manager counts anything on a backend.
func (s leases) counts(m manager, b uint8) bool {
	for _, ids := range m.records {
		for _, r := range ids {
			if r.phase >= phaseActive && r.phase <= phaseAborted && s.grants[r.grant].backend == b {
				return true
			}
		}
	}
	return false
}

// mayRun reports whether an execution runs on a backend or may begin under a lease.
func (s leases) mayRun(b uint8) bool {
	for i, g := range s.grants {
		if g.made && g.backend == b && (g.exec == execRunning || g.open && s.holds(uint8(i))) {
			return true
		}
	}
	return false
}

// steps lists all that can happen.
func (x exploration) steps(s leases) []Step[leases] {
	var out []Step[leases]
	add := func(broken, format string, of []any, to leases) {
		out = append(out, Step[leases]{Format: format, Of: of, To: to, Broken: broken})
	}
	x.managerSteps(s, add)
	for c := range x.bounds.Clients {
		x.clientSteps(s, c, add)
		for m := range s.managers {
			x.callSteps(s, c, m, add)
		}
	}
	x.engineSteps(s, add)
	return out
}

// adder takes a step.
type adder func(broken, format string, of []any, to leases)

// managerSteps are those of elections and take-overs.
func (x exploration) managerSteps(s leases, add adder) {
	if s.authority > 0 {
		next := s
		next.authority = 0
		add("", "authority ends", nil, next)
	}
	for i := range s.managers {
		if s.authority == 0 {
			next := s
			next.authority = uint8(i + 1)
			next.managers[i].confirmed = x.fault == ResumesUnseen
			add("", "manager %d gains authority", []any{i}, next)
		}
		if int(s.crashes) < x.bounds.Crashes && s.managers[i] != (manager{}) {
			next := s
			next.crashes++
			next.managers[i] = manager{}
			if s.authority == uint8(i+1) {
				next.authority = 0
			}
			add("", "manager %d dies and starts anew", []any{i}, next)
		}
		x.termSteps(s, i, add)
	}
}

// termSteps are how a manager comes to a term and gives it up.
func (x exploration) termSteps(s leases, i int, add adder) {
	m, next := s.managers[i], s
	n := &next.managers[i]
	switch {
	case m.reads > 0:
		n.reads = 0
		if m.reads == s.version+1 || x.fault == BlindTerm {
			x.begin(&next, i)
		}
		add(reused(s, next), "manager %d writes its term", []any{i}, next)
	case m.term > 0 && m.term < s.term:
		*n = manager{}
		add("", "manager %d meets a higher term and begins anew", []any{i}, next)
	case s.authority == uint8(i+1):
		x.leadSteps(s, i, add)
	}
}

// leadSteps are what a manager with authority does to come to grant.
func (x exploration) leadSteps(s leases, i int, add adder) {
	m, next := s.managers[i], s
	n := &next.managers[i]
	switch {
	case m.term == 0 && int(s.term) < x.bounds.Terms:
		n.reads, n.readTerm = s.version+1, s.term
		add("", "manager %d reads the status", []any{i}, next)
	case m.term > 0 && !m.confirmed:
		n.confirmed = true
		add("", "manager %d sees its term stand", []any{i}, next)
	}
}

// begin is the successful write of a raised term.
func (x exploration) begin(s *leases, i int) {
	m := &s.managers[i]
	s.version++
	s.term = m.readTerm + 1
	if s.authority != uint8(i+1) && x.fault != KeepsLateTerm {
		*m = manager{} // another may have granted meanwhile, under an earlier term
		return
	}
	m.term, m.confirmed = s.term, s.authority == uint8(i+1)
	for b := range m.unknown {
		m.unknown[b] = m.readTerm > 0 && x.fault != TakesForEmpty
	}
}

// reused finds a term that was not above the one before.
func reused(before, after leases) string {
	if after.version > before.version && after.term <= before.term {
		return "a term is given twice"
	}
	return ""
}

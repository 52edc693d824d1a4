package model

// The election's times, in ticks. What matters is their order: a renewal is believed for less
// than others wait.
const (
	leaseDuration = 3
	renewDeadline = 2
	// skew is by how much the clock of the second manager is ahead, for the fault that compares
	// clocks.
	skew = 2
)

// ElectionFault is a rule of the election, left out.
type ElectionFault int

// The faults.
const (
	// ElectionSound leaves nothing out.
	ElectionSound ElectionFault = iota
	// CountsFromReply counts authority from when a renewal was answered, not from when it was sent.
	CountsFromReply
	// LongDeadline believes in a renewal for longer than others wait.
	LongDeadline
	// BlindWrites overwrites the lock whatever it has become.
	BlindWrites
	// ComparesClocks decides by the renewal time that another machine wrote, by its own clock.
	ComparesClocks
	// ClearsAnothers gives up a lock that names another by now.
	ClearsAnothers
)

// version is all that matters of a version of the lock: whether it is the one the API server has.
type version uint8

const (
	versionNone version = iota // never seen
	versionOld
	versionCurrent
)

// elector is what one manager knows of the election. Times are ages in ticks, and stop at the
// longest that matters, so that the states are finitely many however long it runs.
type elector struct {
	// left is for how long it may grant yet.
	left uint8
	// known is the version that it saw last, held whether it was the holder then, waited how long
	// ago by its own clock it saw it first, and renewed how old that version's renewal is.
	known           version
	held            bool
	waited, renewed uint8
	call            call
}

// call is a write of the lock on its way.
type call struct {
	stage stage
	age   uint8
	// version is the one that the write replaces; once it is taken, the one that it made.
	version version
	// clears: it gives the lock up.
	clears bool
}

type stage uint8

const (
	callNone stage = iota
	callSent
	callTaken
	callRefused
)

// election is a state of the first part.
type election struct {
	// holder is who the lock names: a manager's number plus 1, or nobody.
	holder uint8
	// renewed is how old the renewal is that the lock has.
	renewed  uint8
	electors [2]elector
}

// ExploreElection explores the first part.
func ExploreElection(fault ElectionFault) Found {
	return Explore(election{renewed: leaseDuration + skew}, World[election]{Steps: fault.steps, Check: fault.check})
}

func (f ElectionFault) check(s election) string {
	if s.electors[0].left > 0 && s.electors[1].left > 0 {
		return "two managers may grant at once"
	}
	return ""
}

func (f ElectionFault) steps(s election) []Step[election] {
	out := []Step[election]{{Format: "a tick passes", To: s.tick()}}
	for i := range s.electors {
		for _, step := range []struct {
			name string
			take func(election, int) (election, bool)
		}{
			{"looks at the lock", f.look},
			{"sends a write", f.send},
			{"gives the lock up", f.giveUp},
			{"has its write taken or refused", f.take},
			{"hears the answer", f.hear},
			{"hears no answer", f.miss},
		} {
			if to, can := step.take(s, i); can {
				out = append(out, Step[election]{Format: "manager %d %s", Of: []any{i, step.name}, To: to})
			}
		}
	}
	return out
}

// tick lets one tick pass.
func (s election) tick() election {
	const oldest = leaseDuration + skew
	s.renewed = min(s.renewed+1, oldest)
	for i := range s.electors {
		e := &s.electors[i]
		if e.left > 0 {
			e.left--
		}
		e.waited, e.renewed = min(e.waited+1, leaseDuration), min(e.renewed+1, oldest)
		if e.call.stage != callNone {
			e.call.age = min(e.call.age+1, oldest)
		}
	}
	return s
}

// look reads the lock. The wait for its end begins anew only when it has changed.
func (f ElectionFault) look(s election, i int) (election, bool) {
	e := &s.electors[i]
	if e.call.stage != callNone || e.known == versionCurrent {
		return s, false
	}
	e.known, e.held, e.waited, e.renewed = versionCurrent, int(s.holder) == i+1, 0, s.renewed
	return s, true
}

// send begins to renew the lock, or to take one that nobody has or that has not changed for long
// enough.
func (f ElectionFault) send(s election, i int) (election, bool) {
	e := &s.electors[i]
	over := e.waited >= leaseDuration
	if f == ComparesClocks {
		over = int(e.renewed)+i*skew >= leaseDuration
	}
	nobody := s.holder == 0 && e.known == versionCurrent
	if e.call.stage != callNone || e.known == versionNone || !e.held && !nobody && !over {
		return s, false
	}
	e.call = call{stage: callSent, version: e.known}
	return s, true
}

// giveUp begins to clear the lock, without authority from then on.
func (f ElectionFault) giveUp(s election, i int) (election, bool) {
	e := &s.electors[i]
	if e.call.stage != callNone || e.known == versionNone || !e.held && f != ClearsAnothers {
		return s, false
	}
	e.left = 0
	e.call = call{stage: callSent, version: e.known, clears: true}
	return s, true
}

// take is the API server's: it takes a write that replaces what it has, and no other.
func (f ElectionFault) take(s election, i int) (election, bool) {
	e := &s.electors[i]
	if e.call.stage != callSent {
		return s, false
	}
	if e.call.version != versionCurrent && f != BlindWrites {
		e.call.stage, e.call.version = callRefused, versionNone
		return s, true
	}
	for j := range s.electors {
		other := &s.electors[j]
		other.known = min(other.known, versionOld)
		other.call.version = min(other.call.version, versionOld)
	}
	s.holder, s.renewed = uint8(i+1), e.call.age
	if e.call.clears {
		s.holder = 0
	}
	e.call.stage, e.call.version = callTaken, versionCurrent
	return s, true
}

func (f ElectionFault) hear(s election, i int) (election, bool) {
	e := &s.electors[i]
	switch {
	case e.call.stage == callTaken && e.call.clears:
		e.known, e.held, e.waited, e.renewed = e.call.version, false, 0, e.call.age
	case e.call.stage == callTaken:
		e.left = max(e.left, f.authority(e.call.age))
		e.known, e.held, e.waited, e.renewed = e.call.version, true, 0, e.call.age
	case e.call.stage == callRefused:
	default:
		return s, false
	}
	e.call = call{}
	return s, true
}

// authority is for how long a manager believes in a renewal that it sent so long ago.
func (f ElectionFault) authority(age uint8) uint8 {
	believed := uint8(renewDeadline)
	switch f {
	case CountsFromReply:
		return believed
	case LongDeadline:
		believed = leaseDuration + 1
	case ElectionSound, BlindWrites, ComparesClocks, ClearsAnothers:
	}
	return believed - min(age, believed)
}

// miss gives up on an answer: whether the write was taken stays unknown to the manager.
func (f ElectionFault) miss(s election, i int) (election, bool) {
	e := &s.electors[i]
	if e.call.stage != callTaken {
		return s, false
	}
	e.call = call{}
	return s, true
}

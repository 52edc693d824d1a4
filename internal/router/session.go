package router

// session is where a trajectory lives. Only sessions without an active lease are in the idle
// list, so that one at work is never forgotten.
type session struct {
	links[session]
	id     SessionID
	sender SenderName
	home   *backend
	active int64
	// idleSince is by the pool's idle clock, which stands still while held or paused.
	idleSince instant
	// published counts the publications seen when the home was chosen.
	published int64
	choice    choice
	group     *group
	// context is what the last reply's prompt and output add up to, in tokens; outputs and
	// turns give the mean output of a turn.
	context, outputs int64
	turns            int32
	// grants counts the leases that somebody has seen, so that one taken back leaves no session.
	grants   int32
	standing standing
	// began is the version that a session of a pinned sender began on; empty for others.
	began Version
	// movedAt is when the home was last chosen.
	movedAt instant
}

// standing is whether a session is still in state.sessions; its leases may outlive it there.
type standing uint8

const (
	sessionKnown standing = iota
	sessionEnded
)

// learn takes note of a reply's size.
func (v *session) learn(r Reply) {
	if r.OutputTokens == 0 && r.PromptTokens == 0 {
		return
	}
	v.context = max(v.context, r.PromptTokens+r.OutputTokens)
	v.outputs += r.OutputTokens
	v.turns++
}

// choice is Choice, packed: a million sessions keep one each.
type choice struct {
	why        why
	candidates int32
	chosen     tally
	runnerUp   BackendName
	second     tally
}

type tally struct{ outstanding, capacity, sessions int32 }

// why a home was chosen.
type why uint8

const (
	whyPlaced why = iota
	whyLastBackend
	whyAdopted
	whyGroup
	whyRebalanced
)

func (w why) String() string {
	return [...]string{"Placed", "LastBackend", "Adopted", "Group", "Rebalanced"}[w]
}

func sessionLinks(v *session) *links[session] { return &v.links }

// openSession begins a session that is not known. It is nil when the cap leaves no room, and the
// request is then served without affinity.
func (s *state) openSession(id SessionID, sender SenderName) *session {
	if len(s.sessions) >= s.config.MaxSessions {
		s.totals.WithoutAffinity++
		return nil
	}
	v := &session{id: id, sender: sender}
	s.sessions[id] = v
	return v
}

// moveHome gives a session its home.
func (s *state) moveHome(v *session, to *backend, c choice, now instant) {
	if v.home != nil {
		s.resident(v.home, v.sender, -1)
		s.totals.Moves++
	}
	v.home, v.choice, v.published, v.movedAt = to, c, s.publications, now
	s.resident(to, v.sender, 1)
	if v.group != nil {
		v.group.home = to
	}
}

// endSession forgets a session; its leases live on.
func (s *state) endSession(v *session) {
	if v.home != nil {
		s.resident(v.home, v.sender, -1)
		v.home = nil
	}
	s.idle.remove(v)
	s.leaveGroup(v)
	s.freed = true
	if v.standing == sessionKnown {
		v.standing = sessionEnded
		delete(s.sessions, v.id)
	}
}

// busy counts an active lease of the session.
func (s *state) busy(v *session) {
	if v == nil {
		return
	}
	v.active++
	v.grants++
	s.idle.remove(v)
}

// rested uncounts an active lease; the last one starts the idle clock of the session.
func (s *state) rested(v *session, now instant) {
	if v == nil {
		return
	}
	v.active--
	if v.active == 0 && v.standing == sessionKnown {
		v.idleSince = s.idleClock.read(now)
		s.idle.add(v)
	}
}

// forgetIdle ends the sessions that have been idle for too long.
func (s *state) forgetIdle(now instant) {
	clock := s.idleClock.read(now)
	for v := range s.idle.all {
		if v.idleSince.add(s.config.IdleTimeout) > clock {
			return
		}
		s.endSession(v)
	}
}

// end is DELETE sessions/{id} by the session's own sender; unknown sessions are gone already.
func (s *state) end(id SessionID, sender SenderName) error {
	v := s.sessions[id]
	if v == nil {
		return nil
	}
	if v.sender != sender {
		return refuse(ReasonSessionForbidden, "sender", "the session belongs to another sender")
	}
	s.endSession(v)
	return nil
}

// view explains a session's placement.
func (s *state) view(id SessionID) (SessionView, error) {
	v := s.sessions[id]
	if v == nil {
		return SessionView{}, refuse(ReasonSessionUnknown, "sessionID", "the router knows no such session: it never had a lease, has ended, or was idle too long")
	}
	out := SessionView{Session: v.id, Sender: v.sender, Active: v.active, Choice: v.choice.open()}
	if v.home != nil {
		out.Backend, out.Incarnation = v.home.Name, v.home.Incarnation
		out.Choice.Chosen.Backend = v.home.Name
	}
	return out, nil
}

func (c choice) open() Choice {
	return Choice{
		Why: c.why.String(), Candidates: int64(c.candidates),
		Chosen: c.chosen.score(""), RunnerUp: c.second.score(c.runnerUp),
	}
}

func (t tally) score(name BackendName) Score {
	return Score{Backend: name, Outstanding: int64(t.outstanding), Capacity: int64(t.capacity), Sessions: int64(t.sessions)}
}

package router

// Gate says whom a rollout of weights lets in. It comes on top of Leasing and of fences.
type Gate string

// The gates. The zero value is GateOpen.
const (
	// GateOpen lets in whom the rest lets in.
	GateOpen Gate = ""
	// GateEndingPins lets in all but sessions of pinned senders that are not known: those that are
	// known are to end.
	GateEndingPins Gate = "EndingPins"
	// GateStopped lets in nobody; clients wait as they do while leasing is held.
	GateStopped Gate = "Stopped"
)

// Pinning says what a sender's sessions want of weight versions.
type Pinning string

// The values of spec.senders[].versionPolicy. The zero value is FollowVersions.
const (
	// FollowVersions takes each turn on what the pool has then.
	FollowVersions Pinning = ""
	// PinVersions wants a session to end on the version that it began on. A rollout waits for that,
	// for a while; a lease that comes on another version all the same says mixed.
	PinVersions Pinning = "Pinned"
)

// stopped reports whether nobody gets leases, whatever the reason.
func (s *state) stopped() bool { return s.leasing == LeasingHeld || s.gate == GateStopped }

// admitGate makes the check of the rollout's gate.
func (s *state) admitGate(r *Request) error {
	switch {
	case s.gate == GateStopped:
		return refuse(ReasonLeasingHeld, "", "a rollout of weights holds the pool until its version is published")
	case s.gate == GateEndingPins && s.pins(r.Sender) && s.sessions[r.Session] == nil:
		return refuse(ReasonLeasingHeld, "", "a rollout of weights waits for the sessions of this sender that began before it")
	}
	return nil
}

// pins reports whether the sender's sessions are to end on the version that they began on.
func (s *state) pins(name SenderName) bool {
	v := s.senders[name]
	return v != nil && v.Pinning == PinVersions
}

// pinned is how many sessions of pinned senders live on b.
func (s *state) pinned(b *backend) int64 {
	var n int64
	for name, residents := range b.lodgers {
		if s.pins(name) {
			n += residents
		}
	}
	return n
}

// lodge changes how many sessions of a sender live on b.
func (s *state) lodge(b *backend, name SenderName, by int64) {
	if b.lodgers == nil {
		b.lodgers = map[SenderName]int64{}
	}
	if b.lodgers[name] += by; b.lodgers[name] == 0 {
		delete(b.lodgers, name)
		if s.pins(name) {
			s.unsettled, s.changed = true, true // a rollout may wait for just this
		}
	}
}

// putsOut reports whether a session may not stay at its home although the home serves others: its
// backend is drained of all but pinned senders.
func (s *state) putsOut(v *session) bool {
	return v.home.Drain == DrainPinned && !s.pins(v.sender)
}

// isUpdated reports whether a backend has the version that the pool moves to.
func (s *state) isUpdated(b *backend) bool { return s.target != "" && b.seen.Version == s.target }

// preferUpdated picks among the backends that have the target, by R1, while the best of them has room
// for the request: a session that begins there need not move when its backend's turn comes. Beyond
// that, load counts for more.
func (s *state) preferUpdated(n int64) (best, second int) {
	if s.target == "" || s.target == s.published {
		return -1, -1
	}
	best, second = s.scan(n, func(a, b *load) bool {
		if l, r := s.isUpdated(a.at), s.isUpdated(b.at); l != r {
			return l
		}
		return less(a, b, n)
	})
	if best < 0 || !s.isUpdated(s.loads[best].at) || s.loads[best].outstanding+n > s.loads[best].capacity {
		return -1, -1
	}
	return best, second
}

// spans notes which version a pinned session began on, and marks a lease that comes on another.
func (s *state) spans(v *session, l *lease) {
	if v == nil || l.version == "" || !s.pins(v.sender) {
		return
	}
	if v.began == "" {
		v.began = l.version
	}
	if v.began != l.version {
		l.span = spanMixed
	}
}

// shut reports whether nothing but another fleet can let leases in.
func (b *backend) shut() bool {
	return b.retired || b.Excluded != "" || b.Engine != EngineRunning || b.Drain == DrainMove || b.Drain == DrainAbort
}

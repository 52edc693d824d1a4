package router

import "fmt"

// apply takes a fleet over whole, or refuses it and changes nothing.
func (s *state) apply(f *Fleet, now instant) error {
	s.advance(now)
	if err := s.acceptable(f); err != nil {
		return err
	}
	if f.Epoch > s.epoch {
		s.raiseEpoch(f.Epoch, now)
	}
	s.config, s.leasing, s.target, s.ending = f.Config, f.Leasing, f.Target, f.Pins
	if f.Published != s.published {
		s.published = f.Published
		s.publications++
	}
	s.applySenders(f.Senders)
	s.applyMembers(f.Members, now)
	s.unsettled, s.freed = true, true
	s.reviewSettling(now)
	s.refuseForGood(now)
	return nil
}

func (s *state) acceptable(f *Fleet) error {
	if f.Epoch < s.epoch {
		return fmt.Errorf("fleet of epoch %d: the table is at epoch %d already", f.Epoch, s.epoch)
	}
	if err := f.Config.Validate(); err != nil {
		return fmt.Errorf("fleet: %w", err)
	}
	met := make(map[Incarnation]BackendName, len(f.Members))
	for i := range f.Members {
		m := &f.Members[i]
		if other, twice := met[m.Incarnation]; twice || m.Incarnation == "" {
			return fmt.Errorf("fleet: backend %q: incarnation %q is empty or that of %q too", m.Name, m.Incarnation, other)
		}
		met[m.Incarnation] = m.Name
	}
	return nil
}

func (s *state) applySenders(list []Sender) {
	for _, v := range s.senders {
		v.declared = false
	}
	recount := false
	for _, spec := range list {
		v := s.senders[spec.Name]
		if v == nil {
			v = &sender{counted: s.countedFor(spec.Name)}
			s.senders[spec.Name] = v
		}
		recount = recount || v.Versions != spec.Versions
		s.changeRights(v, spec.Subjects)
		v.Sender, v.declared = spec, true
	}
	if recount {
		s.countPinned()
	}
	for name, v := range s.senders {
		if !v.declared && v.counted == 0 {
			delete(s.senders, name)
		}
	}
}

// countedFor sums what is counted for a sender that the spec did not have until now: tokens of
// earlier terms may have made it known.
func (s *state) countedFor(name SenderName) int64 {
	var n int64
	for _, b := range s.backends {
		for _, leases := range []*list[lease]{&b.active, &b.held} {
			for l := range leases.all {
				if l.who.sender == name {
					n += l.who.executions
				}
			}
		}
	}
	return n
}

func (s *state) applyMembers(list []Member, now instant) {
	listed := make(map[Incarnation]struct{}, len(list))
	running := EngineRunning
	for i := range list {
		m := list[i]
		listed[m.Incarnation] = struct{}{}
		s.applyMember(m, now)
		if m.Engine != EngineRunning {
			running = m.Engine
		}
	}
	for inc, b := range s.backends {
		if _, ok := listed[inc]; !ok && !b.retired {
			b.retired = true
			b.keepTime(now)
			s.refresh(b)
			s.forgetIfRetired(b)
		}
	}
	s.members = len(list)
	s.idleClock.set(s.leasing == LeasingOpen && running == EngineRunning, now)
}

func (s *state) applyMember(m Member, now instant) {
	b := s.backends[m.Incarnation]
	switch {
	case b == nil:
		b = newBackend(m, now)
		s.recall(b)
		b.settling.unknown = m.Load == LoadUnknown && b.process != processEnded
		b.settling.windowsEnd = s.earlierWindows
		s.backends[m.Incarnation] = b
		s.awaitWindows(b, now)
	case b.retired:
		b.settling.unknown = b.settling.unknown || m.Load == LoadUnknown
		s.awaitWindows(b, now)
		b.unsee()
	}
	if m.Engine != b.Engine {
		b.disturb()
	}
	m.Load = b.Load
	b.Member, b.retired = m, false
	b.reload(b.version())
	b.keepTime(now)
	b.capacity = b.effectiveCapacity()
	s.refresh(b)
}

// awaitWindows has the proof about an incarnation that joins with unknown load begin anew, once those
// have written who got a lease there a moment ago: not only earlier terms grant, other pools do too.
// Theirs is taken to be no longer than ours.
func (s *state) awaitWindows(b *backend, now instant) {
	if b.settling.unknown {
		b.settling.windowsEnd = max(b.settling.windowsEnd, now.add(s.config.StartWindow))
		b.disturb()
	}
}

// raiseEpoch ends every lease and session of earlier epochs: what may still run is an orphan,
// counted until gone (R7). It is also the one way back from a failure.
func (s *state) raiseEpoch(to Epoch, now instant) {
	if s.epoch > 0 {
		s.failure = nil // the first fleet of a table is no rise: a durable failure stands
	}
	s.epoch = to
	for _, b := range s.backends {
		for l := range b.active.all {
			s.orphan(l, now)
		}
		for l := range b.held.all {
			s.orphan(l, now)
		}
	}
	for _, v := range s.sessions {
		s.endSession(v)
	}
	s.fates, s.changed = true, true
}

func (s *state) orphan(l *lease, now instant) {
	if l.phase == phaseOrphaned {
		return
	}
	s.totals.Orphaned++
	delete(s.uncertain, l)
	s.hold(l, phaseOrphaned, now)
}

// observe takes the prober's word about one incarnation; an older word than the last is
// ignored, and one about an incarnation not met yet too: the prober will say it again.
func (s *state) observe(o *Observation, now instant) {
	s.advance(now)
	b := s.backends[o.Incarnation]
	if b == nil || o.Seq <= b.seen.Seq {
		return
	}
	last := b.seen
	seen := *o
	if o.Seq <= b.stale {
		seen.Version = last.Version
	}
	b.seen = seen
	if o.Health != Healthy {
		b.outage = o.Seq
	}
	b.reload(b.version())
	if o.Capacity == 0 {
		b.seen.Capacity = last.Capacity
	}
	if b.seen.tellsMoreThan(&last) {
		s.changed, s.unsettled, s.freed = true, true, true
	}
	b.keepTime(now)
	b.guess(o.EngineTotal)
	b.capacity = b.effectiveCapacity()
	s.refresh(b)
	s.reviewSettling(now)
}

// tellsMoreThan reports whether something may follow from o that did not follow from the observation
// before; that nothing is known is something too, once it was looked at.
func (o *Observation) tellsMoreThan(last *Observation) bool {
	return last.Seq == 0 || last.Health != o.Health || last.Reason != o.Reason || last.Version != o.Version || last.Capacity != o.Capacity
}

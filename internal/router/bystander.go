package router

import "time"

// This file answers those who stand between a client and an engine and know neither epoch nor
// generation: the transparent proxy.

// Standing is what a request that names neither epoch nor generation is taken under.
type Standing struct {
	Epoch Epoch
	// Generation is the lowest that the sender is served with; 0 for an unknown sender, whose
	// requests are refused anyway.
	Generation int64
}

// Standing returns the pool's epoch and the sender's generation as they are now.
func (t *Table) Standing(sender SenderName) Standing {
	t.mu.Lock()
	defer t.mu.Unlock()
	out := Standing{Epoch: t.state.epoch}
	if v := t.state.senders[sender]; v != nil && v.declared {
		out.Generation = v.MinGeneration
	}
	return out
}

// Prospect says whether a request that gets no lease now is worth holding.
type Prospect uint8

// The prospects. The zero value is the hopeless one.
const (
	// ProspectNone: somebody has to repair something first.
	ProspectNone Prospect = iota
	// ProspectPassing: what is in the way ends by itself or by its owner's next step: leasing is held,
	// the sender fenced, or a backend paused, updated, drained, settling or about to be confirmed.
	ProspectPassing
)

// Prospect says what a waiting request of the sender may hope for. A router that may not grant has
// nothing to offer: another one has.
func (t *Table) Prospect(sender SenderName, now time.Time) Prospect {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.state
	if !s.mayGrant(t.at(now)) {
		return ProspectNone
	}
	if v := s.senders[sender]; s.leasing == LeasingHeld || v != nil && v.Access == AccessFenced {
		return ProspectPassing
	}
	for _, b := range s.backends {
		if b.passing() || b.closedFor(s.published, s.target) == "" {
			return ProspectPassing
		}
	}
	return ProspectNone
}

// passing reports whether what keeps the backend from serving ends without a repair.
func (b *backend) passing() bool {
	switch {
	case b.retired, b.process == processEnded, b.Excluded != "", b.isolation != notIsolated:
		return false
	case b.Engine != EngineRunning, b.Drain != NotDraining:
		return true
	}
	// A healthy one is kept out by its version, which a rollout changes, by what is held there, which a
	// proof clears, or by an unknown capacity.
	switch b.seen.Health {
	case HealthUnknown, SuspectedPaused:
		return true
	case Healthy:
		return b.capacity > 0
	case Unhealthy, Refused:
	}
	return false
}

// Anyone names the admissible backend that turn falls on, for a call that generates nothing and
// needs no lease. Refusal: NoBackend.
func (t *Table) Anyone(turn uint64) (BackendName, string, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := uint64(len(t.state.loads))
	if n == 0 {
		return "", "", refuse(ReasonNoBackend, "", "no backend is admissible now: see the pool's status for the reason of each")
	}
	b := t.state.loads[turn%n].at
	return b.Name, b.URL, nil
}

// Reloaded takes the word of somebody who had an engine load weights: it runs version v from now on,
// and every lease there has lived across the change. Empty: what it runs is not known until the
// prober has read it anew. A probe that is under way may have read the version of before; what it
// says of that is not believed.
func (t *Table) Reloaded(inc Incarnation, v Version, now time.Time) {
	s, at := t.enter(now)
	defer t.leave(at)
	s.advance(at)
	b := s.backends[inc]
	if b == nil {
		return
	}
	// What the operator vouched for before is over too.
	b.seen.Version, b.stale, b.outage = v, b.seen.Seq+1, b.seen.Seq
	b.reload(v)
	s.changed, s.unsettled, s.freed = true, true, true
	s.refresh(b)
	s.reviewSettling(at)
}

// ConnectionRefused takes the word of somebody who could not connect to an incarnation: it gets no
// leases until the prober's next observation, and its version has to be read anew (R9): what was read by
// a probe that is under way, or known to whoever vouched until then, is of before. What is counted there
// stays counted, since a refused connection proves nothing. The prober is to be told too, by the caller
// and thereafter: it may believe for longer that nothing has happened.
func (t *Table) ConnectionRefused(inc Incarnation, now time.Time) {
	s, at := t.enter(now)
	defer t.leave(at)
	s.advance(at)
	b := s.backends[inc]
	if b == nil {
		return
	}
	b.seen.Version, b.stale, b.outage = "", b.seen.Seq+1, b.seen.Seq+1
	if b.seen.Health != Healthy {
		return
	}
	b.seen.Health, b.seen.Reason = Refused, "ConnectionRefused"
	s.changed, s.unsettled, s.freed = true, true, true // those at home there may go elsewhere
	s.refresh(b)
	s.reviewSettling(at)
}

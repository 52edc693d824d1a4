package router

import (
	"cmp"
	"maps"
	"slices"
	"time"
)

func (s *state) snapshot(began time.Time, now instant) Snapshot {
	out := Snapshot{
		Pool: s.pool, Epoch: s.epoch, Term: s.term, Leasing: s.leasing, Published: s.published, Target: s.target,
		Failure: s.failure.open(began), Sessions: len(s.sessions), Requests: len(s.leases), Waiting: s.queue.n, Queues: s.queues(now), Uncertain: len(s.uncertain),
		Totals: s.totals,
	}
	out.Totals.Released = maps.Clone(s.totals.Released)
	out.Totals.Refused = maps.Clone(s.totals.Refused)
	out.Totals.Waits = maps.Clone(s.totals.Waits)
	unknown := false
	for _, b := range s.backends {
		out.Backends = append(out.Backends, s.snapshotOf(b))
		unknown = unknown || b.settling.unknown
	}
	slices.SortFunc(out.Backends, compareBackends)
	for _, v := range s.senders {
		out.Senders = append(out.Senders, SenderSnapshot{
			Name: v.Name, Access: v.Access, MinGeneration: v.MinGeneration, Counted: v.counted,
			Fenced: v.Access == AccessFenced && v.counted == 0 && !unknown,
		})
	}
	slices.SortFunc(out.Senders, func(a, b SenderSnapshot) int { return cmp.Compare(a.Name, b.Name) })
	return out
}

// compareBackends: current members first, then by name and incarnation.
func compareBackends(a, b BackendSnapshot) int {
	return cmp.Or(lastRetired(a)-lastRetired(b), cmp.Compare(a.Name, b.Name), cmp.Compare(a.Incarnation, b.Incarnation))
}

func lastRetired(b BackendSnapshot) int {
	if b.Retired {
		return 1
	}
	return 0
}

func (s *state) snapshotOf(b *backend) BackendSnapshot {
	reason := b.closedFor(s.published, s.target)
	if reason == "" && b.Drain != NotDraining {
		reason = "Draining"
	}
	return BackendSnapshot{
		Name: b.Name, Incarnation: b.Incarnation, URL: b.URL, Retired: b.retired, Admissible: reason == "", Reason: reason,
		Health: b.seen.Health, Drain: b.Drain, Engine: b.Engine, Capacity: b.capacity, Outstanding: b.outstanding,
		Held: b.heldExecutions, Sessions: b.sessions, Pinned: b.pinned, Estimate: b.estimate, UnknownLoad: b.settling.unknown,
		Settling: b.settling.why != settledCause, Isolated: b.isolation != notIsolated,
		IsolationRecorded: b.isolation == isolatedRecorded, Drained: b.drained(), Version: b.version(), Excluded: b.Excluded,
	}
}

func (f *failure) open(began time.Time) *Failure {
	if f == nil {
		return nil
	}
	out := f.durable
	if f.lease != nil {
		out = Failure{
			Request: f.lease.id, Session: f.lease.who.session, Backend: f.lease.at.Name,
			Incarnation: f.lease.at.Incarnation, Time: began.Add(time.Duration(f.at)),
		}
	}
	out.Recorded = f.recorded
	return &out
}

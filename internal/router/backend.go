package router

// load is what placement compares of an admissible backend, kept apart in one slice so that
// a choice among a thousand backends reads memory in order. It mirrors the ledger in
// backend; only ledger.go writes either.
type load struct {
	outstanding int64
	capacity    int64
	sessions    int64
	lastChosen  int64
	at          *backend
}

// backend is one incarnation: a current member of the fleet, or a retired one with something
// still counted or resident.
type backend struct {
	Member
	retired bool
	// process says whether the engine process is known to have ended, and past whether all that earlier
	// terms left on it is.
	process process
	past    past
	// slot is the index in state.loads, or -1 while no new session may come.
	slot int
	// rank is where it is in state.ranking; nowhere while slot is -1.
	rank rank

	// nameHash places the backend for ConsistentHash; by name, so that a new incarnation
	// draws the sessions of the one that it follows.
	nameHash uint64

	seen Observation
	// outage is the Seq of the last observation that found the engine wanting.
	outage uint64
	// stale is the latest observation that may have read the version before a reload.
	stale uint64
	// reported is the last version that the engine gave, outages notwithstanding.
	reported Version
	// span says whether that has changed since the table met the backend.
	span       versionSpan
	capacity   int64
	lastChosen int64

	outstanding    int64
	heldExecutions int64
	// estimate is what the engine seems to run beyond outstanding, while load is unknown.
	estimate int64
	sessions int64
	// served is how many output tokens clients reported of executions here, never less than the
	// others' mean when it began to take sessions.
	served int64
	// pinned is the part of sessions that are of pinned senders.
	pinned int64
	active list[lease]
	held   list[lease]

	settling  settling
	isolation isolation
	running   stopwatch
}

// process is what is known of an incarnation's engine process.
type process uint8

const (
	processRuns process = iota
	// processEnded is for good: an incarnation has one life.
	processEnded
)

// isolation says whether an execution that could not be made certain keeps leases away.
type isolation uint8

const (
	// notIsolated serves.
	notIsolated isolation = iota
	// isolatedUnrecorded: decided here, not yet in status.
	isolatedUnrecorded
	// isolatedRecorded: in status.
	isolatedRecorded
)

func newBackend(m Member, now instant) *backend {
	b := &backend{Member: m, slot: -1, process: processRuns, past: pastOpen, nameHash: fnv(string(m.Name))}
	b.active.link, b.held.link = leaseLinks, leaseLinks
	b.running.set(m.Engine == EngineRunning, now)
	b.capacity = b.effectiveCapacity()
	return b
}

// effectiveCapacity: the spec's or annotation's figure wins, then the engine's, then the
// fallback; 0 is unknown.
func (b *backend) effectiveCapacity() int64 {
	switch {
	case b.Capacity > 0:
		return b.Capacity
	case b.seen.Capacity > 0:
		return b.seen.Capacity
	default:
		return b.FallbackCapacity
	}
}

// closedFor is why the backend may not serve even those at home; empty: it may.
func (b *backend) closedFor(published, target Version) string {
	switch {
	case b.retired:
		return "Retired"
	case b.process == processEnded:
		return "ProcessEnded"
	case b.Excluded != "":
		return b.Excluded
	case b.Drain == DrainMove || b.Drain == DrainAbort:
		return "Draining"
	}
	return b.unfitFor(published, target)
}

// notProbed is why a backend is closed of whose health nothing is known.
const notProbed = "NotProbed"

// unfitFor is why the engine, or what is held on it, keeps leases away; empty: nothing does.
func (b *backend) unfitFor(published, target Version) string {
	switch {
	case b.Engine != EngineRunning:
		return "Engine" + string(b.Engine)
	case b.seen.Health == HealthUnknown:
		return notProbed
	case b.seen.Health != Healthy:
		return string(b.seen.Health)
	case b.capacity <= 0:
		return "CapacityUnknown"
	case b.isolation != notIsolated:
		return "Isolated"
	case b.settling.why != settledCause:
		return "Settling"
	}
	return versionReason(b.version(), published, target)
}

// version is the version that the engine is confirmed to have; empty: none. A confirmation does not
// outlive an outage (R9), whoever gave it.
func (b *backend) version() Version {
	if b.Vouched != "" && b.VouchedAt > b.outage {
		return b.Vouched
	}
	return b.seen.Version
}

// versionReason applies R9: with a version published, only the confirmed ones serve.
func versionReason(confirmed, published, target Version) string {
	switch {
	case published == "" || confirmed == published || target != "" && confirmed == target:
		return ""
	case confirmed == "":
		return "VersionUnconfirmed"
	default:
		return "VersionStale"
	}
}

// generates reports whether the engine makes progress as far as anybody knows: neither we nor
// someone else has paused it, and its weights are not being replaced.
func (b *backend) generates() bool {
	return b.Engine == EngineRunning && b.seen.Health != SuspectedPaused
}

// keepTime lets the clock of certainty run while the engine does. Nobody pauses for us what has left
// the fleet: there certainty must end.
func (b *backend) keepTime(now instant) { b.running.set(b.retired || b.generates(), now) }

// drained: nothing counted, no unknown load; with Keep, nobody at home either, since those
// at home come back for their next turn.
func (b *backend) drained() bool {
	return b.Drain != NotDraining && b.outstanding == 0 && !b.settling.unknown &&
		(b.Drain != DrainKeep || b.sessions == 0) && (b.Drain != DrainPinned || b.pinned == 0)
}

// unsee forgets what was seen of an incarnation that comes back to the fleet: nobody has looked at it
// meanwhile, so that its health and its version are to be read anew (R9).
func (b *backend) unsee() {
	b.outage = b.seen.Seq
	b.seen = Observation{Incarnation: b.Incarnation, Seq: b.seen.Seq, Capacity: b.seen.Capacity}
}

// reload notes the version that the engine reports; a new one changed the weights under every lease
// there, whether or not a client still answers for it (R9). The first one that is seen did so under
// those that an earlier term granted on another.
func (b *backend) reload(v Version) {
	if v == "" || v == b.reported {
		return
	}
	if b.reported != "" {
		b.span = spanMixed
	}
	for _, leases := range []*list[lease]{&b.active, &b.held} {
		for l := range leases.all {
			if b.reported != "" || l.version != "" && l.version != v {
				l.span = spanMixed
			}
		}
	}
	b.reported = v
}

// spanSince says whether a lease that an earlier term granted on version v has seen other weights here,
// as far as this term knows.
func (b *backend) spanSince(v Version) versionSpan {
	if v != "" && b.reported != "" && v != b.reported {
		return spanMixed
	}
	return b.span
}

// guess sets the estimate from the engine's own total (negative: not read). It matters only
// while load is unknown; placement weighs it, the ledger never does.
func (b *backend) guess(engineTotal int64) {
	switch {
	case !b.settling.unknown:
		b.estimate = 0
	case engineTotal >= 0:
		b.estimate = max(0, engineTotal-b.outstanding)
	}
}

// entry is what placement compares of b.
func (b *backend) entry() load {
	return load{b.outstanding + b.estimate, b.capacity, b.sessions, b.lastChosen, b}
}

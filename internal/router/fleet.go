package router

// Access says whether a sender may get leases.
type Access string

// The values of spec.senders[].access.
const (
	// AccessOpen grants.
	AccessOpen Access = "Open"
	// AccessFenced grants nothing; clients wait or are told so.
	AccessFenced Access = "Fenced"
)

// Sender is one class of clients as the spec has it.
type Sender struct {
	Name   SenderName
	Access Access
	// MinGeneration is the lowest generation served; lower ones are refused for good.
	MinGeneration int64
	// Subjects are the only callers that may use it; none: everybody who may take leases.
	Subjects []Subject
	// Versions says what a change of weights does to its sessions.
	Versions VersionPolicy
}

// VersionPolicy says what a change of weights does to a sender's sessions.
type VersionPolicy string

// The values of spec.senders[].versionPolicy. The zero value is VersionLatest.
const (
	// VersionLatest: they go over to the new version at their next turn.
	VersionLatest VersionPolicy = ""
	// VersionPinned: they stay on theirs, within a bound that others keep.
	VersionPinned VersionPolicy = "Pinned"
)

// Pins says whether sessions of pinned senders may begin.
type Pins string

// The values of Fleet.Pins. The zero value is PinsOpen.
const (
	// PinsOpen: they may.
	PinsOpen Pins = ""
	// PinsEnding: none that the router does not know; those that it knows are to end.
	PinsEnding Pins = "Ending"
)

// Drain says whether a backend is being emptied, and what its sessions do meanwhile.
type Drain string

// The ways a backend drains. The zero value is NotDraining.
const (
	// NotDraining serves as usual.
	NotDraining Drain = ""
	// DrainMove takes nothing new; sessions move at their next turn.
	DrainMove Drain = "Move"
	// DrainKeep takes no new session; those at home stay until they end.
	DrainKeep Drain = "Keep"
	// DrainPinned takes no new session; those of pinned senders stay until they end, the others move at
	// their next turn.
	DrainPinned Drain = "Pinned"
	// DrainAbort is DrainMove past its deadline: what is left is aborted on the engine.
	DrainAbort Drain = "Abort"
)

// EngineMode says what the operator itself has done to a backend's engine.
type EngineMode string

// The engine modes. The zero value is EngineRunning.
const (
	// EngineRunning generates.
	EngineRunning EngineMode = ""
	// EnginePaused was paused by the operator.
	EnginePaused EngineMode = "Paused"
	// EngineUpdating is having its weights replaced by the operator.
	EngineUpdating EngineMode = "Updating"
)

// Load says what is known of an incarnation's load when the router first meets it.
type Load string

// The kinds of load at first sight. The zero value is LoadNone.
const (
	// LoadNone: the incarnation began after this term did, so nothing can run on it.
	LoadNone Load = ""
	// LoadUnknown: an earlier term or another pool may have left executions there (R11).
	LoadUnknown Load = "Unknown"
)

// Member is one incarnation of the pool as the controller sees it.
type Member struct {
	Name        BackendName
	Incarnation Incarnation
	// URL is the engine's base URL, without a slash at its end.
	URL string
	// Capacity in executions as the spec or an annotation fixes it; 0: the engine's own.
	Capacity int64
	// FallbackCapacity is used while the engine's own is not known; 0: none.
	FallbackCapacity int64
	Drain            Drain
	Engine           EngineMode
	// Load matters only when the incarnation is met for the first time.
	Load Load
	// Vouched is the version that the controller knows it to have, whatever the prober says: it has read
	// it itself since it changed it, or the trainer's word stands for it. Empty: only the prober's word
	// counts. It holds until the engine is next found wanting after VouchedAt.
	Vouched Version
	// VouchedAt is the Seq of the latest observation that the controller knew of when it vouched.
	VouchedAt uint64
	// Excluded, if not empty, is the reason why the controller keeps it from serving
	// (for example PodNotReady or BackendConflict).
	Excluded string
}

// Fleet is all that a pool's spec and the cluster say to the router, handed over whole: what
// is not in it is gone from the spec, and an incarnation not in it is retired (it gets no
// lease, and what it runs stays counted until known to be gone).
type Fleet struct {
	Epoch   Epoch
	Leasing Leasing
	Config  Config
	Senders []Sender
	Members []Member
	// Published is the version every lease promises; empty: versions are not looked at.
	Published Version
	// Target is a second version admissible during a rolling rollout; empty: none. Sessions without a
	// home prefer backends on it that have room.
	Target Version
	// Pins says whether sessions of pinned senders may begin.
	Pins Pins
}

// Health is the prober's verdict on an incarnation.
type Health string

// The verdicts. The zero value is HealthUnknown: not admissible.
const (
	// HealthUnknown: not probed yet.
	HealthUnknown Health = ""
	// Healthy answers.
	Healthy Health = "Healthy"
	// Unhealthy has spent its failures or its budget.
	Unhealthy Health = "Unhealthy"
	// Refused its last connection: no new leases until it answers.
	Refused Health = "Refused"
	// SuspectedPaused: someone else seems to have paused the engine (R10).
	SuspectedPaused Health = "SuspectedPaused"
)

// Observation is what the prober learnt of one incarnation.
type Observation struct {
	Incarnation Incarnation
	// Seq grows with every observation of the incarnation; a lower one is ignored.
	Seq    uint64
	Health Health
	// Capacity in executions as the engine says; 0: it did not say, keep what was known.
	Capacity int64
	// Version the engine reports; empty: not confirmed since its last outage.
	Version Version
	// EngineTotal is running plus waiting on the engine, an estimate for placement while
	// its load is unknown; negative: not read.
	EngineTotal int64
	// Reason is a stable word for people, kept for the live view.
	Reason string
}

// RankLoad is one data-parallel rank of a load snapshot (GET /v1/loads).
type RankLoad struct {
	Rank int
	// Clock is the snapshot's own time by the engine's clock, in seconds.
	Clock float64
	// Total is running + waiting + paused + retracted.
	Total int64
}

// Chore is what the router needs asked of one engine (design 5.3).
type Chore struct {
	Incarnation Incarnation
	URL         string
	// Abort lists rids to abort; empty: none.
	Abort []RID
	// ReadLoads asks for a load snapshot, to be reported with Stamp.
	ReadLoads bool
	// Stamp names the state of settling that the chore belongs to; an answer under an
	// older stamp changes nothing.
	Stamp uint64
}

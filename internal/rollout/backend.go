package rollout

import "time"

// Contact says whether an engine can be spoken to.
type Contact string

const (
	// Reachable: its last call or probe was answered, or it was paused by us and nobody has been
	// refused since.
	Reachable Contact = "Reachable"
	// Unreachable: unhealthy, refused, not probed yet, or its process has ended.
	Unreachable Contact = ""
)

// Freshness says whether a report can still be believed.
type Freshness string

const (
	// Stale: never read, or an outage, a restart or a call that may change the weights came after.
	Stale Freshness = ""
	// Fresh: read since.
	Fresh Freshness = "Fresh"
)

// Report is the version that an engine says it has.
type Report struct {
	Version   Version
	Freshness Freshness
	// At is when it was read.
	At time.Time
}

// Pause says who has paused an engine, and whether that is done.
type Pause string

const (
	// NotPaused: it generates as far as anybody knows.
	NotPaused Pause = ""
	// PauseBegun: we have written that we pause it; whether it heard us is not known.
	PauseBegun Pause = "Begun"
	// PausedByUs: it has answered our pause.
	PausedByUs Pause = "Ours"
	// PausedByOthers: it seems paused, and not by us.
	PausedByOthers Pause = "Others"
)

// ours reports whether the pause is ours to end.
func (p Pause) ours() bool { return p == PauseBegun || p == PausedByUs }

// Load says whether what runs on an engine is known.
type Load string

const (
	// LoadKnown: everything that can run there is counted.
	LoadKnown Load = ""
	// LoadUnknown: executions of earlier terms may run there; unknown is never idle.
	LoadUnknown Load = "Unknown"
)

// Station says whether a backend would take leases if versions and rollouts did not matter.
type Station string

const (
	// InService: it would. It is asked for its version before the pool publishes it.
	InService Station = ""
	// OutOfService: the spec drains it, its pod ends, or something else keeps it away. It is updated
	// all the same, since taking it costs the pool nothing, and nobody waits for it.
	OutOfService Station = "OutOfService"
)

// Door says whether the router may grant leases at a backend, by its own state and without Ask.Told,
// when Backend.Counted was read.
type Door string

const (
	// DoorOpen: it does.
	DoorOpen Door = "Open"
	// DoorClosed: it does not, and may from one moment to the next: it is not healthy, or its version
	// not confirmed.
	DoorClosed Door = ""
	// DoorShut: it cannot before it is told something else: the backend was told to drain and its
	// sessions to move, its engine to be paused or updating, or it is excluded.
	DoorShut Door = "Shut"
)

// Backend is one incarnation of the pool, as seen now.
type Backend struct {
	Name        string
	Incarnation string
	Contact     Contact
	Station     Station
	// Report is the newest: the prober's if it is confirmed and later than our last call that may
	// have changed the weights, else what Verify read.
	Report Report
	// Declared is the version that the trainer's word stands for on this incarnation, because it was
	// there through the whole fence or hold; empty: none. A fact of the status.
	Declared Version
	// Begun is the version of an update that was begun and whose answer is not known; empty: there is
	// none. A fact: it is written before StepUpdate and taken back after its answer, yes or no. A call
	// that timed out, or whose caller died, may still change the weights.
	Begun Version
	// Pause other than PausedByOthers is a fact: it is written before StepPause, and taken back after
	// StepContinue is answered.
	Pause Pause
	// PausedHow is the mode of our pause, a fact too. PausedAt is when it was last answered; neither
	// is looked at unless it is ours.
	PausedHow PauseMode
	PausedAt  time.Time
	Door      Door
	// Told is how the router was last told that the rollout drains it; NotDraining after a restart.
	Told Drain
	// Counted is how many executions the router counts there.
	Counted int64
	Load    Load
	// Pinned is how many sessions of pinned senders live there.
	Pinned int64
	// Call is what we have asked the engine and that it has not answered; NoStep: nothing.
	Call StepKind
	// Failure is the last one; it counts while it is about the version that the plan is after.
	Failure Failure
	// Was is the activity in the last status, for events. No decision looks at it.
	Was Activity
}

// Failure is what went wrong with an engine, in a row.
type Failure struct {
	// Version is what it was to be brought to.
	Version Version
	// Message is the engine's own, bounded.
	Message string
	// Count is how often in a row; 0: nothing went wrong.
	Count int
	// RetryAt is when to ask again.
	RetryAt time.Time
}

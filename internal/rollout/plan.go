package rollout

import "time"

// Leases says whom the router may grant leases while the rollout runs. Spec.leasing and fences come
// on top of it.
type Leases string

const (
	// LeasesOpen: whom it likes.
	LeasesOpen Leases = ""
	// LeasesEndingPins: all but sessions of pinned senders that it does not know: those that it knows
	// are to end.
	LeasesEndingPins Leases = "EndingPins"
	// LeasesStopped: nobody.
	LeasesStopped Leases = "Stopped"
)

// Activity is what a backend is doing in a rollout.
type Activity string

const (
	// Serving: on a version that the pool admits, or waiting for its turn.
	Serving Activity = "Serving"
	// Draining: it takes no new session until nothing is counted there.
	Draining Activity = "Draining"
	// Pausing: it is being paused, or paused and waiting for what it aborted to be released.
	Pausing Activity = "Pausing"
	// Updating: its weights are being changed.
	Updating Activity = "Updating"
	// Verifying: its version is read again, or it was and the pool has not published it yet.
	Verifying Activity = "Verifying"
	// Resuming: it has its version and is about to generate again.
	Resuming Activity = "Resuming"
	// Failed: it could not be brought to its version and is left out until the next attempt.
	Failed Activity = "Failed"
	// Absent: it cannot be spoken to.
	Absent Activity = "Absent"
)

// Engine is what the router must be told of an engine.
type Engine string

const (
	// EngineRunning generates.
	EngineRunning Engine = ""
	// EnginePaused is paused by us, or about to be.
	EnginePaused Engine = "Paused"
	// EngineUpdating has its weights changed, or is about to, or has not been read since: what the
	// router knew of its version does not hold. Before it is told EngineRunning again, it must have
	// been told so, or what Verify read.
	EngineUpdating Engine = "Updating"
)

// Drain is how the rollout drains a backend; a drain that the spec asks comes on top of it.
type Drain string

const (
	// NotDraining takes sessions.
	NotDraining Drain = ""
	// DrainPinned takes no session; those of pinned senders stay, the others move.
	DrainPinned Drain = "Pinned"
	// DrainMove takes no session, and those that live there move at their next turn.
	DrainMove Drain = "Move"
)

// StepKind is a call to an engine.
type StepKind string

const (
	// NoStep: nothing to ask.
	NoStep StepKind = ""
	// StepPause pauses it in Step.Pause's mode. That we do is written in the status first.
	StepPause StepKind = "Pause"
	// StepRepause continues and pauses again: requests that came after the pause wait in the engine's
	// front, where no abort reaches them.
	StepRepause StepKind = "Repause"
	// StepUpdate loads the weights of Step.Version, and flushes the cache as Step.Flush says. An
	// answer that it was not done is a failure.
	StepUpdate StepKind = "Update"
	// StepStamp has the engine report Step.Version, and aborts nothing.
	StepStamp StepKind = "Stamp"
	// StepVerify reads the version.
	StepVerify StepKind = "Verify"
	// StepContinue lets it generate. That it is not ours any more is written in the status after.
	StepContinue StepKind = "Continue"
)

// PauseMode is how an engine is paused.
type PauseMode string

// The modes of a pause, by the engine's names.
const (
	PauseAbort   PauseMode = "abort"
	PauseRetract PauseMode = "retract"
	PauseInPlace PauseMode = "in_place"
)

// Flush says whether an update empties the engine's prefix cache.
type Flush string

const (
	// KeepCache leaves it: something may run.
	KeepCache Flush = ""
	// FlushIdle empties it: the engine is known idle.
	FlushIdle Flush = "Idle"
)

// Step is the next call to an engine. It may be asked again after a crash without harm.
type Step struct {
	Kind    StepKind
	Version Version
	Pause   PauseMode
	Flush   Flush
}

// BackendPlan is what is to be done about one backend.
type BackendPlan struct {
	Name        string
	Incarnation string
	Activity    Activity
	Engine      Engine
	Drain       Drain
	// Excluded is why the router must keep it away although its version would do; empty: it need not.
	Excluded string
	Step     Step
	// Message says for a person why it is not serving; empty while it is.
	Message string
}

// Reason says why a rollout has not converged, or that it has.
type Reason string

const (
	// Converged: every backend is on the published version, which is the target.
	Converged Reason = "Converged"
	// CatchingUp: the target is published, and some backends are not on it yet.
	CatchingUp Reason = "CatchingUp"
	// Unasked: the spec names no version.
	Unasked Reason = "Unasked"
	// WaitingForPins: sessions of pinned senders hold engines on the published version.
	WaitingForPins Reason = "WaitingForPins"
	// InProgress: steps are being taken.
	InProgress Reason = "InProgress"
	// BackendsFailing: all that is left are backends that fail or cannot be spoken to.
	BackendsFailing Reason = "BackendsFailing"
	// DeadlineExceeded: the deadline has passed without enough backends.
	DeadlineExceeded Reason = "DeadlineExceeded"
	// EnginesHeld: spec.engineMode keeps the engines paused with something running, which is in the way.
	EnginesHeld Reason = "EnginesHeld"
)

// Event is one change worth telling, once the plan that has it was handed to the router.
type Event struct {
	// Backend is empty for the pool.
	Backend string
	// Kind is a stable CamelCase word.
	Kind    string
	Message string
}

// Plan is all that a rollout wants done now.
type Plan struct {
	// Leases, Published and Second go to the router together with Backends. Published is written in
	// the status first, if it is not what Ask had: that is the publication.
	Leases    Leases
	Published Version
	// Second is the other admissible version while Rolling; empty: none. New sessions prefer the
	// target.
	Second Version
	// Goal is the version that the backends are brought to: the target, or what is published once the
	// target is given up. Failures of their steps are failures to come to it.
	Goal Version
	// Backends has one entry for each of the input, in its order.
	Backends []BackendPlan
	// Ready of Total backends are on the target.
	Ready  int
	Total  int
	Reason Reason
	// Message says the reason for a person; it stays the same while the reason does.
	Message string
	// Again is when to look although nothing happens; zero: never.
	Again  time.Time
	Events []Event
}

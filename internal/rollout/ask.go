package rollout

import "time"

// Version names weights. It is opaque: two versions are the same or not.
type Version string

// Source says who changes the weights.
type Source string

const (
	// External: the trainer has pushed the weights itself before it asks for the version.
	External Source = "External"
	// Disk: the engines are told to load them from a path.
	Disk Source = "Disk"
)

// Strategy says how a Disk rollout goes about it. With External it is not looked at.
type Strategy string

const (
	// AllAtOnce stops the pool, updates every engine, publishes and lets the pool go on.
	AllAtOnce Strategy = "AllAtOnce"
	// Rolling updates drained backends in waves while the others serve.
	Rolling Strategy = "Rolling"
	// InPlace updates every engine under its running requests.
	InPlace Strategy = "InPlace"
)

// Clearing says what AllAtOnce does to what runs. Rolling always drains, InPlace always freezes.
type Clearing string

const (
	// ClearDrain lets it end.
	ClearDrain Clearing = "Drain"
	// ClearAbort aborts it.
	ClearAbort Clearing = "Abort"
	// ClearRetract puts it back into the engine's queue; it goes on with the new weights.
	ClearRetract Clearing = "Retract"
	// ClearFreeze stops it where it is; it goes on with the new weights.
	ClearFreeze Clearing = "InPlace"
)

// empties reports whether nothing of before is left once an engine is clear.
func (c Clearing) empties() bool { return c == ClearDrain || c == ClearAbort }

// Verification says what is believed of an External push.
type Verification string

const (
	// VerifyEngine believes the version that the engine reports.
	VerifyEngine Verification = "Engine"
	// VerifyDeclared also believes the trainer, for the incarnations with Backend.Declared.
	VerifyDeclared Verification = "Declared"
)

// Stamping says whether the version is written into engines whose weights the trainer has pushed.
type Stamping string

const (
	// StampDisabled leaves what the engine reports. It is the meaning of an empty value.
	StampDisabled Stamping = "Disabled"
	// StampEnabled has the engines with Backend.Declared report the version.
	StampEnabled Stamping = "Enabled"
)

// OnFailure says what backends that cannot be brought to the version do to the rollout.
type OnFailure string

const (
	// Hold keeps the pool on its published version unless all succeed. After the deadline the
	// engines that were updated go back to it (Disk only, and only if there is one).
	Hold OnFailure = "Hold"
	// Proceed publishes with MinReadyPercent of them, at the latest when nothing else is to be
	// waited for, and leaves the others out until they have come after.
	Proceed OnFailure = "Proceed"
)

// EngineMode is what the spec wants of engines beside the rollout.
type EngineMode string

const (
	// EnginesRun: the engines are to generate.
	EnginesRun EngineMode = ""
	// EnginesPaused: the spec wants them paused; a rollout then continues none.
	EnginesPaused EngineMode = "Paused"
)

// Ask is what is wanted of the pool. All of it comes from the spec, but for Told, and for
// Published, PublishedAt and Start, which are facts of the status.
type Ask struct {
	// Target is the version that the spec names; empty: versions are not looked at, and there is no
	// plan to make.
	Target Version
	// Published is the version that the pool promises; empty: none yet.
	Published Version
	// Start is when Target was first seen in the spec; deadlines count from it.
	Start time.Time
	// PublishedAt is when Published was; zero: not known.
	PublishedAt time.Time
	// Told is what the router was last told by a rollout, when Backend.Counted was read; LeasesOpen
	// after a restart.
	Told Leases

	Source       Source
	Strategy     Strategy
	Clearing     Clearing
	Verification Verification
	Stamping     Stamping
	// MaxUnavailable is how many backends Rolling may take away at once; below 1 it counts as 1.
	MaxUnavailable int
	OnFailure      OnFailure
	// MinReadyPercent is the part of the backends that Proceed needs, from 1 to 100.
	MinReadyPercent int
	// Deadline is how long after Start the backends may take; 0: for ever.
	Deadline time.Duration
	// PinDeadline is how long after Start the sessions of pinned senders may hold an engine on the
	// published version.
	PinDeadline time.Duration
	// Engines is what spec.engineMode asks.
	Engines EngineMode
}

package v1alpha1

// EngineMode says whether the pool's engines generate.
//
// +kubebuilder:validation:Enum=Running;PausedAbort;PausedRetract;PausedInPlace
type EngineMode string

const (
	// EnginesRunning lets them generate: what this pool's operator paused is continued.
	EnginesRunning EngineMode = "Running"
	// EnginesPausedAbort pauses them and ends what runs; its clients are told that it was aborted.
	EnginesPausedAbort EngineMode = "PausedAbort"
	// EnginesPausedRetract pauses them and puts what runs back into the engine's queue, its cache
	// freed. It goes on with the engine.
	EnginesPausedRetract EngineMode = "PausedRetract"
	// EnginesPausedInPlace stops them where they are. What runs goes on with the engine.
	EnginesPausedInPlace EngineMode = "PausedInPlace"
)

// PauseOwner says for what this operator paused an engine.
//
// +kubebuilder:validation:Enum=EngineMode;Weights
type PauseOwner string

const (
	// PausedByEngineMode means that spec.engineMode asked for it.
	PausedByEngineMode PauseOwner = "EngineMode"
	// PausedByWeights means that a change of weights needed it.
	PausedByWeights PauseOwner = "Weights"
)

// PauseMode says what became of the requests that ran on an engine when it was paused.
//
// +kubebuilder:validation:Enum=Abort;Retract;InPlace
type PauseMode string

const (
	// PauseAbort ended them.
	PauseAbort PauseMode = "Abort"
	// PauseRetract put them back into the engine's queue.
	PauseRetract PauseMode = "Retract"
	// PauseInPlace stopped them where they were.
	PauseInPlace PauseMode = "InPlace"
)

// Finalizer is on a pool from before its operator pauses an engine until every engine that it paused
// has been continued, so that a pool which goes leaves none of them standing.
const Finalizer = "inference.berthmaster.io/engines"

// ConditionEnginesPaused is true when spec.engineMode is a paused one and every engine of the pool has
// answered that it is paused for this operator.
const ConditionEnginesPaused = "EnginesPaused"

// Reasons of EnginesPaused. Its message begins with how many engines of how many are paused.
const (
	// ReasonEnginesRunning surfaces when the engines are to run and none is paused for
	// spec.engineMode.
	ReasonEnginesRunning = "EnginesRunning"
	// ReasonPausing surfaces while an engine that is to be paused has not answered.
	ReasonPausing = "Pausing"
	// ReasonEnginesPaused surfaces when every engine has answered that it is paused.
	ReasonEnginesPaused = "EnginesPaused"
	// ReasonContinuing surfaces while an engine that was paused for spec.engineMode has not answered
	// that it goes on.
	ReasonContinuing = "Continuing"
	// ReasonEngineCallsFailed surfaces while an engine does not do what it is asked; it is asked again.
	ReasonEngineCallsFailed = "EngineCallsFailed"
	// ReasonPausedByOthers surfaces when all that is missing are engines that somebody else seems to
	// have paused, which are left alone.
	ReasonPausedByOthers = "PausedByOthers"
)

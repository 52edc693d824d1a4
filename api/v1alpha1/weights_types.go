package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// WeightVersion names weights. It is opaque: two versions are the same or not.
//
// +kubebuilder:validation:MinLength=1
// +kubebuilder:validation:MaxLength=256
// +kubebuilder:validation:Pattern=`^[!-~]([ -~]*[!-~])?$`
type WeightVersion string

// WeightsSpec says which weights the pool serves and how it comes to them. Another version while a
// change is under way supersedes it; the one of before takes it back.
//
// +kubebuilder:validation:XValidation:rule="(has(self.source) && self.source == 'Disk') == has(self.path)",message="spec.weights.path must be set with source Disk, and only then"
// +kubebuilder:validation:XValidation:rule="!has(self.verification) || !has(self.source) || self.source == 'External'",message="spec.weights.verification may be set with source External only"
// +kubebuilder:validation:XValidation:rule="!has(self.stampEngines) || !has(self.source) || self.source == 'External'",message="spec.weights.stampEngines may be set with source External only"
// +kubebuilder:validation:XValidation:rule="!has(self.strategy) || (has(self.source) && self.source == 'Disk')",message="spec.weights.strategy may be set with source Disk only"
// +kubebuilder:validation:XValidation:rule="!has(self.clearing) || (has(self.source) && self.source == 'Disk' && (!has(self.strategy) || self.strategy == 'AllAtOnce'))",message="spec.weights.clearing may be set with source Disk and strategy AllAtOnce only"
// +kubebuilder:validation:XValidation:rule="!has(self.maxUnavailable) || (has(self.strategy) && self.strategy == 'Rolling')",message="spec.weights.maxUnavailable may be set with strategy Rolling only"
// +kubebuilder:validation:XValidation:rule="!has(self.minReadyPercent) || (has(self.onFailure) && self.onFailure == 'Proceed')",message="spec.weights.minReadyPercent may be set with onFailure Proceed only"
// +kubebuilder:validation:XValidation:rule="!has(self.pinDeadlineSeconds) || (has(self.source) && self.source == 'Disk')",message="spec.weights.pinDeadlineSeconds may be set with source Disk only"
type WeightsSpec struct {
	// version is what the pool is to serve. A change begins a rollout; no backend serves under the new
	// version before it is known to have it.
	// +required
	Version WeightVersion `json:"version"`

	// epoch is the epoch of the pool for which version was written. Empty: 1. A version can only be
	// changed by a writer that names the pool's own epoch, so that one which was replaced, and does not
	// know it, cannot set an old version again. Raising spec.epoch alone leaves it as it is.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=4503599627370496
	Epoch int64 `json:"epoch,omitempty"`

	// source says who changes the weights in the engines. Empty: External.
	// +optional
	Source WeightsSource `json:"source,omitempty"`

	// path is where the engines find the weights of version, under source Disk.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	Path string `json:"path,omitempty"`

	// verification says what is believed under source External. Empty: Engine.
	// +optional
	Verification WeightsVerification `json:"verification,omitempty"`

	// stampEngines says whether version is written into the engines that the trainer has pushed to, of
	// which it is known that they were there through its whole fence or hold, so that they report it.
	// Nothing that runs is aborted. Empty: Disabled.
	// +optional
	StampEngines Stamping `json:"stampEngines,omitempty"`

	// strategy says how the engines are updated under source Disk. A pool that has published no version
	// gets its first one by AllAtOnce whatever it is. Empty: AllAtOnce.
	// +optional
	Strategy RolloutStrategy `json:"strategy,omitempty"`

	// clearing says what AllAtOnce does to what runs. Empty: Drain.
	// +optional
	Clearing Clearing `json:"clearing,omitempty"`

	// maxUnavailable is how many backends Rolling takes away at once: a number, or a percentage of the
	// pool's backends, rounded down, and at least one. Empty: 1.
	// +optional
	// +kubebuilder:validation:XValidation:rule="type(self) == int ? self >= 1 && self <= 256 : self.matches('^(100|[1-9][0-9]?)%$')",message="spec.weights.maxUnavailable must be a number from 1 to 256 or a percentage from 1% to 100%"
	MaxUnavailable *intstr.IntOrString `json:"maxUnavailable,omitempty"`

	// deadlineSeconds is how long, in seconds from status.weights.startTime, the backends may take.
	// After it onFailure decides. Empty: for ever.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=604800
	DeadlineSeconds int32 `json:"deadlineSeconds,omitempty"`

	// onFailure says what backends that do not come to version do to the pool. Empty: Hold.
	// +optional
	OnFailure FailureAction `json:"onFailure,omitempty"`

	// minReadyPercent is the part of the backends in service, in percent and rounded up, that Proceed
	// needs on version. Empty: 90.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100
	MinReadyPercent int32 `json:"minReadyPercent,omitempty"`

	// pinDeadlineSeconds is how long, in seconds from status.weights.startTime, sessions of senders
	// with versionPolicy Pinned may keep their engines from being updated. Empty: 600.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=604800
	PinDeadlineSeconds int32 `json:"pinDeadlineSeconds,omitempty"`
}

// WeightsSource says who changes the weights in the engines.
//
// +kubebuilder:validation:Enum=External;Disk
type WeightsSource string

const (
	// WeightsExternal leaves it to the trainer, which fences or holds, pushes, and then sets version.
	WeightsExternal WeightsSource = "External"
	// WeightsDisk has the operator tell the engines to load them from a path.
	WeightsDisk WeightsSource = "Disk"
)

// WeightsVerification says what is believed of a push.
//
// +kubebuilder:validation:Enum=Engine;Declared
type WeightsVerification string

const (
	// VerifyEngine believes the version that each engine reports.
	VerifyEngine WeightsVerification = "Engine"
	// VerifyDeclared also believes the trainer, for incarnations that were there and gone from by all
	// leases from before its fence or hold was complete until it set version.
	VerifyDeclared WeightsVerification = "Declared"
)

// Stamping says whether versions are written into engines.
//
// +kubebuilder:validation:Enum=Enabled;Disabled
type Stamping string

const (
	// StampEnabled writes them.
	StampEnabled Stamping = "Enabled"
	// StampDisabled leaves the engines as they are.
	StampDisabled Stamping = "Disabled"
)

// RolloutStrategy says how engines are updated.
//
// +kubebuilder:validation:Enum=AllAtOnce;Rolling;InPlace
type RolloutStrategy string

const (
	// RolloutAllAtOnce stops leases, clears and updates every engine, publishes and goes on.
	RolloutAllAtOnce RolloutStrategy = "AllAtOnce"
	// RolloutRolling updates drained backends in turn while the others serve.
	RolloutRolling RolloutStrategy = "Rolling"
	// RolloutInPlace updates every engine under its running requests, whose leases then say mixed.
	RolloutInPlace RolloutStrategy = "InPlace"
)

// Clearing says what is done to what runs before engines are updated.
//
// +kubebuilder:validation:Enum=Drain;Abort;Retract;InPlace
type Clearing string

const (
	// ClearDrain lets it end.
	ClearDrain Clearing = "Drain"
	// ClearAbort aborts it.
	ClearAbort Clearing = "Abort"
	// ClearRetract puts it back into the engine's queue. It goes on with the new weights, and its
	// leases say mixed.
	ClearRetract Clearing = "Retract"
	// ClearInPlace stops it where it is. It goes on with the new weights, and its leases say mixed.
	ClearInPlace Clearing = "InPlace"
)

// FailureAction says what backends that do not come to a version do to the pool.
//
// +kubebuilder:validation:Enum=Hold;Proceed
type FailureAction string

const (
	// FailureHold keeps the pool on the version that it has unless all backends come to the new one.
	// After the deadline engines that were updated from disk go back.
	FailureHold FailureAction = "Hold"
	// FailureProceed publishes with minReadyPercent of them, and leaves the others out until they have
	// come to it too.
	FailureProceed FailureAction = "Proceed"
)

// WeightsStatus is how far the pool is with its weights.
type WeightsStatus struct {
	// published is the version that every lease promises. A fact, changed in one step. Empty: none was
	// published, and versions are not looked at.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	Published string `json:"published,omitempty"`

	// publishedPath is where the weights of published are, if they came from a path: engines that have
	// to go back are updated from there. A fact.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	PublishedPath string `json:"publishedPath,omitempty"`

	// publishedTime is when that was published. A fact.
	// +optional
	PublishedTime *metav1.Time `json:"publishedTime,omitempty"`

	// target is the version that the spec names. A fact, with startTime.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	Target string `json:"target,omitempty"`

	// startTime is when target was first seen; deadlines count from it. A fact.
	// +optional
	StartTime *metav1.Time `json:"startTime,omitempty"`

	// quietTime is when the fence of every sender, or the hold, that stands now was complete. A fact.
	// Empty: none stands, or it is not complete.
	// +optional
	QuietTime *metav1.Time `json:"quietTime,omitempty"`

	// progress is how many of how many backends are on target.
	// +optional
	// +kubebuilder:validation:MaxLength=32
	Progress string `json:"progress,omitempty"`
}

// ConditionWeightsConverged is true when every backend is on the version that the spec names and that
// version is published.
const ConditionWeightsConverged = "WeightsConverged"

// Reasons of WeightsConverged.
const (
	// ReasonConverged surfaces when every backend is on the published version.
	ReasonConverged = "Converged"
	// ReasonVersionsNotManaged surfaces when the spec names no version.
	ReasonVersionsNotManaged = "VersionsNotManaged"
	// ReasonCatchingUp surfaces when the version is published and some backends are not on it yet.
	ReasonCatchingUp = "CatchingUp"
	// ReasonWaitingForPins surfaces while sessions of pinned senders hold engines on the version that
	// is published.
	ReasonWaitingForPins = "WaitingForPins"
	// ReasonRolloutInProgress surfaces while backends are brought to the version.
	ReasonRolloutInProgress = "RolloutInProgress"
	// ReasonBackendsFailing surfaces when all that is left are backends that do not come to the version.
	ReasonBackendsFailing = "BackendsFailing"
	// ReasonRolloutDeadlineExceeded surfaces when the deadline has passed without enough backends.
	ReasonRolloutDeadlineExceeded = "RolloutDeadlineExceeded"
	// ReasonEnginesHeld surfaces when spec.engineMode keeps engines paused with something on them that
	// is in the way.
	ReasonEnginesHeld = "EnginesHeld"
)

// VersionPolicy says what a change of weights does to a sender's sessions.
//
// +kubebuilder:validation:Enum=Latest;Pinned
type VersionPolicy string

const (
	// VersionLatest lets them go over to the new version at their next turn.
	VersionLatest VersionPolicy = "Latest"
	// VersionPinned has a rollout wait for them to end, within spec.weights.pinDeadlineSeconds.
	VersionPinned VersionPolicy = "Pinned"
)

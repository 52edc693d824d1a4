package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// InferencePoolStatus is what the operator found and did.
//
// Facts are term, lives, startSecondsHighWater, failure and, in backends, incarnation of a static
// endpoint, drainStartTime, isolationStartTime, pausedBy, pauseMode,
// updating, declaredVersion and quietSince, and those of weights that say so. The rest is a report that can be derived anew.
type InferencePoolStatus struct {
	// observedGeneration is the generation of the spec that this status describes.
	// +optional
	// +kubebuilder:validation:Minimum=0
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// term is the number under which leases are granted, raised whenever a router takes the pool
	// over. A fact. Empty: no router has had the pool yet.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Term int64 `json:"term,omitempty"`

	// router is the replica of the manager that leads the pool under term, for people who look for
	// it; clients call any replica. Empty: no router has had the pool yet.
	// +optional
	Router *RouterStatus `json:"router,omitempty"`

	// epoch is the epoch under which leases are granted.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Epoch int64 `json:"epoch,omitempty"`

	// lives is the largest life number that was ever given to a static endpoint of this pool, so
	// that none is given twice. A fact.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Lives int64 `json:"lives,omitempty"`

	// startSecondsHighWater is the largest spec.leases.startSeconds, in seconds, under which a
	// lease may have been granted: a router that takes over waits it out before it believes an
	// engine idle. A fact.
	// +optional
	// +kubebuilder:validation:Minimum=0
	StartSecondsHighWater int32 `json:"startSecondsHighWater,omitempty"`

	// failure is what failed the pool; no lease is granted until spec.epoch is above its epoch.
	// A fact. Empty: the pool has not failed in this epoch.
	// +optional
	Failure *PoolFailure `json:"failure,omitempty"`

	// summary counts the backends.
	// +optional
	Summary *PoolSummary `json:"summary,omitempty"`

	// weights is how far the pool is with its weights. Empty: versions are not looked at.
	// +optional
	Weights *WeightsStatus `json:"weights,omitempty"`

	// senders is the state of each sender of the spec.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=32
	Senders []SenderStatus `json:"senders,omitempty"`

	// backends lists at most 256 backends: those that carry facts always, then those that do not
	// serve, then the others, each part by name.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=256
	Backends []BackendStatus `json:"backends,omitempty"`

	// conditions are Ready, BackendsAvailable, Held, EnginesPaused, WeightsConverged, Draining, SendersFenced and Failed.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=16
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// RouterStatus says which replica of the manager leads a pool. It may have ended since, until
// another takes over and raises the term.
type RouterStatus struct {
	// name is the replica's host name, which in a cluster is that of its pod.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`

	// address is the host:port at which other replicas reach its lease API.
	// +optional
	// +kubebuilder:validation:MaxLength=300
	Address string `json:"address,omitempty"`
}

// PoolFailure is the execution of unknown fate that failed the pool.
type PoolFailure struct {
	// epoch is the epoch that failed.
	// +required
	// +kubebuilder:validation:Minimum=0
	Epoch int64 `json:"epoch"`

	// requestID is the request whose execution could not be proven dead.
	// +optional
	// +kubebuilder:validation:MaxLength=128
	RequestID string `json:"requestID,omitempty"`

	// sessionID is the session of the request.
	// +optional
	// +kubebuilder:validation:MaxLength=128
	SessionID string `json:"sessionID,omitempty"`

	// backend is the name of the backend it may still run on.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	Backend string `json:"backend,omitempty"`

	// incarnation is the life of the backend it may still run on.
	// +optional
	Incarnation Incarnation `json:"incarnation,omitempty"`

	// time is when the router failed the pool.
	// +required
	Time metav1.Time `json:"time"`
}

// PoolSummary counts the backends of a pool.
type PoolSummary struct {
	// ready is "serving/backends", for people.
	// +optional
	// +kubebuilder:validation:MaxLength=32
	Ready string `json:"ready,omitempty"`

	// backends is the number of backends that the spec selects.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Backends int32 `json:"backends"`

	// serving is the number of backends that take new sessions.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Serving int32 `json:"serving"`

	// draining is the number of backends that are being drained, or have been.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Draining int32 `json:"draining"`

	// capacity is the number of executions that the serving backends can run at once.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Capacity int64 `json:"capacity"`
}

// SenderStatus is the state of one sender.
type SenderStatus struct {
	// name is the sender's name.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Name string `json:"name"`

	// access is what holds now.
	// +required
	Access SenderState `json:"access"`

	// generation is the lowest generation served.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Generation int64 `json:"generation,omitempty"`
}

// SenderState says how far a sender's fence has come.
//
// +kubebuilder:validation:Enum=Open;Fencing;Fenced
type SenderState string

const (
	// SenderStateOpen means that the sender gets leases.
	SenderStateOpen SenderState = "Open"
	// SenderStateFencing means that the sender gets no leases, and something of it is or may be
	// still running.
	SenderStateFencing SenderState = "Fencing"
	// SenderStateFenced means that the sender gets no leases and nothing of it can be running.
	SenderStateFenced SenderState = "Fenced"
)

// BackendStatus is the state of one incarnation of a backend.
type BackendStatus struct {
	// name is the backend's name: of its pod, or of its endpoint.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`

	// incarnation is the life of the backend's engine process. Empty: it has not started yet, or
	// no backend has the name. For a static endpoint a fact.
	// +optional
	// +kubebuilder:validation:MaxLength=300
	Incarnation string `json:"incarnation,omitempty"`

	// url is the engine's base URL, without a slash at its end.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	URL string `json:"url,omitempty"`

	// state says what the backend is doing.
	// +required
	State BackendState `json:"state"`

	// reason says why it is not serving, or how its drain goes.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	Reason BackendReason `json:"reason,omitempty"`

	// message says the same for a person.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	Message string `json:"message,omitempty"`

	// weightVersion is the version of the weights that the engine reports.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	WeightVersion string `json:"weightVersion,omitempty"`

	// capacity is how many executions it can run at once. Empty: not known.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Capacity int64 `json:"capacity,omitempty"`

	// drainStartTime is when its drain began. A fact. Empty: it is not being drained.
	// +optional
	DrainStartTime *metav1.Time `json:"drainStartTime,omitempty"`

	// isolationStartTime is when the router isolated the incarnation, because an execution there
	// could not be proven dead. A fact. Empty: it is not isolated.
	// +optional
	IsolationStartTime *metav1.Time `json:"isolationStartTime,omitempty"`

	// pausedBy says for what this operator has paused the engine, or is about to, or has not been
	// told yet that it goes on. A fact: only such an engine is continued by it. Empty: this operator
	// has not paused it.
	// +optional
	PausedBy PauseOwner `json:"pausedBy,omitempty"`

	// pauseMode is how the engine was paused. A fact. Set with pausedBy, and only then.
	// +optional
	PauseMode PauseMode `json:"pauseMode,omitempty"`

	// updating is the version of an update of the engine's weights that was begun and whose answer is
	// not known: until it is, nobody knows which weights it has. A fact. Empty: there is none.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	Updating string `json:"updating,omitempty"`

	// declaredVersion is the version that the trainer's word stands for on this incarnation, because
	// nothing ran there from before its fence or hold was complete until it set the version. A fact.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	DeclaredVersion string `json:"declaredVersion,omitempty"`

	// quietSince is when the fence or hold that stands now was complete, if this incarnation was there
	// then. A fact.
	// +optional
	QuietSince *metav1.Time `json:"quietSince,omitempty"`

	// lastTransitionTime is when state last changed.
	// +required
	LastTransitionTime metav1.Time `json:"lastTransitionTime"`
}

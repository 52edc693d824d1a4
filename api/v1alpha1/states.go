package v1alpha1

// BackendState says what a backend is doing.
//
// +kubebuilder:validation:Enum=Pending;Serving;Unhealthy;Settling;Isolated;Draining;Drained;Pausing;Paused;Updating;Verifying;Continuing;Retired
type BackendState string

const (
	// BackendPending means that the backend cannot take leases yet, or for the moment.
	BackendPending BackendState = "Pending"
	// BackendServing means that the backend takes new sessions.
	BackendServing BackendState = "Serving"
	// BackendUnhealthy means that its engine does not answer as it should.
	BackendUnhealthy BackendState = "Unhealthy"
	// BackendSettling means that it takes no leases until executions of unknown fate are gone.
	BackendSettling BackendState = "Settling"
	// BackendIsolated means that an execution could not be proven dead, and that the incarnation
	// takes no leases until it is gone.
	BackendIsolated BackendState = "Isolated"
	// BackendDraining means that it takes no new session, and that something is or may be
	// running there.
	BackendDraining BackendState = "Draining"
	// BackendDrained means that it takes no new session and that nothing can be running there.
	BackendDrained BackendState = "Drained"
	// BackendPausing means that it takes no leases and that its engine is being paused by this
	// operator.
	BackendPausing BackendState = "Pausing"
	// BackendPaused means that the engine has answered that it is paused, for this operator.
	BackendPaused BackendState = "Paused"
	// BackendUpdating means that it takes no leases and that the weights of its engine are being
	// changed.
	BackendUpdating BackendState = "Updating"
	// BackendVerifying means that it takes no leases and that the version of its weights is being read,
	// or was and is not published yet.
	BackendVerifying BackendState = "Verifying"
	// BackendContinuing means that the engine is to go on after a pause and has not answered yet.
	BackendContinuing BackendState = "Continuing"
	// BackendRetired means that the spec does not select the incarnation any more, or that
	// its pod is no longer there, and that something is or may still be running there.
	BackendRetired BackendState = "Retired"
)

// BackendReason says why a backend is in its state.
type BackendReason string

const (
	// ReasonStarting surfaces while the engine's container has not started or the pod has no
	// address.
	ReasonStarting BackendReason = "Starting"
	// ReasonContainerNotFound surfaces when spec.backends.container, or a container that declares
	// the port, cannot be told among the pod's containers.
	ReasonContainerNotFound BackendReason = "ContainerNotFound"
	// ReasonPodNotReady surfaces when the pod's Ready condition is not true.
	ReasonPodNotReady BackendReason = "PodNotReady"
	// ReasonInvalidCapacityAnnotation surfaces when the capacity annotation of the pod is not a
	// whole number above 0.
	ReasonInvalidCapacityAnnotation BackendReason = "InvalidCapacityAnnotation"
	// ReasonInvalidURL surfaces when the address of the backend makes no usable base URL.
	ReasonInvalidURL BackendReason = "InvalidURL"
	// ReasonBackendConflict surfaces when an older pool, or another backend of the pool, has the same
	// engine, known by its host and port.
	ReasonBackendConflict BackendReason = "BackendConflict"
	// ReasonNotProbed surfaces until the first probe has answered.
	ReasonNotProbed BackendReason = "NotProbed"
	// ReasonCapacityUnknown surfaces when neither engine nor spec gives a capacity.
	ReasonCapacityUnknown BackendReason = "CapacityUnknown"
	// ReasonConnectionRefused surfaces when the engine's port refused the last connection.
	ReasonConnectionRefused BackendReason = "ConnectionRefused"
	// ReasonProbesFailed surfaces when the failure threshold or the health budget is spent.
	ReasonProbesFailed BackendReason = "ProbesFailed"
	// ReasonSuspectedPaused surfaces when the engine answers about itself but does not generate:
	// someone else paused it.
	ReasonSuspectedPaused BackendReason = "SuspectedPaused"
	// ReasonEngineMode surfaces while spec.engineMode is or was why the engine is paused.
	ReasonEngineMode BackendReason = "EngineMode"
	// ReasonWeights surfaces while a change of weights is why the backend is not serving.
	ReasonWeights BackendReason = "Weights"
	// ReasonRolloutFailed surfaces when the backend could not be brought to its version; the message has
	// the engine's words, and it is tried again.
	ReasonRolloutFailed BackendReason = "RolloutFailed"
	// ReasonEngineCallFailed surfaces when the engine did not do what this operator asked of it; the
	// message has its words, and it is asked again.
	ReasonEngineCallFailed BackendReason = "EngineCallFailed"
	// ReasonUnknownLoad surfaces while executions of an earlier term or pool may run there.
	ReasonUnknownLoad BackendReason = "UnknownLoad"
	// ReasonExecutionUncertain surfaces while executions of unknown fate are made certain.
	ReasonExecutionUncertain BackendReason = "ExecutionUncertain"
	// ReasonDrainRequested surfaces when spec.drain names the backend.
	ReasonDrainRequested BackendReason = "DrainRequested"
	// ReasonDrainAnnotation surfaces when the pod carries the drain annotation.
	ReasonDrainAnnotation BackendReason = "DrainAnnotation"
	// ReasonPodDeleted surfaces from the pod's deletionTimestamp on.
	ReasonPodDeleted BackendReason = "PodDeleted"
	// ReasonNodeCordoned surfaces while the pod's node takes no new pods and spec.backends.onCordon asks
	// for a drain then.
	ReasonNodeCordoned BackendReason = "NodeCordoned"
	// ReasonDeadlineExceeded surfaces when a drain takes longer than its deadline.
	ReasonDeadlineExceeded BackendReason = "DeadlineExceeded"
	// ReasonBackendGone surfaces when the backend that spec.drain names is not there any more and
	// nothing of it can be running.
	ReasonBackendGone BackendReason = "BackendGone"
	// ReasonBackendNotFound surfaces when spec.drain names a backend that the pool does not have.
	ReasonBackendNotFound BackendReason = "BackendNotFound"
	// ReasonPodMissing surfaces when the pod object went without a word about its containers.
	ReasonPodMissing BackendReason = "PodMissing"
	// ReasonNotSelected surfaces when the spec does not select the backend any more.
	ReasonNotSelected BackendReason = "NotSelected"
	// ReasonProcessEnded surfaces when the engine's process is known to have ended and no new one
	// has started.
	ReasonProcessEnded BackendReason = "ProcessEnded"
	// ReasonCrashLooping surfaces when the engine's process has ended and the kubelet waits before it
	// starts the next, because earlier ones did not last.
	ReasonCrashLooping BackendReason = "CrashLooping"
	// ReasonReplaced surfaces when a later incarnation of the same name has taken its place.
	ReasonReplaced BackendReason = "Replaced"
)

// Condition types of a pool. A condition counts only if its observedGeneration is at least the
// generation that the reader's own write returned.
const (
	// ConditionReady is true when leases can be granted: there is a term, the pool has not failed,
	// leasing is not held and a backend serves.
	ConditionReady = "Ready"
	// ConditionBackendsAvailable is true when at least one backend serves.
	ConditionBackendsAvailable = "BackendsAvailable"
	// ConditionHeld is true when leasing is held and nothing can be running: no execution is counted
	// on any backend, and none has unknown load.
	ConditionHeld = "Held"
	// ConditionDraining is true while a drain is going on that has not ended, and unknown when cordons
	// are to start drains and are not seen.
	ConditionDraining = "Draining"
	// ConditionSendersFenced is true when at least one sender is to be fenced and nothing of any
	// such sender can be running.
	ConditionSendersFenced = "SendersFenced"
	// ConditionFailed is true when an execution of unknown fate failed the pool.
	ConditionFailed = "Failed"
)

// Reasons of conditions.
const (
	// ReasonServing surfaces when leases are granted.
	ReasonServing = "Serving"
	// ReasonNoTerm surfaces until this router's term has been written.
	ReasonNoTerm = "NoTerm"
	// ReasonPoolFailed surfaces when the pool has failed.
	ReasonPoolFailed = "PoolFailed"
	// ReasonNoBackends surfaces when the selector matches no pod.
	ReasonNoBackends = "NoBackends"
	// ReasonNoneServing surfaces when there are backends, and none of them serves.
	ReasonNoneServing = "NoneServing"
	// ReasonAllServing surfaces when every backend serves.
	ReasonAllServing = "AllServing"
	// ReasonSomeServing surfaces when some backends serve and some do not.
	ReasonSomeServing = "SomeServing"
	// ReasonLeasingOpen surfaces when leases are granted.
	ReasonLeasingOpen = "LeasingOpen"
	// ReasonHolding surfaces while leasing is to be held and executions are counted, or the router
	// has not been told yet.
	ReasonHolding = "Holding"
	// ReasonLoadUnknown surfaces while leasing is held, nothing is counted and executions of an
	// earlier term or pool may be running.
	ReasonLoadUnknown = "LoadUnknown"
	// ReasonLeasingHeld surfaces when leasing is held; under Held, when nothing can be running.
	ReasonLeasingHeld = "LeasingHeld"
	// ReasonNotDraining surfaces when nothing is to be drained.
	ReasonNotDraining = "NotDraining"
	// ReasonDrainsInProgress surfaces while something runs or may run on a draining backend.
	ReasonDrainsInProgress = "DrainsInProgress"
	// ReasonDrainsLate surfaces when a drain is past its deadline.
	ReasonDrainsLate = "DrainsLate"
	// ReasonAllDrained surfaces when every drain has ended.
	ReasonAllDrained = "AllDrained"
	// ReasonNodesNotWatched surfaces when spec.backends.onCordon asks for drains and the manager does not
	// see which nodes are cordoned.
	ReasonNodesNotWatched = "NodesNotWatched"
	// ReasonNoneFenced surfaces when every sender is open.
	ReasonNoneFenced = "NoneFenced"
	// ReasonFencing surfaces while something of a fenced sender runs or may run.
	ReasonFencing = "Fencing"
	// ReasonFenced surfaces when nothing of any fenced sender can be running.
	ReasonFenced = "Fenced"
	// ReasonNotFailed surfaces when the pool has not failed in its epoch.
	ReasonNotFailed = "NotFailed"
	// ReasonAmbiguousExecution surfaces when an execution could not be proven dead.
	ReasonAmbiguousExecution = "AmbiguousExecution"
)

// Annotations on pods that the operator reads.
const (
	// AnnotationCapacity fixes the capacity of the pod's engine, in executions.
	AnnotationCapacity = "inference.berthmaster.io/capacity"
	// AnnotationDrain drains the pod's backend while it is present; its value is Move or Keep,
	// and empty means Move.
	AnnotationDrain = "inference.berthmaster.io/drain"
)

// AnnotationAnchor, on a pool, is the operator's own: the facts that must outlive a status that
// somebody wipes by hand. With both gone, a take-over believes that nothing ever ran.
const AnnotationAnchor = "inference.berthmaster.io/anchor"

package v1alpha1

// RoutingSpec says how a session without a home gets one.
type RoutingSpec struct {
	// policy orders the backends that may take a session. Empty: LeastOutstanding. A change moves no
	// session that has a home.
	// +optional
	Policy RoutingPolicy `json:"policy,omitempty"`

	// groupSlackPercent lets a session join the backend of its siblings, those of the same group,
	// while the load per capacity there is at most this many percent above the least. Empty or 0:
	// groups are not looked at. A change applies to the next session without a home.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000
	GroupSlackPercent int32 `json:"groupSlackPercent,omitempty"`

	// admissionPercent limits what is counted on each backend, in percent of its capacity; what has
	// no room waits for its turn, or is refused as Contended. A backend with nothing counted takes a
	// request of any size. Empty or 0: no limit. Lowering it revokes nothing.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000
	AdmissionPercent int32 `json:"admissionPercent,omitempty"`

	// affinity says how long a session keeps its home. Empty: all defaults.
	// +optional
	Affinity AffinitySpec `json:"affinity,omitzero"`
}

// RoutingPolicy orders the backends that may take a session.
//
// +kubebuilder:validation:Enum=LeastOutstanding;LeastSessions;RoundRobin;ConsistentHash
type RoutingPolicy string

const (
	// PolicyLeastOutstanding chooses the least outstanding executions per capacity, then the fewest
	// resident sessions per capacity, then the least recently chosen.
	PolicyLeastOutstanding RoutingPolicy = "LeastOutstanding"
	// PolicyLeastSessions chooses the fewest resident sessions per capacity, then as
	// PolicyLeastOutstanding does.
	PolicyLeastSessions RoutingPolicy = "LeastSessions"
	// PolicyRoundRobin chooses the least recently chosen.
	PolicyRoundRobin RoutingPolicy = "RoundRobin"
	// PolicyConsistentHash chooses by a hash of the session's id, among the backends that are not
	// much busier than the mean.
	PolicyConsistentHash RoutingPolicy = "ConsistentHash"
)

// LeasesSpec bounds the life of leases.
//
// +kubebuilder:validation:XValidation:rule="(has(self.startSeconds) ? self.startSeconds : 30) <= (has(self.ttlSeconds) ? self.ttlSeconds : 120)",message="spec.leases.startSeconds (empty: 30) may not be above ttlSeconds (empty: 120)"
// +kubebuilder:validation:XValidation:rule="(has(self.certaintySeconds) ? self.certaintySeconds : 60) == 0 || (has(self.certaintySeconds) ? self.certaintySeconds : 60) > (has(self.startSeconds) ? self.startSeconds : 30)",message="spec.leases.certaintySeconds (empty: 60) must be 0 or above startSeconds (empty: 30)"
type LeasesSpec struct {
	// ttlSeconds is how long, in seconds, a lease lives without being renewed. A lease that is not
	// renewed is lost: aborted on its engine, and counted until gone. Empty: 120.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=86400
	TTLSeconds int32 `json:"ttlSeconds,omitempty"`

	// startSeconds is how long, in seconds, after sending an acquire or renew a client may still
	// write its request. Empty: 30.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=3600
	StartSeconds int32 `json:"startSeconds,omitempty"`

	// retentionSeconds is how long, in seconds from its end, an ended lease is remembered, so that
	// its request id is not granted again. A client stops retrying an id after half of it.
	// Empty: 900.
	// +optional
	// +kubebuilder:validation:Minimum=2
	// +kubebuilder:validation:Maximum=604800
	RetentionSeconds int32 `json:"retentionSeconds,omitempty"`

	// maxRequests is how many leases, live and ended, are remembered; beyond it new request ids
	// are refused until older ones expire. Empty: 1000000.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=10000000
	MaxRequests int32 `json:"maxRequests,omitempty"`

	// onAmbiguous says what happens when an execution that ended without certainty cannot be
	// proven dead within certaintySeconds. Empty: FailPool.
	// +optional
	OnAmbiguous AmbiguousAction `json:"onAmbiguous,omitempty"`

	// certaintySeconds is how long, in seconds, the router tries to prove that an ambiguous
	// execution is dead; the time stands still while its engine is paused. 0: not at all.
	// Empty: 60.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=86400
	CertaintySeconds *int32 `json:"certaintySeconds,omitempty"`
}

// AmbiguousAction says what an execution of unknown fate does to the pool.
//
// +kubebuilder:validation:Enum=FailPool;IsolateBackend
type AmbiguousAction string

const (
	// AmbiguousFailPool stops all grants until the epoch is raised.
	AmbiguousFailPool AmbiguousAction = "FailPool"
	// AmbiguousIsolateBackend keeps that incarnation without leases until the execution is gone.
	AmbiguousIsolateBackend AmbiguousAction = "IsolateBackend"
)

// HealthSpec says when a backend that does not answer counts as unhealthy: after
// failureThreshold failed probes in a row or budgetSeconds of failing, whichever comes first.
type HealthSpec struct {
	// periodSeconds is the time, in seconds, between two probes of a backend. Empty: 5.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=300
	PeriodSeconds int32 `json:"periodSeconds,omitempty"`

	// timeoutSeconds is how long, in seconds, one probe may take; the engine answers by generating
	// a token, so a busy one needs time. Empty: 25.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=600
	TimeoutSeconds int32 `json:"timeoutSeconds,omitempty"`

	// failureThreshold is the number of failed probes in a row that make a backend unhealthy.
	// Empty: 3.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100
	FailureThreshold int32 `json:"failureThreshold,omitempty"`

	// budgetSeconds is the time, in seconds, of uninterrupted failing that makes a backend
	// unhealthy; it stands still while the engine is paused. Empty: 60.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=86400
	BudgetSeconds int32 `json:"budgetSeconds,omitempty"`
}

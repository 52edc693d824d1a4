package v1alpha1

// AffinitySpec says when a session may leave its home, and bounds how long and how many sessions are
// remembered.
//
// +kubebuilder:validation:XValidation:rule="!has(self.rebalance) || (has(self.mode) && self.mode == 'Rebalance')",message="spec.routing.affinity.rebalance may be set with mode Rebalance only"
type AffinitySpec struct {
	// mode says whether a session may leave a home that could go on serving it. Empty: Sticky. A
	// change applies to the next turn of each session.
	// +optional
	Mode AffinityMode `json:"mode,omitempty"`

	// rebalance says when a move is worth its cost, under mode Rebalance. Empty: all defaults.
	// +optional
	Rebalance RebalanceSpec `json:"rebalance,omitzero"`

	// afterPublish says what a newly published version of the weights does to the homes of sessions.
	// Empty: Keep.
	// +optional
	AfterPublish AfterPublish `json:"afterPublish,omitempty"`

	// idleTimeoutSeconds is the time, in seconds, after which a session without a lease is
	// forgotten. Empty: 7200.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=604800
	IdleTimeoutSeconds int32 `json:"idleTimeoutSeconds,omitempty"`

	// maxSessions is how many sessions the router remembers; beyond it new sessions are served
	// without affinity, and counted as such. Empty: 1000000.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=10000000
	MaxSessions int32 `json:"maxSessions,omitempty"`
}

// AffinityMode says whether a session may leave a home that could go on serving it.
//
// +kubebuilder:validation:Enum=Sticky;Rebalance
type AffinityMode string

const (
	// AffinitySticky keeps a session where it is.
	AffinitySticky AffinityMode = "Sticky"
	// AffinityRebalance moves a session between two of its turns to a backend that is no busier and
	// has served fewer output tokens for its capacity, by more than the move has to read again and
	// the session's next turns will generate. A session whose client does not report token counts is
	// never moved.
	AffinityRebalance AffinityMode = "Rebalance"
)

// AfterPublish says what a newly published version does to the homes of sessions.
//
// +kubebuilder:validation:Enum=Keep;Reset
type AfterPublish string

const (
	// AfterPublishKeep leaves sessions where they are.
	AfterPublishKeep AfterPublish = "Keep"
	// AfterPublishReset places each session anew at its next turn: its cache is of old weights anyway.
	AfterPublishReset AfterPublish = "Reset"
)

// RebalanceSpec says when moving a session is worth its cost. A change of a field applies to the next
// turn of each session.
type RebalanceSpec struct {
	// coolDownSeconds is the least time, in seconds, that a session stays where it was put.
	// Empty: 60.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=86400
	CoolDownSeconds int32 `json:"coolDownSeconds,omitempty"`

	// gapTurns is by how many turns of the session, each of its mean output, the home must be ahead
	// of the other backend in tokens served. A smaller number moves more sessions. Empty: 20.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=10000
	GapTurns int32 `json:"gapTurns,omitempty"`
}

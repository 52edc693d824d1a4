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
	// AffinityRebalance moves a session between two of its turns, when the next one is expected to
	// end so much sooner elsewhere that reading its context there again pays. A session whose client
	// does not report token counts is never moved.
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

// RebalanceSpec says when moving a session is worth its cost. The defaults of the last two fields are
// those of a published engine model; better ones are measured on the engines at hand. A change of any
// applies to the next turn of each session.
type RebalanceSpec struct {
	// marginPercent is how much heavier, in percent of load per capacity, the home must be than the
	// best other backend. Empty: 20.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000
	MarginPercent int32 `json:"marginPercent,omitempty"`

	// coolDownSeconds is the least time, in seconds, that a session stays where it was put.
	// Empty: 60.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=86400
	CoolDownSeconds int32 `json:"coolDownSeconds,omitempty"`

	// prefillTokensPerSecond is how many tokens of context an engine reads in a second. A smaller
	// number makes moves dearer. Empty: 8000.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=10000000
	PrefillTokensPerSecond int32 `json:"prefillTokensPerSecond,omitempty"`

	// stepMicrosecondsPerExecution is the time, in microseconds, that each further execution adds to
	// the engine's making of one token of another. A smaller number makes moves less worth while.
	// Empty: 350.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000000
	StepMicrosecondsPerExecution int32 `json:"stepMicrosecondsPerExecution,omitempty"`
}

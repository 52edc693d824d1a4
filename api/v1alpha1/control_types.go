package v1alpha1

// Leasing says whether new leases are granted.
//
// +kubebuilder:validation:Enum=Open;Held
type Leasing string

const (
	// LeasingOpen grants leases.
	LeasingOpen Leasing = "Open"
	// LeasingHeld grants none, to any sender; waiting clients wait.
	LeasingHeld Leasing = "Held"
)

// DrainSpec takes one backend out of service without disturbing what runs on it.
//
// +kubebuilder:validation:XValidation:rule="!has(self.onDeadline) || has(self.deadlineSeconds)",message="spec.drain.deadlineSeconds must be set with onDeadline"
type DrainSpec struct {
	// backend is the name of the backend: of its pod, or of its endpoint. The drain covers every
	// incarnation of that name until the entry is removed.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$`
	Backend string `json:"backend"`

	// deadlineSeconds is how long, in seconds from the drain's start in the status, the drain may
	// take. Empty: no deadline.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=604800
	DeadlineSeconds int32 `json:"deadlineSeconds,omitempty"`

	// onDeadline says what happens then. Empty: Wait.
	// +optional
	OnDeadline DeadlineAction `json:"onDeadline,omitempty"`

	// sessions says what becomes of the sessions that live there. Empty: Move.
	// +optional
	Sessions DrainSessions `json:"sessions,omitempty"`
}

// DeadlineAction says what a drain does when its time is up.
//
// +kubebuilder:validation:Enum=Wait;Abort
type DeadlineAction string

const (
	// DeadlineWait only reports that the drain is late.
	DeadlineWait DeadlineAction = "Wait"
	// DeadlineAbort aborts what is still running there.
	DeadlineAbort DeadlineAction = "Abort"
)

// DrainSessions says what becomes of the sessions of a draining backend.
//
// +kubebuilder:validation:Enum=Move;Keep
type DrainSessions string

const (
	// DrainMove gives a session another home at its next turn.
	DrainMove DrainSessions = "Move"
	// DrainKeep lets a session end where it lives.
	DrainKeep DrainSessions = "Keep"
)

// SenderSpec is a class of clients that can be fenced on its own.
type SenderSpec struct {
	// name is what clients say in a lease request.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	Name string `json:"name"`

	// access says whether the sender gets new leases. Fencing a sender disturbs nothing that
	// already runs, and no other sender. Empty: Open.
	// +optional
	Access SenderAccess `json:"access,omitempty"`

	// minGeneration is the lowest generation of the sender that may take leases; a lower one is
	// refused for good. Empty: 0. It may be neither unset nor lowered.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=4503599627370496
	MinGeneration *int64 `json:"minGeneration,omitempty"`

	// versionPolicy says what a change of weights does to the sender's sessions. A Rolling, an InPlace
	// or an AllAtOnce change waits for those of Pinned senders, within spec.weights.pinDeadlineSeconds;
	// what has not ended by then goes over to the new version. Weights that the trainer has pushed itself
	// cannot wait: it fences the sender. Empty: Latest.
	// +optional
	VersionPolicy VersionPolicy `json:"versionPolicy,omitempty"`

	// subjects are the only callers that may use the sender: take leases as it, renew and release
	// them, and end its sessions. Each needs the right to create inferencepools/leases as well. Empty:
	// every caller with that right. Whoever is left out by a change can renew no more, and what still
	// runs is aborted once its lease is lost. Without authentication of callers it has no effect.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	Subjects []SenderSubject `json:"subjects,omitempty"`
}

// SenderAccess says whether a sender gets new leases.
//
// +kubebuilder:validation:Enum=Open;Fenced
type SenderAccess string

const (
	// SenderOpen lets the sender take leases.
	SenderOpen SenderAccess = "Open"
	// SenderFenced refuses the sender new leases.
	SenderFenced SenderAccess = "Fenced"
)

package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// InferencePool is a set of SGLang replicas that serve one policy model, and the rules by which
// sessions are assigned to them.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=rlpool,categories=rl,scope=Namespaced
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Backends",type=string,JSONPath=`.status.summary.ready`,description="serving / known"
// +kubebuilder:printcolumn:name="Version",type=string,JSONPath=`.status.weights.published`,description="published weights"
// +kubebuilder:printcolumn:name="Converged",type=string,JSONPath=`.status.weights.progress`,description="backends on the target version"
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Policy",type=string,JSONPath=`.spec.routing.policy`,priority=1
// +kubebuilder:printcolumn:name="Term",type=integer,JSONPath=`.status.term`,priority=1
// +kubebuilder:printcolumn:name="Router",type=string,JSONPath=`.status.router.name`,priority=1
// +kubebuilder:printcolumn:name="Epoch",type=integer,JSONPath=`.status.epoch`,priority=1
type InferencePool struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the object's standard metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is what the pool's owner asks for.
	// +required
	Spec InferencePoolSpec `json:"spec"`

	// status is what the operator found and did. Fields described as facts are written before the
	// act they record and are read back after a restart.
	// +optional
	Status InferencePoolStatus `json:"status,omitempty"`
}

// InferencePoolList is a page of pools.
//
// +kubebuilder:object:root=true
type InferencePoolList struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the list's standard metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	// items are the pools.
	Items []InferencePool `json:"items"`
}

// InferencePoolSpec is what the pool's owner asks for.
//
// +kubebuilder:validation:XValidation:rule="(has(self.epoch) ? self.epoch : 1) >= (has(oldSelf.epoch) ? oldSelf.epoch : 1)",message="spec.epoch may only grow, and may not be unset once it is above 1"
// +kubebuilder:validation:XValidation:rule="oldSelf.senders.all(o, self.senders.exists(s, s.name == o.name))",message="spec.senders: an existing sender may not be removed; fence it instead"
// +kubebuilder:validation:XValidation:rule="oldSelf.senders.all(o, !has(o.minGeneration) || self.senders.all(s, s.name != o.name || (has(s.minGeneration) && s.minGeneration >= o.minGeneration)))",message="spec.senders: the minGeneration of an existing sender may be neither unset nor lowered"
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.weights) || has(self.weights)",message="spec.weights may not be unset"
// +kubebuilder:validation:XValidation:rule="!has(self.weights) || (has(self.weights.epoch) ? self.weights.epoch : 1) <= (has(self.epoch) ? self.epoch : 1)",message="spec.weights.epoch (empty: 1) may not be above spec.epoch"
// +kubebuilder:validation:XValidation:rule="!has(self.weights) || (has(oldSelf.weights) && oldSelf.weights.version == self.weights.version) || (has(self.weights.epoch) ? self.weights.epoch : 1) == (has(self.epoch) ? self.epoch : 1)",message="spec.weights.epoch (empty: 1) must be spec.epoch where version is changed: the writer is of an older epoch"
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.weights) || !has(oldSelf.weights.epoch) || (has(self.weights) && has(self.weights.epoch) && self.weights.epoch >= oldSelf.weights.epoch)",message="spec.weights.epoch may be neither unset nor lowered"
type InferencePoolSpec struct {
	// backends says which SGLang servers the pool uses. A server that leaves the set takes no new
	// session; what runs there stays counted until it is known to be gone.
	// +required
	Backends BackendsSpec `json:"backends"`

	// leasing says whether new leases are granted. While it is Held waiting clients wait, what runs
	// goes on and may be renewed and released, and no session grows old. Empty: Open.
	// +optional
	Leasing Leasing `json:"leasing,omitempty"`

	// engineMode says whether the engines generate. Any paused mode stops leases first, then pauses
	// each engine; Running continues those that were paused for it and no others, and leases follow.
	// A change from one paused mode to another continues each engine and pauses it anew. Engines that
	// somebody else paused are left alone. Empty: Running.
	// +optional
	EngineMode EngineMode `json:"engineMode,omitempty"`

	// routing says how a session without a home gets one. Empty: LeastOutstanding with the default
	// affinity. A change applies to the next assignment.
	// +optional
	Routing RoutingSpec `json:"routing,omitzero"`

	// leases bounds the life of leases and says what an uncertain execution does to the pool.
	// Empty: all defaults. A change applies to leases granted or renewed from then on.
	// +optional
	Leases LeasesSpec `json:"leases,omitzero"`

	// health says when a backend that does not answer counts as unhealthy. Empty: all defaults.
	// +optional
	Health HealthSpec `json:"health,omitzero"`

	// proxy says what the transparent proxy does beyond forwarding. Empty: all defaults.
	// +optional
	Proxy ProxySpec `json:"proxy,omitzero"`

	// drain names backends that take no new session, one entry for each. Removing an entry ends
	// its drain. Empty: only deletion and annotation of pods drain.
	// +optional
	// +listType=map
	// +listMapKey=backend
	// +kubebuilder:validation:MaxItems=256
	Drain []DrainSpec `json:"drain,omitempty"`

	// senders are the classes of clients that may take leases, each of which can be fenced on its
	// own. An entry is never removed.
	// +required
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=32
	Senders []SenderSpec `json:"senders"`

	// weights says which version of the weights the pool serves. Empty: versions are not looked at. It
	// may not be unset once it is set.
	// +optional
	Weights *WeightsSpec `json:"weights,omitempty"`

	// epoch is the fencing number of the pool. Raising it ends every lease and session granted
	// before and is the one way out of a failed pool. Empty: 1. It may only grow.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=4503599627370496
	Epoch int64 `json:"epoch,omitempty"`

	// confirmedGone lists incarnations, as status.backends spells them, whose engine process a
	// person vouches has ended. What was counted there is then known to be gone. An entry may be
	// removed once the status no longer names the incarnation; removing it revives nothing.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=256
	ConfirmedGone []Incarnation `json:"confirmedGone,omitempty"`
}

// Incarnation is one life of a backend's engine process: "<pod UID>/<container ID>" for a pod,
// "endpoint:<name>/<life>" for a static endpoint.
//
// +kubebuilder:validation:MinLength=1
// +kubebuilder:validation:MaxLength=300
type Incarnation string

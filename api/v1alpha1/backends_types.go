package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// BackendsSpec names the pool's servers, by pods or by addresses, and how much each can run.
//
// +kubebuilder:validation:XValidation:rule="has(self.selector) != has(self.endpoints)",message="spec.backends: exactly one of selector and endpoints must be set"
// +kubebuilder:validation:XValidation:rule="!has(self.selector) || has(self.port)",message="spec.backends.port must be set with selector"
// +kubebuilder:validation:XValidation:rule="has(self.selector) || !has(self.port)",message="spec.backends.port may be set with selector only; an endpoint has its port in its url"
// +kubebuilder:validation:XValidation:rule="has(self.selector) || !has(self.container)",message="spec.backends.container may be set with selector only"
// +kubebuilder:validation:XValidation:rule="has(self.selector) || !has(self.onCordon)",message="spec.backends.onCordon may be set with selector only"
type BackendsSpec struct {
	// selector chooses pods of the pool's own namespace by label; each matching pod is one
	// backend, named like the pod. Of an engine that spans several pods only the serving one may
	// match.
	// +optional
	Selector *PodSelector `json:"selector,omitempty"`

	// port is the port of the engine's HTTP server on every selected pod.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65535
	Port int32 `json:"port,omitempty"`

	// container is the name of the engine's container, whose restarts are new incarnations. Empty:
	// the container that declares the port, else the only one.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	Container string `json:"container,omitempty"`

	// onCordon says what becomes of a backend while its pod's node is cordoned (spec.unschedulable of
	// the node). A node that is deleted counts as cordoned while its pods are there. The drain ends when
	// the node is uncordoned. It needs a manager that may list and watch nodes, which one of a single
	// namespace may not. Empty: Ignore.
	// +optional
	OnCordon CordonPolicy `json:"onCordon,omitempty"`

	// endpoints names servers that are not pods of this cluster. Changing the url of an entry says
	// that another engine process now stands behind the name.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=256
	Endpoints []Endpoint `json:"endpoints,omitempty"`

	// capacity says how many executions a backend can run at once. Empty: as the engine reports.
	// The pod annotation inference.berthmaster.io/capacity, a whole number above 0, wins over it.
	// Lowering a capacity revokes nothing.
	// +optional
	Capacity CapacitySpec `json:"capacity,omitzero"`

	// credentialsSecretRef names a Secret of the pool's namespace with the engines' keys, for the
	// manager's own calls: api-key, and admin-api-key if they have one of their own for it. White space
	// around a key is ignored. Empty: the engines ask for none. Another name, and another content, are
	// used for the calls that follow within seconds. Clients get their keys elsewhere.
	// +optional
	CredentialsSecretRef *CredentialsReference `json:"credentialsSecretRef,omitempty"`
}

// CordonPolicy says what becomes of a backend while its node is cordoned.
//
// +kubebuilder:validation:Enum=Ignore;Move;Keep
type CordonPolicy string

const (
	// CordonIgnore changes nothing.
	CordonIgnore CordonPolicy = "Ignore"
	// CordonMove drains the backend; its sessions get another home at their next turn.
	CordonMove CordonPolicy = "Move"
	// CordonKeep drains the backend; its sessions end where they live.
	CordonKeep CordonPolicy = "Keep"
)

// CredentialsReference names a Secret of the pool's namespace.
type CredentialsReference struct {
	// name is the Secret's name.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$`
	Name string `json:"name"`
}

// The entries of a Secret that spec.backends.credentialsSecretRef names.
const (
	// CredentialsAPIKey is the key that opens generation and information.
	CredentialsAPIKey = "api-key"
	// CredentialsAdminAPIKey is the key that opens the calls that change an engine, if they have one of
	// their own.
	CredentialsAdminAPIKey = "admin-api-key"
)

// PodSelector chooses pods by label, with the meaning of a Kubernetes label selector; every part
// must hold.
//
// +kubebuilder:validation:XValidation:rule="(has(self.matchLabels) && size(self.matchLabels) > 0) || (has(self.matchExpressions) && size(self.matchExpressions) > 0)",message="spec.backends.selector: at least one of matchLabels and matchExpressions must be set; a pool never takes every pod of a namespace"
type PodSelector struct {
	// matchLabels are labels a pod must carry with exactly these values.
	// +optional
	// +kubebuilder:validation:MaxProperties=16
	// +kubebuilder:validation:XValidation:rule="self.all(k, size(k) <= 317 && !format.qualifiedName().validate(k).hasValue())",message="spec.backends.selector.matchLabels: a key is not a valid label name"
	MatchLabels map[string]LabelValue `json:"matchLabels,omitempty"`

	// matchExpressions are further requirements on a pod's labels.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	MatchExpressions []PodSelectorRequirement `json:"matchExpressions,omitempty"`
}

// PodSelectorRequirement is one requirement on a pod's labels.
//
// +kubebuilder:validation:XValidation:rule="(self.operator in ['In', 'NotIn']) == (has(self.values) && size(self.values) > 0)",message="spec.backends.selector.matchExpressions: values must be set with operator In or NotIn, and only then"
type PodSelectorRequirement struct {
	// key is the label's name.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=317
	// +kubebuilder:validation:XValidation:rule="!format.qualifiedName().validate(self).hasValue()",message="spec.backends.selector.matchExpressions: key is not a valid label name"
	Key string `json:"key"`

	// operator relates the label to values.
	// +required
	Operator SelectorOperator `json:"operator"`

	// values are what the label is compared with; In and NotIn need at least one.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=32
	Values []LabelValue `json:"values,omitempty"`
}

// SelectorOperator relates a label to the values of a requirement.
//
// +kubebuilder:validation:Enum=In;NotIn;Exists;DoesNotExist
type SelectorOperator string

// The operators of a selector requirement, as Kubernetes label selectors define them.
const (
	SelectorIn           SelectorOperator = "In"
	SelectorNotIn        SelectorOperator = "NotIn"
	SelectorExists       SelectorOperator = "Exists"
	SelectorDoesNotExist SelectorOperator = "DoesNotExist"
)

// LabelValue is the value of a label; it may be empty.
//
// +kubebuilder:validation:MaxLength=63
// +kubebuilder:validation:Pattern=`^(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?$`
type LabelValue string

// LabelSelector is the selector in the form the Kubernetes libraries work with.
func (s *PodSelector) LabelSelector() *metav1.LabelSelector {
	out := &metav1.LabelSelector{}
	if len(s.MatchLabels) > 0 {
		out.MatchLabels = make(map[string]string, len(s.MatchLabels))
	}
	for key, value := range s.MatchLabels {
		out.MatchLabels[key] = string(value)
	}
	for _, requirement := range s.MatchExpressions {
		values := make([]string, 0, len(requirement.Values))
		for _, value := range requirement.Values {
			values = append(values, string(value))
		}
		out.MatchExpressions = append(out.MatchExpressions, metav1.LabelSelectorRequirement{
			Key:      requirement.Key,
			Operator: metav1.LabelSelectorOperator(requirement.Operator),
			Values:   values,
		})
	}
	return out
}

// Endpoint is one server outside the cluster's pods.
type Endpoint struct {
	// name is the backend's name in the pool.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	Name string `json:"name"`

	// url is the server's base URL: http or https, a host and perhaps a port. Slashes at its end
	// are ignored. A change is a new incarnation of the backend.
	// +required
	URL EndpointURL `json:"url"`
}

// EndpointURL is the base URL of an engine.
//
// +kubebuilder:validation:MinLength=1
// +kubebuilder:validation:MaxLength=512
// +kubebuilder:validation:XValidation:rule="self.startsWith('http://') || self.startsWith('https://')",message="spec.backends.endpoints.url: the scheme must be http or https"
// +kubebuilder:validation:XValidation:rule="!self.contains('@')",message="spec.backends.endpoints.url: user info is not allowed; use a Secret for credentials"
// +kubebuilder:validation:XValidation:rule="!self.contains('?') && !self.contains('#')",message="spec.backends.endpoints.url: a query or fragment is not allowed"
// +kubebuilder:validation:XValidation:rule="self.matches('^[^/]*//[^/?#]*/*([?#].*)?$')",message="spec.backends.endpoints.url: a path other than slashes is not allowed"
// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z]+://([^/?#]*@)?([A-Za-z0-9._-]+|[[][0-9A-Fa-f:.]+[]])(:[0-9]+)?([/?#].*)?$')",message="spec.backends.endpoints.url: a host name or address with at most a port is expected"
// +kubebuilder:validation:XValidation:rule="!self.matches(':[0-9]+/*$') || self.matches(':0*([1-9][0-9]{0,3}|[1-5][0-9]{4}|6[0-4][0-9]{3}|65[0-4][0-9]{2}|655[0-2][0-9]|6553[0-5])/*$')",message="spec.backends.endpoints.url: the port must be between 1 and 65535"
type EndpointURL string

// CapacitySpec says how many executions a backend can run at once.
//
// +kubebuilder:validation:XValidation:rule="(has(self.source) && self.source == 'Fixed') == has(self.value)",message="spec.backends.capacity.value must be set with source Fixed, and only then"
// +kubebuilder:validation:XValidation:rule="!has(self.fallback) || !has(self.source) || self.source == 'Engine'",message="spec.backends.capacity.fallback may be set with source Engine only"
type CapacitySpec struct {
	// source says where the number comes from. Empty: Engine.
	// +optional
	Source CapacitySource `json:"source,omitempty"`

	// value is the capacity of every backend, in executions, under source Fixed.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000000
	Value int32 `json:"value,omitempty"`

	// fallback is used, in executions, for a backend whose engine reports none. Empty: such a
	// backend takes no leases.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000000
	Fallback int32 `json:"fallback,omitempty"`
}

// CapacitySource says where a backend's capacity comes from.
//
// +kubebuilder:validation:Enum=Engine;Fixed
type CapacitySource string

const (
	// CapacityEngine takes the engine's own limit, summed over its data-parallel ranks.
	CapacityEngine CapacitySource = "Engine"
	// CapacityFixed takes the number in the spec.
	CapacityFixed CapacitySource = "Fixed"
)

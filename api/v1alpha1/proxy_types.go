package v1alpha1

// ProxySpec is what the pool's owner decides about the transparent proxy, for clients that know only
// a base URL.
type ProxySpec struct {
	// control says what becomes of calls through the proxy that change engines: pauses, weight
	// updates, aborts, flushes. Empty: Refuse. A change applies to the next call.
	// +optional
	Control ProxyControl `json:"control,omitempty"`

	// keyless says what stands in for the session of a request that names none. Empty: None. A change
	// applies to the next request.
	// +optional
	Keyless ProxyKeyless `json:"keyless,omitempty"`
}

// ProxyControl says what becomes of a call through the proxy that changes engines.
//
// +kubebuilder:validation:Enum=Refuse;FanOut
type ProxyControl string

const (
	// ProxyRefuse refuses the call, with the field of the spec that does the same.
	ProxyRefuse ProxyControl = "Refuse"
	// ProxyFanOut sends it to every engine of the pool, for trainers that know one URL. Whoever may use
	// the proxy may then change engines.
	ProxyFanOut ProxyControl = "FanOut"
)

// ProxyKeyless says what stands in for a missing session.
//
// +kubebuilder:validation:Enum=None;APIKey;Prefix
type ProxyKeyless string

const (
	// KeylessNone has nothing stand in: the request has no affinity.
	KeylessNone ProxyKeyless = "None"
	// KeylessAPIKey makes each bearer token a session, for agents that are handed a key each.
	KeylessAPIKey ProxyKeyless = "APIKey"
	// KeylessPrefix has requests whose prompt continues an earlier one share its session. It is a guess.
	KeylessPrefix ProxyKeyless = "Prefix"
)

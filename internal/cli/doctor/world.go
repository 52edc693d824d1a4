package doctor

import (
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/berthmaster/berthmaster/api/v1alpha1"
	"github.com/berthmaster/berthmaster/internal/cli/live"
	"github.com/berthmaster/berthmaster/internal/sglang"
)

// World is what was seen of a pool and of what it depends on.
type World struct {
	Pool *v1alpha1.InferencePool
	// Pods are those of the pool's namespace.
	Pods []corev1.Pod
	// Managers are the pods of the manager, Lease what its replicas hold in turn; nil: there is none.
	Managers []corev1.Pod
	Lease    *coordinationv1.Lease
	// Live is what the router says, LiveErr why it says nothing.
	Live    *live.Pool
	LiveErr error
	// Engines are what engines say about themselves, by backend; one that was not asked is missing.
	Engines map[string]Engine
	// Secret is what became of spec.backends.credentialsSecretRef.
	Secret Secret
	// You is the user, as far as it matters here.
	You Identity
	// Shadows are other resources of the same kind, as "inferencepools.group".
	Shadows []string
	// Unlooked is what could not be looked at, and why.
	Unlooked []Unlooked
	// Router is how the router was reached.
	Router RouterWay
}

// RouterWay is how the router was reached.
type RouterWay int

const (
	// ThroughPod: by a port-forward to the manager's pod.
	ThroughPod RouterWay = iota
	// ByURL: at a URL that the user gave; where the manager runs is not known.
	ByURL
)

// Engine is an engine's answer about itself.
type Engine struct {
	Info sglang.ServerInfo
	Err  error
}

// Secret says what is known of the engines' keys.
type Secret struct {
	State SecretState
	// Name is the Secret's.
	Name string
}

// SecretState is what became of reading the keys.
type SecretState int

const (
	// SecretNotNamed: the pool names none.
	SecretNotNamed SecretState = iota
	// SecretRead: it has an api-key.
	SecretRead
	// SecretMissing: there is none of that name.
	SecretMissing
	// SecretEmpty: it has no api-key.
	SecretEmpty
	// SecretUnread: the user may not read it.
	SecretUnread
)

// Identity is what is known of the user's credentials and clock.
type Identity struct {
	// TokenExpires is when the user's token does; zero: there is none, or it does not say.
	TokenExpires time.Time
	// ServerTime is the API server's clock, and LocalTime the user's at that moment; zero: not known.
	ServerTime, LocalTime time.Time
}

// Unlooked is something that could not be looked at.
type Unlooked struct {
	What string
	Err  error
}

package story

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1alpha1 "github.com/berthmaster/berthmaster/api/v1alpha1"
)

// look says what is wrong with a version of the pool, or nothing.
type look = func(*v1alpha1.InferencePool) error

// backendIs wants the only life of a backend to be in a state.
func backendIs(name string, state v1alpha1.BackendState) look {
	return func(pool *v1alpha1.InferencePool) error {
		for _, b := range pool.Status.Backends {
			if b.Name == name && b.State == state {
				return nil
			}
		}
		return describe(pool, name)
	}
}

// hasEnded wants no engine process of that life to serve.
func hasEnded(name, incarnation string) look {
	return func(pool *v1alpha1.InferencePool) error {
		if len(pool.Status.Backends) == 0 {
			return fmt.Errorf("status lists no backend")
		}
		for _, b := range pool.Status.Backends {
			if b.Incarnation == incarnation && b.State == v1alpha1.BackendServing {
				return describe(pool, name)
			}
		}
		return nil
	}
}

// servesAs wants the backend to serve in the given life.
func servesAs(name, incarnation string) look {
	return func(pool *v1alpha1.InferencePool) error {
		for _, b := range pool.Status.Backends {
			if b.Incarnation == incarnation && b.State == v1alpha1.BackendServing {
				return nil
			}
		}
		return describe(pool, name)
	}
}

func senderIs(name string, state v1alpha1.SenderState) look {
	return func(pool *v1alpha1.InferencePool) error {
		for _, s := range pool.Status.Senders {
			if s.Name == name {
				if s.Access == state {
					return nil
				}
				return fmt.Errorf("sender %s is %s", name, s.Access)
			}
		}
		return fmt.Errorf("status does not list the sender %s", name)
	}
}

// hasNotFailed wants the pool to serve on.
func hasNotFailed(pool *v1alpha1.InferencePool) error {
	if pool.Status.Failure != nil {
		return fmt.Errorf("the pool has failed: request %s on %s", pool.Status.Failure.RequestID, pool.Status.Failure.Backend)
	}
	return IsReady(pool)
}

// IsReady wants the pool to be ready, as of its present spec.
func IsReady(pool *v1alpha1.InferencePool) error {
	ready := meta.FindStatusCondition(pool.Status.Conditions, v1alpha1.ConditionReady)
	switch {
	case ready == nil:
		return fmt.Errorf("there is no condition %s", v1alpha1.ConditionReady)
	case ready.Status != metav1.ConditionTrue || ready.ObservedGeneration < pool.Generation:
		return fmt.Errorf("condition %s is %s: %s", ready.Type, ready.Status, ready.Message)
	}
	return nil
}

// AllServe wants that many backends to serve.
func AllServe(backends int) func(*v1alpha1.InferencePool) error {
	return func(pool *v1alpha1.InferencePool) error {
		if err := IsReady(pool); err != nil {
			return err
		}
		serving := 0
		for _, b := range pool.Status.Backends {
			if b.State == v1alpha1.BackendServing {
				serving++
			}
		}
		if serving != backends {
			return fmt.Errorf("%d of %d backends serve", serving, backends)
		}
		return nil
	}
}

// describe says what the status shows of a backend.
func describe(pool *v1alpha1.InferencePool, name string) error {
	said := ""
	for _, b := range pool.Status.Backends {
		if b.Name == name {
			said += fmt.Sprintf(" %s (%s) as %s;", b.State, b.Reason, b.Incarnation)
		}
	}
	if said == "" {
		return fmt.Errorf("status does not list %s", name)
	}
	return fmt.Errorf("%s is%s", name, said)
}

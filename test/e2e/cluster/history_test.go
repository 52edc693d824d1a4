package cluster

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/berthmaster/berthmaster/api/v1alpha1"
)

// history is every status of the pool that the API server told of, so that one that lasted for less
// than a look is not missed.
type history struct {
	mu    sync.Mutex
	pools []*v1alpha1.InferencePool // guarded by mu
}

// record watches the pool until ctx ends, and begins again when the API server has been away.
func (h *house) record(ctx context.Context) *history {
	kept := &history{}
	go func() {
		again := time.NewTicker(200 * time.Millisecond)
		defer again.Stop()
		for ; ctx.Err() == nil; <-again.C {
			events, err := h.kube.Watch(ctx, &v1alpha1.InferencePoolList{}, &client.ListOptions{
				Namespace: poolNamespace, FieldSelector: fields.OneTermEqualSelector("metadata.name", poolName),
			})
			if err != nil {
				continue
			}
			for event := range events.ResultChan() {
				if pool, ok := event.Object.(*v1alpha1.InferencePool); ok {
					kept.mu.Lock()
					kept.pools = append(kept.pools, pool)
					kept.mu.Unlock()
				}
			}
		}
	}()
	return kept
}

// saw says whether some version was so.
func (k *history) saw(so func(*v1alpha1.InferencePool) bool) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return slices.ContainsFunc(k.pools, so)
}

// shunned are the backends of which some version said that they could not serve, for a reason that makes
// sessions leave. That nobody has looked at one yet is none.
func (k *history) shunned() []string {
	k.mu.Lock()
	defer k.mu.Unlock()
	found := map[string]bool{}
	for _, pool := range k.pools {
		for i := range pool.Status.Backends {
			if b := &pool.Status.Backends[i]; shuns(b) {
				found[b.Name] = true
			}
		}
	}
	return names(found)
}

func shuns(b *v1alpha1.BackendStatus) bool {
	switch b.State {
	case v1alpha1.BackendUnhealthy, v1alpha1.BackendSettling, v1alpha1.BackendIsolated:
		return true
	case v1alpha1.BackendPending:
		return b.Reason != v1alpha1.ReasonNotProbed
	case v1alpha1.BackendServing, v1alpha1.BackendDraining, v1alpha1.BackendDrained, v1alpha1.BackendRetired,
		v1alpha1.BackendPausing, v1alpha1.BackendPaused, v1alpha1.BackendContinuing,
		v1alpha1.BackendUpdating, v1alpha1.BackendVerifying:
	}
	return false
}

// backend wants a version with a backend in a state, for a reason unless that is empty.
func (k *history) backend(name string, state v1alpha1.BackendState, reason v1alpha1.BackendReason) func() error {
	return func() error {
		if k.saw(func(pool *v1alpha1.InferencePool) bool { return backendIs(pool, name, state, reason) }) {
			return nil
		}
		return fmt.Errorf("no status showed %s as %s (%s)", name, state, reason)
	}
}

func backendIs(pool *v1alpha1.InferencePool, name string, state v1alpha1.BackendState, reason v1alpha1.BackendReason) bool {
	return slices.ContainsFunc(pool.Status.Backends, func(b v1alpha1.BackendStatus) bool {
		return b.Name == name && b.State == state && (reason == "" || b.Reason == reason)
	})
}

// ready says whether a pod is.
func ready(pod corev1.Pod) bool {
	return slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}

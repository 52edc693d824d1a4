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

// unhealthy are the backends that some version said to be.
func (k *history) unhealthy() []string {
	k.mu.Lock()
	defer k.mu.Unlock()
	found := map[string]bool{}
	for _, pool := range k.pools {
		for i := range pool.Status.Backends {
			if b := &pool.Status.Backends[i]; b.State == v1alpha1.BackendUnhealthy {
				found[b.Name] = true
			}
		}
	}
	return names(found)
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

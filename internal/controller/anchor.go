package controller

import (
	"context"
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/berthmaster/berthmaster/api/v1alpha1"
)

// anchorOwner owns the anchor and nothing else, so that applying it takes nothing away that is
// applied under another name.
const anchorOwner client.FieldOwner = "berthmaster-anchor"

// longestStart is the largest spec.leases.startSeconds that the schema takes.
const longestStart = 3600

// anchor is what a pool must not forget with a status that somebody wipes by hand. It is an
// annotation, which no write of the status reaches, and it is written before the status that it is
// about: it may be ahead of the status, and is never behind.
type anchor struct {
	// Term, Lives and StartSeconds are the facts of those names in the status.
	Term         int64 `json:"term"`
	Lives        int64 `json:"lives,omitempty"`
	StartSeconds int32 `json:"startSeconds,omitempty"`
	// FailedEpoch is the latest epoch in which the pool failed; 0: it never did.
	FailedEpoch int64 `json:"failedEpoch,omitempty"`
}

// max is the later of each fact.
func (a anchor) max(b anchor) anchor {
	return anchor{
		Term: max(a.Term, b.Term), Lives: max(a.Lives, b.Lives),
		StartSeconds: max(a.StartSeconds, b.StartSeconds), FailedEpoch: max(a.FailedEpoch, b.FailedEpoch),
	}
}

// anchorIn is the anchor that a pool has. One that cannot be read says that there were terms, and
// nothing of them that could be relied on.
func anchorIn(pool *v1alpha1.InferencePool) anchor {
	text, has := pool.Annotations[v1alpha1.AnnotationAnchor]
	if !has {
		return anchor{}
	}
	var a anchor
	if err := json.Unmarshal([]byte(text), &a); err != nil || a.Term < 0 || a.StartSeconds < 0 {
		return anchor{Term: 1, StartSeconds: longestStart}
	}
	return a
}

// anchorOf is what a status says of the same.
func anchorOf(status *v1alpha1.InferencePoolStatus) anchor {
	a := anchor{Term: status.Term, Lives: status.Lives, StartSeconds: status.StartSecondsHighWater}
	if status.Failure != nil {
		a.FailedEpoch = status.Failure.Epoch
	}
	return a
}

// pastOf is all that is remembered of a pool's earlier terms.
func pastOf(pool *v1alpha1.InferencePool) anchor { return anchorIn(pool).max(anchorOf(&pool.Status)) }

// cast writes the anchor of a status that is about to be written, if it says more than the one there
// is. It returns the pool as it is then.
func (r *Reconciler) cast(ctx context.Context, pool *v1alpha1.InferencePool, status *v1alpha1.InferencePoolStatus) (*v1alpha1.InferencePool, error) {
	was := anchorIn(pool)
	next := was.max(anchorOf(status))
	if next == was {
		return pool, nil
	}
	text, err := json.Marshal(next)
	if err != nil {
		return nil, fmt.Errorf("write the anchor: %w", err)
	}
	patch := patchOf(pool)
	patch.SetAnnotations(map[string]string{v1alpha1.AnnotationAnchor: string(text)})
	if err := r.client.Apply(ctx, client.ApplyConfigurationFromUnstructured(patch), anchorOwner, client.ForceOwnership); err != nil {
		return nil, fmt.Errorf("write the anchor: %w", err)
	}
	return poolIn(patch)
}

// patchOf is the beginning of an apply to a pool, on the condition that nobody has changed it since
// it was read.
func patchOf(pool *v1alpha1.InferencePool) *unstructured.Unstructured {
	patch := &unstructured.Unstructured{}
	patch.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind(v1alpha1.InferencePoolKind))
	patch.SetNamespace(pool.Namespace)
	patch.SetName(pool.Name)
	patch.SetUID(pool.UID)
	patch.SetResourceVersion(pool.ResourceVersion)
	return patch
}

// poolIn is the pool that an apply has returned.
func poolIn(patch *unstructured.Unstructured) (*v1alpha1.InferencePool, error) {
	written := &v1alpha1.InferencePool{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(patch.Object, written); err != nil {
		return nil, fmt.Errorf("read back the pool: %w", err)
	}
	return written, nil
}

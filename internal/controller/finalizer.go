package controller

import (
	"context"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/berthmaster/berthmaster/api/v1alpha1"
	"github.com/berthmaster/berthmaster/internal/router"
	"github.com/berthmaster/berthmaster/internal/sglang"
)

// +kubebuilder:rbac:groups=inference.berthmaster.io,resources=inferencepools,verbs=patch

// farewellBound is how long the deletion of a pool waits, at most, for the engines that it paused to
// answer that they go on, counted from when this process first saw it.
const farewellBound = 30 * time.Second

// farewell is an order to an engine of a pool that is being deleted.
type farewell struct {
	backend     router.BackendName
	incarnation router.Incarnation
	url         string
	order       order
}

// finalized reports whether the pool's end waits for us.
func finalized(pool *v1alpha1.InferencePool) bool {
	return slices.Contains(pool.Finalizers, v1alpha1.Finalizer)
}

// mustFinish reports whether a pool that is being deleted waits for this process.
func (r *Reconciler) mustFinish(pool *v1alpha1.InferencePool, command authority) bool {
	return command == authorityHeld && finalized(pool)
}

// observeLeaving reads what the last orders to the engines of a pool need.
func (r *Reconciler) observeLeaving(ctx context.Context, w *world, pool *v1alpha1.InferencePool, now time.Time) error {
	w.leaving, w.leavingSince = pool, r.desk.leaving(pool.UID, now)
	w.engines = r.desk.remember(pool.UID)
	r.readCredentials(ctx, w, pool, now)
	for i := range pool.Status.Backends {
		entry := &pool.Status.Backends[i]
		if !pausedIn(entry).asked() {
			continue
		}
		s := stray{name: entry.Name, incarnation: router.Incarnation(entry.Incarnation), url: entry.URL}
		if err := r.judge(ctx, r.live, w, &s); err != nil {
			return err
		}
		w.strays = append(w.strays, s)
	}
	return nil
}

// planFarewell continues the engines that the pool paused and that are still there. The pool may go
// once each has answered, or when they have had their time.
func planFarewell(w world, now time.Time) plan {
	p := plan{course: courseFinish, over: true}
	bound := w.leavingSince.Add(farewellBound)
	for _, s := range w.strays {
		memory := w.engines[s.incarnation]
		goOn := order{kind: orderContinue}
		if s.fate != fateUnselected || s.url == "" || memory.did(goOn) {
			continue
		}
		p.over = false
		p.lookAgain(bound, now)
		if at := memory.waits(goOn, now); !at.IsZero() {
			p.lookAgain(at, now)
		} else if !memory.busy() {
			p.farewells = append(p.farewells, farewell{router.BackendName(s.name), s.incarnation, s.url, goOn})
		}
	}
	if !now.Before(bound) {
		p.over, p.farewells = true, nil
	}
	return p
}

// finishing are the steps of a pool that is being deleted.
func (r *Reconciler) finishing(w *world, p *plan, _ time.Time) []step {
	steps := []step{
		{"leave the pool", func(ctx context.Context) error { r.leave(ctx, w); return nil }},
		{"tell the engines", func(ctx context.Context) error { r.bidFarewell(ctx, w, p); return nil }},
	}
	if p.over {
		steps = append(steps, step{"let the pool go", func(ctx context.Context) error { return r.finish(ctx, w) }})
	}
	return steps
}

// bidFarewell gives the last orders.
func (r *Reconciler) bidFarewell(ctx context.Context, w *world, p *plan) {
	lines := w.lines(ctx, w.leaving.Status.Term)
	for _, f := range p.farewells {
		base, err := sglang.ParseBaseURL(f.url)
		if err != nil {
			continue // nobody could have paused it there
		}
		r.desk.give(w.leaving.UID, errand{
			incarnation: f.incarnation, url: base, keys: w.keys, order: f.order,
			tells: orderLines(lines, f.backend, f.incarnation, f.order),
			ended: func(ctx context.Context) { r.wake(ctx, w.key) },
		})
	}
}

// finish takes the finalizer away and forgets the pool.
func (r *Reconciler) finish(ctx context.Context, w *world) error {
	if _, err := r.applyFinalizers(ctx, w.leaving, nil); client.IgnoreNotFound(err) != nil {
		return err
	}
	r.keyring.forget(w.leaving.UID)
	r.desk.drop(w.leaving.UID)
	return nil
}

// holdEnd puts the finalizer on a pool before the first of its engines is paused.
func (r *Reconciler) holdEnd(ctx context.Context, w *world, p *plan) error {
	if finalized(w.current()) || len(p.pausedLives()) == 0 {
		return nil
	}
	written, err := r.applyFinalizers(ctx, w.current(), []string{v1alpha1.Finalizer})
	if err != nil {
		return err
	}
	w.tenure.written = written
	return nil
}

// letGo takes the finalizer away once no engine is paused for the pool.
func (r *Reconciler) letGo(ctx context.Context, w *world, p *plan) error {
	if !finalized(w.current()) || len(p.pausedLives()) > 0 {
		return nil
	}
	written, err := r.applyFinalizers(ctx, w.current(), nil)
	if err != nil {
		return err
	}
	w.tenure.written = written
	w.lines(ctx, w.tenure.term).Debug("no engine is paused any more")
	return nil
}

// applyFinalizers makes these the finalizers that are ours, on the condition that nobody has changed the
// pool since it was read.
func (r *Reconciler) applyFinalizers(ctx context.Context, pool *v1alpha1.InferencePool, finalizers []string) (*v1alpha1.InferencePool, error) {
	patch := &unstructured.Unstructured{Object: map[string]any{}}
	patch.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind(v1alpha1.InferencePoolKind))
	patch.SetNamespace(pool.Namespace)
	patch.SetName(pool.Name)
	patch.SetUID(pool.UID)
	patch.SetResourceVersion(pool.ResourceVersion)
	patch.SetFinalizers(finalizers)
	if err := r.client.Apply(ctx, client.ApplyConfigurationFromUnstructured(patch), fieldOwner, client.ForceOwnership); err != nil {
		return nil, fmt.Errorf("write the pool's finalizers: %w", err)
	}
	written := &v1alpha1.InferencePool{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(patch.Object, written); err != nil {
		return nil, fmt.Errorf("read back the pool's finalizers: %w", err)
	}
	return written, nil
}

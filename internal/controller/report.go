package controller

import (
	"context"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/berthmaster/berthmaster/api/v1alpha1"
	"github.com/berthmaster/berthmaster/internal/router"
)

// fieldOwner owns the whole status.
const fieldOwner client.FieldOwner = "berthmaster"

// statusPause is the least time between two writes of a pool's status that record no fact.
const statusPause = time.Second

// report writes the status of a pool whose plan was carried out, if it differs, and tells the router
// which facts are in it. The result is when to report again what was held back to merge it; 0: nothing
// was.
func (r *Reconciler) report(ctx context.Context, w *world, p *plan) (time.Duration, error) {
	if w.pool == nil || w.tenure.standing != standingLeads || p.course == courseWait {
		return 0, nil // there is nothing to report on, or no authority to
	}
	now := r.clock.Now()
	before := w.current()
	a := account{
		plan: p, snapshot: w.tenure.table.Snapshot(now), verdicts: messagesOf(w), before: &before.Status,
		generation: w.pool.Generation, spec: &w.pool.Spec, keysFault: w.keysFault,
	}
	status := statusOf(a, now)
	wait := w.tenure.reportedAt.Add(statusPause).Sub(now)
	switch {
	case equality.Semantic.DeepEqual(status, &before.Status):
	case wait > 0 && equality.Semantic.DeepEqual(factsOf(status), factsOf(&before.Status)):
		return wait, nil
	default:
		if err := r.writeStatus(ctx, w, status); err != nil {
			return 0, err
		}
		w.tenure.reportedAt = now
	}
	acknowledge(w.tenure.table, &a.snapshot, now)
	return 0, nil
}

// current is the pool as this reconcile last wrote or read it.
func (w *world) current() *v1alpha1.InferencePool {
	if written := w.tenure.written; written != nil && newer(written, w.pool) {
		return written
	}
	return w.pool
}

// messagesOf is what the prober says of each backend that is not well.
func messagesOf(w *world) map[string]string {
	messages := make(map[string]string, len(w.verdicts))
	for incarnation, verdict := range w.verdicts {
		messages[incarnation] = verdict.Message
	}
	return messages
}

// facts are the parts of a status that a report must not hold back. The other facts are written
// before the plan is carried out.
type facts struct {
	Failure  *v1alpha1.PoolFailure
	Isolated map[string]metav1.Time
}

func factsOf(status *v1alpha1.InferencePoolStatus) facts {
	f := facts{Failure: status.Failure, Isolated: map[string]metav1.Time{}}
	for i := range status.Backends {
		if at := status.Backends[i].IsolationStartTime; at != nil {
			f.Isolated[status.Backends[i].Incarnation] = *at
		}
	}
	return f
}

// acknowledge tells the router which facts are in the status: releases wait for that.
func acknowledge(table *router.Table, written *router.Snapshot, now time.Time) {
	if f := written.Failure; f != nil && !f.Recorded {
		table.FailureRecorded(f.Request, now)
	}
	for i := range written.Backends {
		if b := &written.Backends[i]; b.Isolated && !b.IsolationRecorded {
			table.IsolationRecorded(b.Incarnation, now)
		}
	}
}

// ownStatus is a status without the conditions that somebody else put there: whoever writes them must
// be able to change them and take them away.
func ownStatus(status *v1alpha1.InferencePoolStatus) *v1alpha1.InferencePoolStatus {
	own := status.DeepCopy()
	own.Conditions = slices.DeleteFunc(own.Conditions, func(c metav1.Condition) bool { return !ownCondition(c.Type) })
	return own
}

// writeStatus replaces the status by server-side apply, on the condition that nobody has changed
// the pool since it was read: whoever wrote a higher term in between must be seen first.
func (r *Reconciler) writeStatus(ctx context.Context, w *world, status *v1alpha1.InferencePoolStatus) error {
	before, err := r.cast(ctx, w.current(), status)
	if err != nil {
		return err
	}
	w.tenure.written = before
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(ownStatus(status))
	if err != nil {
		return fmt.Errorf("write the status: %w", err)
	}
	patch := patchOf(before)
	patch.Object["status"] = content
	if err := r.client.Status().Apply(ctx, client.ApplyConfigurationFromUnstructured(patch), fieldOwner, client.ForceOwnership); err != nil {
		return fmt.Errorf("write the status: %w", err)
	}
	written, err := poolIn(patch)
	if err != nil {
		return err
	}
	changes := changesBetween(&before.Status, &written.Status)
	r.events.record(w.pool, changes)
	logChanges(w.lines(ctx, written.Status.Term), changes)
	w.tenure.written, w.setBack = written, false
	return nil
}

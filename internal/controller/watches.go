package controller

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/berthmaster/berthmaster/api/v1alpha1"
	"github.com/berthmaster/berthmaster/internal/router"
)

// queue is where handlers put the pools to reconcile.
type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]

// news lets those updates of a pool through that are not our own status writes: a new spec, or a term,
// which another process may have raised.
func news() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		before, knownBefore := e.ObjectOld.(*v1alpha1.InferencePool)
		after, knownAfter := e.ObjectNew.(*v1alpha1.InferencePool)
		return !knownBefore || !knownAfter ||
			before.Generation != after.Generation || before.Status.Term != after.Status.Term || before.UID != after.UID ||
			before.DeletionTimestamp.IsZero() != after.DeletionTimestamp.IsZero()
	}}
}

// podHandler takes from the events of pods the proofs that engine processes have ended, at once and
// before any reconcile, and wakes the pools that a pod concerns. Events of one pod come in the order
// in which the API server saw its states, which a reconcile that reads the cache could miss.
func (r *Reconciler) podHandler() handler.TypedEventHandler[*corev1.Pod, reconcile.Request] {
	return handler.TypedFuncs[*corev1.Pod, reconcile.Request]{
		CreateFunc: func(_ context.Context, e event.TypedCreateEvent[*corev1.Pod], q queue) {
			if e.IsInInitialList || r.follows() {
				r.origins.met(currentLives(e.Object))
			}
			r.bury(endedLives(e.Object), e.Object)
			r.wakePools(q, e.Object)
		},
		UpdateFunc: func(_ context.Context, e event.TypedUpdateEvent[*corev1.Pod], q queue) {
			ended := append(endedLives(e.ObjectNew), supersededLives(e.ObjectOld, e.ObjectNew)...)
			r.bury(ended, e.ObjectOld, e.ObjectNew)
			r.origins.forget(ended)
			if r.follows() {
				r.origins.met(currentLives(e.ObjectNew))
			}
			r.wakePools(q, e.ObjectOld, e.ObjectNew)
		},
		DeleteFunc: func(_ context.Context, e event.TypedDeleteEvent[*corev1.Pod], q queue) {
			r.bury(endedLives(e.Object), e.Object)
			r.origins.forget(append(currentLives(e.Object), endedLives(e.Object)...))
			r.wakePools(q, e.Object)
		},
	}
}

// follows reports whether another process may grant on what this one meets.
func (r *Reconciler) follows() bool {
	command, _ := r.leadership.at(r.clock.Now())
	return command == authorityNone
}

// bury tells every pool of the namespace that lives of a pod have ended: which of them counted something
// there, each table knows itself. Those that any of the states of the pod concerns remember it, too.
func (r *Reconciler) bury(lives []router.Incarnation, states ...*corev1.Pod) {
	if len(lives) == 0 {
		return
	}
	now := r.clock.Now()
	for _, t := range r.tenures.in(states[0].Namespace) {
		if slices.ContainsFunc(states, t.mayCount) {
			t.bury(lives, now)
		} else {
			t.table.Gone(lives, now)
		}
	}
}

// wakePools has the pools reconciled that any of the states of a pod concerns.
func (r *Reconciler) wakePools(q queue, states ...*corev1.Pod) {
	for _, t := range r.tenures.in(states[0].Namespace) {
		for _, pod := range states {
			if t.concerns(pod.UID, labels.Set(pod.Labels)) {
				q.Add(reconcile.Request{NamespacedName: t.key})
				break
			}
		}
	}
}

// tableHandler reconciles a pool whose table has changed.
func tableHandler() handler.TypedEventHandler[types.NamespacedName, reconcile.Request] {
	return handler.TypedFuncs[types.NamespacedName, reconcile.Request]{
		GenericFunc: func(_ context.Context, e event.TypedGenericEvent[types.NamespacedName], q queue) {
			q.Add(reconcile.Request{NamespacedName: e.Object})
		},
	}
}

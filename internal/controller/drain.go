package controller

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/berthmaster/berthmaster/api/v1alpha1"
	"github.com/berthmaster/berthmaster/internal/router"
)

// drainCause is a reason to drain a backend; the zero value is none.
type drainCause struct {
	reason v1alpha1.BackendReason
	mode   router.Drain
}

// drainOfPod is the drain that a pod carries itself: deletion from its deletionTimestamp on, or
// the annotation. Deletion wins, since a session cannot stay on a pod that ends.
func drainOfPod(pod *corev1.Pod) drainCause {
	if pod.DeletionTimestamp != nil {
		return drainCause{reason: v1alpha1.ReasonPodDeleted, mode: router.DrainMove}
	}
	value, annotated := pod.Annotations[v1alpha1.AnnotationDrain]
	switch {
	case !annotated:
		return drainCause{}
	case value == string(v1alpha1.DrainKeep):
		return drainCause{reason: v1alpha1.ReasonDrainAnnotation, mode: router.DrainKeep}
	default:
		return drainCause{reason: v1alpha1.ReasonDrainAnnotation, mode: router.DrainMove}
	}
}

// drain is what a plan does about the drain of one incarnation; the zero value is nothing.
type drain struct {
	mode   router.Drain
	reason v1alpha1.BackendReason
	// start is a fact: when it began, to the second. Zero: there is no drain.
	start time.Time
	// deadline is when it should have ended. Zero: there is none.
	deadline time.Time
}

// planDrain joins the drain that a backend carries and the one that the spec asks for by name.
func planDrain(own drainCause, asked *v1alpha1.DrainSpec, began time.Time, now time.Time) drain {
	if own.reason == "" && asked == nil {
		return drain{}
	}
	d := drain{mode: own.mode, reason: own.reason, start: began}
	if d.start.IsZero() {
		d.start = now.Truncate(time.Second)
	}
	if asked == nil {
		return d
	}
	d.reason = v1alpha1.ReasonDrainRequested
	if d.mode != router.DrainMove {
		d.mode = modeOf(asked.Sessions)
	}
	if asked.DeadlineSeconds > 0 {
		d.deadline = d.start.Add(seconds(asked.DeadlineSeconds))
	}
	if d.late(now) {
		d.reason = v1alpha1.ReasonDeadlineExceeded
		if asked.OnDeadline == v1alpha1.DeadlineAbort {
			d.mode = router.DrainAbort
		}
	}
	return d
}

// late reports whether the drain is past its deadline.
func (d drain) late(now time.Time) bool { return !d.deadline.IsZero() && !now.Before(d.deadline) }

func modeOf(sessions v1alpha1.DrainSessions) router.Drain {
	if sessions == v1alpha1.DrainKeep {
		return router.DrainKeep
	}
	return router.DrainMove
}

// drainsByName indexes spec.drain.
func drainsByName(spec *v1alpha1.InferencePoolSpec) map[string]*v1alpha1.DrainSpec {
	byName := make(map[string]*v1alpha1.DrainSpec, len(spec.Drain))
	for i := range spec.Drain {
		byName[spec.Drain[i].Backend] = &spec.Drain[i]
	}
	return byName
}

// drainStart is when a drain of the incarnation began, from the status. A drain by name goes on
// across incarnations, so that its earliest start counts; one of the pod's own is the pod's.
func drainStart(entries []v1alpha1.BackendStatus, name, incarnation string, asked *v1alpha1.DrainSpec) time.Time {
	var start time.Time
	for i := range entries {
		entry := &entries[i]
		if entry.Name != name || entry.DrainStartTime == nil || (asked == nil && entry.Incarnation != incarnation) {
			continue
		}
		if began := entry.DrainStartTime.Time; start.IsZero() || began.Before(start) {
			start = began
		}
	}
	return start
}

// timeOrNil is t as a status has it.
func timeOrNil(t time.Time) *metav1.Time {
	if t.IsZero() {
		return nil
	}
	return &metav1.Time{Time: t}
}

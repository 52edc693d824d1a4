package controller

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/berthmaster/berthmaster/api/v1alpha1"
	"github.com/berthmaster/berthmaster/internal/router"
)

func TestPlanDrain(t *testing.T) {
	deleted := drainCause{reason: v1alpha1.ReasonPodDeleted, mode: router.DrainMove}
	annotated := drainCause{reason: v1alpha1.ReasonDrainAnnotation, mode: router.DrainKeep}
	earlier := noon.Add(-time.Hour)
	for name, c := range map[string]struct {
		own   drainCause
		asked *v1alpha1.DrainSpec
		began time.Time
		want  drain
	}{
		"nobody asks": {want: drain{}},
		"asked by name, begins now and to the second": {
			asked: &v1alpha1.DrainSpec{},
			want:  drain{mode: router.DrainMove, reason: v1alpha1.ReasonDrainRequested, start: noon},
		},
		"asked to keep its sessions": {
			asked: &v1alpha1.DrainSpec{Sessions: v1alpha1.DrainKeep},
			want:  drain{mode: router.DrainKeep, reason: v1alpha1.ReasonDrainRequested, start: noon},
		},
		"goes on from when it began": {
			asked: &v1alpha1.DrainSpec{}, began: earlier,
			want: drain{mode: router.DrainMove, reason: v1alpha1.ReasonDrainRequested, start: earlier},
		},
		"annotated": {
			own:  annotated,
			want: drain{mode: router.DrainKeep, reason: v1alpha1.ReasonDrainAnnotation, start: noon},
		},
		"asked to keep the sessions of a pod that is being deleted, which cannot be": {
			own: deleted, asked: &v1alpha1.DrainSpec{Sessions: v1alpha1.DrainKeep},
			want: drain{mode: router.DrainMove, reason: v1alpha1.ReasonDrainRequested, start: noon},
		},
		"in time": {
			asked: &v1alpha1.DrainSpec{DeadlineSeconds: 3601, OnDeadline: v1alpha1.DeadlineAbort}, began: earlier,
			want: drain{mode: router.DrainMove, reason: v1alpha1.ReasonDrainRequested, start: earlier, deadline: noon.Add(time.Second)},
		},
		"late, and only says so": {
			asked: &v1alpha1.DrainSpec{DeadlineSeconds: 3600}, began: earlier,
			want: drain{mode: router.DrainMove, reason: v1alpha1.ReasonDeadlineExceeded, start: earlier, deadline: noon},
		},
		"late, and aborts": {
			asked: &v1alpha1.DrainSpec{DeadlineSeconds: 60, OnDeadline: v1alpha1.DeadlineAbort, Sessions: v1alpha1.DrainKeep}, began: earlier,
			want: drain{mode: router.DrainAbort, reason: v1alpha1.ReasonDeadlineExceeded, start: earlier, deadline: earlier.Add(time.Minute)},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if got := planDrain(c.own, c.asked, c.began, noon.Add(time.Millisecond)); got != c.want {
				t.Errorf("got %+v, want %+v", got, c.want)
			}
		})
	}
}

func TestDrainOfPodReadsDeletionBeforeTheAnnotation(t *testing.T) {
	now := metav1.NewTime(noon)
	annotate := func(value string) map[string]string { return map[string]string{v1alpha1.AnnotationDrain: value} }
	for name, c := range map[string]struct {
		meta metav1.ObjectMeta
		want drainCause
	}{
		"plain":             {metav1.ObjectMeta{}, drainCause{}},
		"annotated Move":    {metav1.ObjectMeta{Annotations: annotate("Move")}, drainCause{v1alpha1.ReasonDrainAnnotation, router.DrainMove}},
		"annotated Keep":    {metav1.ObjectMeta{Annotations: annotate("Keep")}, drainCause{v1alpha1.ReasonDrainAnnotation, router.DrainKeep}},
		"annotated nothing": {metav1.ObjectMeta{Annotations: annotate("")}, drainCause{v1alpha1.ReasonDrainAnnotation, router.DrainMove}},
		"being deleted though annotated Keep": {
			metav1.ObjectMeta{Annotations: annotate("Keep"), DeletionTimestamp: &now}, drainCause{v1alpha1.ReasonPodDeleted, router.DrainMove},
		},
	} {
		if got := drainOfPod(&corev1.Pod{ObjectMeta: c.meta}); got != c.want {
			t.Errorf("%s: got %+v, want %+v", name, got, c.want)
		}
	}
}

func TestDrainStartBelongsToTheNameOrToThePod(t *testing.T) {
	at := func(d time.Duration) *metav1.Time { return &metav1.Time{Time: noon.Add(d)} }
	entries := []v1alpha1.BackendStatus{
		{Name: "a", Incarnation: "second", DrainStartTime: at(-time.Minute)},
		{Name: "a", Incarnation: "first", DrainStartTime: at(-time.Hour)},
		{Name: "b", Incarnation: "other", DrainStartTime: at(-24 * time.Hour)},
		{Name: "a", Incarnation: "idle"},
	}
	if got, want := drainStart(entries, "a", "third", &v1alpha1.DrainSpec{}), noon.Add(-time.Hour); !got.Equal(want) {
		t.Errorf("by name: %v, want the earliest of the name, %v", got, want)
	}
	if got, want := drainStart(entries, "a", "second", nil), noon.Add(-time.Minute); !got.Equal(want) {
		t.Errorf("by the pod: %v, want its own, %v", got, want)
	}
	if got := drainStart(entries, "a", "third", nil); !got.IsZero() {
		t.Errorf("by a new pod: %v, want none", got)
	}
}

package controller

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/berthmaster/berthmaster/api/v1alpha1"
)

func TestChangesBetweenTellsEachChangeOnce(t *testing.T) {
	before := &v1alpha1.InferencePoolStatus{
		Term: 1, Epoch: 1,
		Senders: []v1alpha1.SenderStatus{{Name: "train", Access: v1alpha1.SenderStateOpen}, {Name: "eval", Access: v1alpha1.SenderStateFencing}},
		Backends: []v1alpha1.BackendStatus{
			{Name: "a", Incarnation: "u/c", State: v1alpha1.BackendServing},
			{Name: "b", Incarnation: "v/c", State: v1alpha1.BackendServing},
		},
	}
	after := before.DeepCopy()
	after.Term, after.Epoch = 2, 3
	after.Failure = &v1alpha1.PoolFailure{RequestID: "r", Backend: "a"}
	after.Senders[1].Access = v1alpha1.SenderStateFenced
	after.Senders = append(after.Senders, v1alpha1.SenderStatus{Name: "new", Access: v1alpha1.SenderStateOpen})
	after.Backends[0].State, after.Backends[0].Reason = v1alpha1.BackendUnhealthy, v1alpha1.ReasonConnectionRefused
	after.Backends = append(after.Backends, v1alpha1.BackendStatus{Name: "c", State: v1alpha1.BackendPending})
	type brief struct{ Kind, Reason string }
	var got []brief
	for _, c := range changesBetween(before, after) {
		got = append(got, brief{c.kind, c.reason})
	}
	want := []brief{
		{corev1.EventTypeNormal, "TermBegan"}, {corev1.EventTypeNormal, "EpochRaised"}, {corev1.EventTypeWarning, "PoolFailed"},
		{corev1.EventTypeNormal, "SenderFenced"}, {corev1.EventTypeWarning, "BackendUnhealthy"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if again := changesBetween(after, after); len(again) != 0 {
		t.Errorf("nothing changed, yet %v", again)
	}
}

func TestChangesBetweenTellsOfAHoldOnceItIsComplete(t *testing.T) {
	status := func(status metav1.ConditionStatus, reason string) *v1alpha1.InferencePoolStatus {
		return &v1alpha1.InferencePoolStatus{Conditions: []metav1.Condition{{Type: v1alpha1.ConditionHeld, Status: status, Reason: reason}}}
	}
	open := status(metav1.ConditionFalse, v1alpha1.ReasonLeasingOpen)
	holding := status(metav1.ConditionFalse, v1alpha1.ReasonHolding)
	held := status(metav1.ConditionTrue, v1alpha1.ReasonLeasingHeld)
	for name, c := range map[string]struct {
		before, after *v1alpha1.InferencePoolStatus
		want          string
	}{
		"a new pool":           {&v1alpha1.InferencePoolStatus{}, open, ""},
		"begins":               {open, holding, ""},
		"is complete":          {holding, held, "LeasingHeld"},
		"is complete at once":  {open, held, "LeasingHeld"},
		"goes on":              {held, held, ""},
		"something turns up":   {held, holding, ""},
		"ends":                 {held, open, "LeasingOpened"},
		"ends before it began": {holding, open, ""},
	} {
		t.Run(name, func(t *testing.T) {
			got := ""
			for _, change := range changesBetween(c.before, c.after) {
				got += change.reason
			}
			if got != c.want {
				t.Errorf("events %q, want %q", got, c.want)
			}
		})
	}
}

func TestEventsOfTwoBackendsAreNotOneThatHappenedTwice(t *testing.T) {
	pool := &v1alpha1.InferencePool{}
	pool.Name, pool.Namespace, pool.UID = "policy", "rl", "pool"
	pod := partOf(pool, backendPart(&v1alpha1.BackendStatus{Name: "a", Incarnation: "uid/c"}))
	want := &corev1.ObjectReference{
		APIVersion: "v1", Kind: "Pod", Namespace: "rl", Name: "a", UID: "uid", FieldPath: "status.containerStatuses{c}",
	}
	if cmp.Diff(want, pod) != "" {
		t.Errorf("a pod's event is related to %v, want %v", pod, want)
	}
	if again := partOf(pool, backendPart(&v1alpha1.BackendStatus{Name: "a", Incarnation: "uid/d"})); *again == *want {
		t.Errorf("the events of two lives of one pod are both related to %v", pod)
	}
	one := partOf(pool, backendPart(&v1alpha1.BackendStatus{Name: "a", Incarnation: "endpoint:a/1"}))
	other := partOf(pool, backendPart(&v1alpha1.BackendStatus{Name: "b", Incarnation: "endpoint:b/2"}))
	if *one == *other {
		t.Errorf("the events of two endpoints are both related to %v", one)
	}
	if one.Name != "policy" || one.Kind != v1alpha1.InferencePoolKind {
		t.Errorf("an endpoint's event is related to %v, want a part of the pool", one)
	}
}

func TestEventsOfTwoTermsEpochsOrVersionsAreNotOneThatHappenedTwice(t *testing.T) {
	pool := &v1alpha1.InferencePool{}
	status := func(n int64) *v1alpha1.InferencePoolStatus {
		version := fmt.Sprint("step-", n)
		return &v1alpha1.InferencePoolStatus{Term: n, Epoch: n, Weights: &v1alpha1.WeightsStatus{Target: version, Published: version}}
	}
	type told struct {
		reason  string
		related corev1.ObjectReference
	}
	met := map[told]bool{}
	for n := int64(1); n < 4; n++ {
		for _, c := range changesBetween(status(n), status(n+1)) {
			one := told{c.reason, *partOf(pool, c.related)}
			if met[one] {
				t.Errorf("%s of %d is told as the one before, again", c.reason, n+1)
			}
			met[one] = true
		}
	}
	if len(met) != 3*4 {
		t.Errorf("%d events in three changes of term, epoch, target and published version, want 12", len(met))
	}
}

func TestAPoolThatIsLeftWithoutWeightsTellsOfNoVersion(t *testing.T) {
	before := &v1alpha1.InferencePoolStatus{Weights: &v1alpha1.WeightsStatus{Target: "step-1", Published: "step-1"}}
	if got := changesBetween(before, &v1alpha1.InferencePoolStatus{}); len(got) != 0 {
		t.Errorf("%v, want nothing", got)
	}
}

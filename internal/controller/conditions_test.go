package controller

import (
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/berthmaster/berthmaster/api/v1alpha1"
	"github.com/berthmaster/berthmaster/internal/router"
)

// expect compares a condition with what a table wants of it.
func expect(t *testing.T, got metav1.Condition, status metav1.ConditionStatus, reason string) {
	t.Helper()
	if got.Status != status || got.Reason != reason {
		t.Errorf("%s is %s for %s, want %s for %s", got.Type, got.Status, got.Reason, status, reason)
	}
	if got.Message == "" {
		t.Errorf("%s says nothing to a person", got.Type)
	}
}

func TestReadyCondition(t *testing.T) {
	serving := &v1alpha1.PoolSummary{Backends: 2, Serving: 1}
	for name, c := range map[string]struct {
		status  v1alpha1.InferencePoolStatus
		leasing v1alpha1.Leasing
		want    metav1.ConditionStatus
		reason  string
	}{
		"no term":            {v1alpha1.InferencePoolStatus{Summary: serving}, "", metav1.ConditionFalse, v1alpha1.ReasonNoTerm},
		"failed":             {v1alpha1.InferencePoolStatus{Term: 1, Summary: serving, Failure: &v1alpha1.PoolFailure{}}, "", metav1.ConditionFalse, v1alpha1.ReasonPoolFailed},
		"no backend":         {v1alpha1.InferencePoolStatus{Term: 1, Summary: &v1alpha1.PoolSummary{}}, "", metav1.ConditionFalse, v1alpha1.ReasonNoBackends},
		"none serves":        {v1alpha1.InferencePoolStatus{Term: 1, Summary: &v1alpha1.PoolSummary{Backends: 2}}, "", metav1.ConditionFalse, v1alpha1.ReasonNoneServing},
		"one of two serves":  {v1alpha1.InferencePoolStatus{Term: 1, Summary: serving}, v1alpha1.LeasingOpen, metav1.ConditionTrue, v1alpha1.ReasonServing},
		"held":               {v1alpha1.InferencePoolStatus{Term: 1, Summary: serving}, v1alpha1.LeasingHeld, metav1.ConditionFalse, v1alpha1.ReasonLeasingHeld},
		"held and failed":    {v1alpha1.InferencePoolStatus{Term: 1, Summary: serving, Failure: &v1alpha1.PoolFailure{}}, v1alpha1.LeasingHeld, metav1.ConditionFalse, v1alpha1.ReasonPoolFailed},
		"a strange one only": {v1alpha1.InferencePoolStatus{Term: 1, Summary: &v1alpha1.PoolSummary{Backends: 1, Draining: 1}}, "", metav1.ConditionFalse, v1alpha1.ReasonNoneServing},
	} {
		t.Run(name, func(t *testing.T) { expect(t, readyCondition(&c.status, c.leasing), c.want, c.reason) })
	}
}

func TestAvailableCondition(t *testing.T) {
	selector := &v1alpha1.InferencePoolSpec{Backends: v1alpha1.BackendsSpec{Selector: &v1alpha1.PodSelector{}}}
	for name, c := range map[string]struct {
		summary v1alpha1.PoolSummary
		want    metav1.ConditionStatus
		reason  string
	}{
		"nothing matches": {v1alpha1.PoolSummary{}, metav1.ConditionFalse, v1alpha1.ReasonNoBackends},
		"none serves":     {v1alpha1.PoolSummary{Backends: 3}, metav1.ConditionFalse, v1alpha1.ReasonNoneServing},
		"some serve":      {v1alpha1.PoolSummary{Backends: 3, Serving: 2}, metav1.ConditionTrue, v1alpha1.ReasonSomeServing},
		"all serve":       {v1alpha1.PoolSummary{Backends: 3, Serving: 3}, metav1.ConditionTrue, v1alpha1.ReasonAllServing},
	} {
		t.Run(name, func(t *testing.T) { expect(t, availableCondition(&c.summary, selector), c.want, c.reason) })
	}
	if got := availableCondition(&v1alpha1.PoolSummary{}, selector); !strings.Contains(got.Message, "spec.backends.selector") {
		t.Errorf("message %q does not name the selector", got.Message)
	}
}

func TestHeldCondition(t *testing.T) {
	busy := router.BackendSnapshot{Name: "a", Outstanding: 1}
	gone := router.BackendSnapshot{Name: "old", Retired: true, Outstanding: 1}
	unknown := router.BackendSnapshot{Name: "b", UnknownLoad: true}
	idle := router.BackendSnapshot{Name: "c", Sessions: 5, Capacity: 8}
	for name, c := range map[string]struct {
		asked    v1alpha1.Leasing
		told     router.Leasing
		backends []router.BackendSnapshot
		want     metav1.ConditionStatus
		reason   string
	}{
		"nobody holds":                  {"", router.LeasingOpen, []router.BackendSnapshot{idle}, metav1.ConditionFalse, v1alpha1.ReasonLeasingOpen},
		"open by name":                  {v1alpha1.LeasingOpen, router.LeasingOpen, []router.BackendSnapshot{idle}, metav1.ConditionFalse, v1alpha1.ReasonLeasingOpen},
		"reopened, the router not told": {v1alpha1.LeasingOpen, router.LeasingHeld, []router.BackendSnapshot{idle}, metav1.ConditionFalse, v1alpha1.ReasonLeasingOpen},
		"asked, the router not told":    {v1alpha1.LeasingHeld, router.LeasingOpen, []router.BackendSnapshot{idle}, metav1.ConditionFalse, v1alpha1.ReasonHolding},
		"one runs":                      {v1alpha1.LeasingHeld, router.LeasingHeld, []router.BackendSnapshot{idle, busy}, metav1.ConditionFalse, v1alpha1.ReasonHolding},
		"one runs, one unknown":         {v1alpha1.LeasingHeld, router.LeasingHeld, []router.BackendSnapshot{unknown, busy}, metav1.ConditionFalse, v1alpha1.ReasonHolding},
		"one runs on a retired one":     {v1alpha1.LeasingHeld, router.LeasingHeld, []router.BackendSnapshot{idle, gone}, metav1.ConditionFalse, v1alpha1.ReasonHolding},
		"unknown is never idle":         {v1alpha1.LeasingHeld, router.LeasingHeld, []router.BackendSnapshot{idle, unknown}, metav1.ConditionFalse, v1alpha1.ReasonLoadUnknown},
		"sessions alone run nothing":    {v1alpha1.LeasingHeld, router.LeasingHeld, []router.BackendSnapshot{idle}, metav1.ConditionTrue, v1alpha1.ReasonLeasingHeld},
		"nothing runs on no backend":    {v1alpha1.LeasingHeld, router.LeasingHeld, nil, metav1.ConditionTrue, v1alpha1.ReasonLeasingHeld},
	} {
		t.Run(name, func(t *testing.T) {
			expect(t, heldCondition(c.asked, &router.Snapshot{Leasing: c.told, Backends: c.backends}), c.want, c.reason)
		})
	}
}

func TestDrainingCondition(t *testing.T) {
	late := &plan{berths: []berth{{sighting: sighting{name: "a"}, drain: drain{deadline: noon.Add(-time.Second)}}}}
	entry := func(name string, state v1alpha1.BackendState) v1alpha1.BackendStatus {
		return v1alpha1.BackendStatus{Name: name, State: state}
	}
	for name, c := range map[string]struct {
		plan     *plan
		backends []v1alpha1.BackendStatus
		want     metav1.ConditionStatus
		reason   string
	}{
		"nothing drains":            {&plan{}, []v1alpha1.BackendStatus{entry("a", v1alpha1.BackendServing)}, metav1.ConditionFalse, v1alpha1.ReasonNotDraining},
		"one drains, one has":       {&plan{}, []v1alpha1.BackendStatus{entry("a", v1alpha1.BackendDraining), entry("b", v1alpha1.BackendDrained)}, metav1.ConditionTrue, v1alpha1.ReasonDrainsInProgress},
		"one is late":               {late, []v1alpha1.BackendStatus{entry("a", v1alpha1.BackendDraining)}, metav1.ConditionTrue, v1alpha1.ReasonDrainsLate},
		"what was late has ended":   {late, []v1alpha1.BackendStatus{entry("a", v1alpha1.BackendDrained)}, metav1.ConditionFalse, v1alpha1.ReasonAllDrained},
		"another than the late one": {late, []v1alpha1.BackendStatus{entry("b", v1alpha1.BackendDraining)}, metav1.ConditionTrue, v1alpha1.ReasonDrainsInProgress},
	} {
		t.Run(name, func(t *testing.T) { expect(t, drainingCondition(c.backends, c.plan, noon), c.want, c.reason) })
	}
}

func TestFencedCondition(t *testing.T) {
	sender := func(name string, state v1alpha1.SenderState) v1alpha1.SenderStatus {
		return v1alpha1.SenderStatus{Name: name, Access: state}
	}
	for name, c := range map[string]struct {
		senders []v1alpha1.SenderStatus
		want    metav1.ConditionStatus
		reason  string
	}{
		"all open":               {[]v1alpha1.SenderStatus{sender("a", v1alpha1.SenderStateOpen)}, metav1.ConditionFalse, v1alpha1.ReasonNoneFenced},
		"one fenced":             {[]v1alpha1.SenderStatus{sender("a", v1alpha1.SenderStateOpen), sender("b", v1alpha1.SenderStateFenced)}, metav1.ConditionTrue, v1alpha1.ReasonFenced},
		"one fenced, one fences": {[]v1alpha1.SenderStatus{sender("a", v1alpha1.SenderStateFencing), sender("b", v1alpha1.SenderStateFenced)}, metav1.ConditionFalse, v1alpha1.ReasonFencing},
	} {
		t.Run(name, func(t *testing.T) { expect(t, fencedCondition(c.senders), c.want, c.reason) })
	}
}

func TestFailedCondition(t *testing.T) {
	expect(t, failedCondition(nil), metav1.ConditionFalse, v1alpha1.ReasonNotFailed)
	failure := &v1alpha1.PoolFailure{RequestID: "r-1", SessionID: "s-1", Backend: "a"}
	got := failedCondition(failure)
	expect(t, got, metav1.ConditionTrue, v1alpha1.ReasonAmbiguousExecution)
	for _, part := range []string{"r-1", "s-1", "backend a", "spec.epoch"} {
		if !strings.Contains(got.Message, part) {
			t.Errorf("message %q does not say %s", got.Message, part)
		}
	}
}

func TestNamesAreTheSameInAnyOrderAndBounded(t *testing.T) {
	if one, other := names([]string{"b", "a", "b"}), names([]string{"a", "b"}); one != "a, b" || other != one {
		t.Errorf("%q and %q, want both to be a, b", one, other)
	}
	var many []string
	for i := range 20 {
		many = append(many, fmt.Sprintf("n%02d", i))
	}
	if got, want := names(many), "n00, n01, n02, n03, n04, n05, n06, n07 and 12 more"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestSetConditionsKeepsTheTransitionTimeOfWhatStays(t *testing.T) {
	status := &v1alpha1.InferencePoolStatus{}
	open := condition(v1alpha1.ConditionFailed, metav1.ConditionFalse, v1alpha1.ReasonNotFailed, "fine")
	setConditions(status, []metav1.Condition{open}, 1, noon)
	setConditions(status, []metav1.Condition{open}, 2, noon.Add(time.Hour))
	if got := status.Conditions[0]; !got.LastTransitionTime.Time.Equal(noon) || got.ObservedGeneration != 2 {
		t.Errorf("transition at %v of generation %d, want noon and 2", got.LastTransitionTime, got.ObservedGeneration)
	}
	failed := condition(v1alpha1.ConditionFailed, metav1.ConditionTrue, v1alpha1.ReasonAmbiguousExecution, "not fine")
	setConditions(status, []metav1.Condition{failed}, 2, noon.Add(2*time.Hour))
	if got := status.Conditions[0].LastTransitionTime.Time; !got.Equal(noon.Add(2 * time.Hour)) {
		t.Errorf("transition at %v, want two hours after noon", got)
	}
}

func TestEveryConditionIsOwnedAndOfTheGenerationActedOn(t *testing.T) {
	w := worldWith(running("a"))
	w.pool.Generation = 7
	w.pool.Status.Conditions = []metav1.Condition{{Type: "example.com/Foreign", Status: metav1.ConditionTrue, ObservedGeneration: 1}}
	status := statusOf(accountOf(w, router.Snapshot{Epoch: 1}, noon), noon)
	own := ownStatus(status)
	if len(own.Conditions) != len(status.Conditions)-1 {
		t.Errorf("%d conditions are written of %d, want all but the foreign one", len(own.Conditions), len(status.Conditions))
	}
	for _, c := range own.Conditions {
		if c.ObservedGeneration != 7 {
			t.Errorf("%s is of generation %d, want 7", c.Type, c.ObservedGeneration)
		}
	}
}

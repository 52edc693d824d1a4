package controller

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/berthmaster/berthmaster/api/v1alpha1"
	"github.com/berthmaster/berthmaster/internal/rollout"
	"github.com/berthmaster/berthmaster/internal/router"
)

// tell puts what the rollout says of the pool as a whole into a fleet.
func (p *weightsPlan) tell(fleet *router.Fleet) {
	if p.facts != nil {
		fleet.Published = router.Version(p.facts.Published)
	}
	fleet.Target = router.Version(p.rollout.Second)
	switch p.rollout.Leases {
	case rollout.LeasesStopped:
		fleet.Leasing = router.LeasingHeld
	case rollout.LeasesEndingPins:
		fleet.Pins = router.PinsEnding
	case rollout.LeasesOpen:
	}
}

// told is what the router has been told by the rollout once the fleet is handed over.
func (p *plan) told() toldRollout {
	told := toldRollout{leases: p.weights.rollout.Leases, drains: map[router.Incarnation]rollout.Drain{}}
	for i := range p.weights.rollout.Backends {
		b := &p.weights.rollout.Backends[i]
		told.drains[router.Incarnation(b.Incarnation)] = b.Drain
	}
	return told
}

// recorded are the facts about the pool's weights as the status has them before a plan is carried out.
// The end of a fence or hold is recorded before the router is told of it.
func (p *weightsPlan) recorded() *v1alpha1.WeightsStatus {
	if p.facts == nil {
		return nil
	}
	facts := p.facts.DeepCopy()
	facts.QuietTime = p.still(facts.QuietTime)
	if *facts == (v1alpha1.WeightsStatus{}) {
		return nil
	}
	return facts
}

// reported is recorded, with how far the backends are.
func (p *weightsPlan) reported() *v1alpha1.WeightsStatus {
	status := p.recorded()
	if status == nil {
		return nil
	}
	status.Progress = ""
	if p.version != "" {
		status.Progress = fmt.Sprintf("%d/%d", p.rollout.Ready, p.rollout.Total)
	}
	return status
}

// convergedReasons are a rollout's reasons as reasons of the condition.
var convergedReasons = map[rollout.Reason]string{
	rollout.CatchingUp: v1alpha1.ReasonCatchingUp, rollout.WaitingForPins: v1alpha1.ReasonWaitingForPins,
	rollout.InProgress: v1alpha1.ReasonRolloutInProgress, rollout.BackendsFailing: v1alpha1.ReasonBackendsFailing,
	rollout.DeadlineExceeded: v1alpha1.ReasonRolloutDeadlineExceeded, rollout.EnginesHeld: v1alpha1.ReasonEnginesHeld,
}

// weightsCondition: every backend is on the version that the spec names, which is published.
func weightsCondition(spec *v1alpha1.InferencePoolSpec, p *rollout.Plan) metav1.Condition {
	const kind = v1alpha1.ConditionWeightsConverged
	switch {
	case spec.Weights == nil:
		return condition(kind, metav1.ConditionFalse, v1alpha1.ReasonVersionsNotManaged, "spec.weights names no version: versions are not looked at")
	case p.Reason == rollout.Converged:
		return condition(kind, metav1.ConditionTrue, v1alpha1.ReasonConverged, "every backend is on "+string(p.Published))
	default:
		return condition(kind, metav1.ConditionFalse, convergedReasons[p.Reason], p.Message)
	}
}

// weightChanges tells that a version is asked for, and that one is published.
func weightChanges(before, after *v1alpha1.InferencePoolStatus) []change {
	var was, now v1alpha1.WeightsStatus
	if before.Weights != nil {
		was = *before.Weights
	}
	if after.Weights != nil {
		now = *after.Weights
	}
	about := func(version string) *corev1.ObjectReference {
		return &corev1.ObjectReference{FieldPath: "spec.weights{" + version + "}"}
	}
	var changes []change
	if now.Target != was.Target && now.Target != "" {
		changes = append(changes, change{corev1.EventTypeNormal, "RolloutBegan", "Rollout", fmt.Sprintf("the backends are to come to %s", now.Target), about(now.Target), []any{"version", now.Target}})
	}
	if now.Published != was.Published && now.Published != "" {
		changes = append(changes, change{corev1.EventTypeNormal, "VersionPublished", "Publish", fmt.Sprintf("every lease promises %s", now.Published), about(now.Published), []any{"version", now.Published}})
	}
	return changes
}

// ready is whether leases can be granted, which a pause or a change of weights may forbid for a while.
func (a account) ready(status *v1alpha1.InferencePoolStatus) metav1.Condition {
	ready := readyCondition(status, a.spec.Leasing)
	open := ready.Reason == v1alpha1.ReasonServing || ready.Reason == v1alpha1.ReasonNoneServing
	switch {
	case !open:
		return ready
	case pauseOf(a.spec.EngineMode).asked():
		return condition(v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonEnginesPaused, "spec.engineMode pauses the engines: clients wait")
	case a.plan.weights.rollout.Leases == rollout.LeasesStopped:
		return condition(v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonRolloutInProgress, "the weights are being changed: clients wait")
	default:
		return ready
	}
}

package controller

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/berthmaster/berthmaster/api/v1alpha1"
	"github.com/berthmaster/berthmaster/internal/rollout"
)

// engineState is the state of a backend whose engine this operator has to do with.
func engineState(b *berth) (v1alpha1.BackendState, v1alpha1.BackendReason, string) {
	switch {
	case b.engine.fault != "":
		return b.engine.state, v1alpha1.ReasonEngineCallFailed, b.engine.fault
	case b.engine.state != "":
		return b.engine.state, v1alpha1.ReasonEngineMode, ""
	case b.engine.activity == rollout.Failed:
		return v1alpha1.BackendPending, v1alpha1.ReasonRolloutFailed, b.engine.message
	default:
		return activityStates[b.engine.activity], v1alpha1.ReasonWeights, b.engine.message
	}
}

// activityStates are a rollout's activities as states of a backend. One that serves, or cannot be spoken
// to, is in the state that its health gives it.
var activityStates = map[rollout.Activity]v1alpha1.BackendState{
	rollout.Draining: v1alpha1.BackendDraining, rollout.Pausing: v1alpha1.BackendPausing,
	rollout.Updating: v1alpha1.BackendUpdating, rollout.Verifying: v1alpha1.BackendVerifying,
	rollout.Resuming: v1alpha1.BackendContinuing,
}

// shows reports whether a pause or a change of weights is what the backend is about.
func (e engineWork) shows() bool {
	_, named := activityStates[e.activity]
	return named || e.activity == rollout.Failed || e.state != ""
}

// bears reports whether the work has facts to record.
func (e engineWork) bears() bool { return e.paused.asked() || e.updating != "" }

// hasEngineFacts reports whether an entry bears facts about its engine.
func hasEngineFacts(entry *v1alpha1.BackendStatus) bool {
	return pausedIn(entry).asked() || entry.Updating != "" || entry.DeclaredVersion != "" || entry.QuietSince != nil
}

// recordEngine writes the facts about a berth's engine into its entry.
func (b *berth) recordEngine(entry *v1alpha1.BackendStatus) {
	entry.PausedBy, entry.PauseMode = b.engine.paused.by, b.engine.paused.mode
	entry.Updating, entry.DeclaredVersion = string(b.engine.updating), string(b.declared)
}

// pauseCount is how far the engines of a pool are with a pause, or with its end.
type pauseCount struct {
	members, paused, continuing int
	unasked, failing, others    []string
}

func countPauses(p *plan) pauseCount {
	var c pauseCount
	for i := range p.berths {
		b := &p.berths[i]
		if b.pausable() {
			c.members++
			if b.engine.state == v1alpha1.BackendPaused {
				c.paused++
			}
		}
		if b.engine.state == v1alpha1.BackendContinuing {
			c.continuing++
		}
		switch {
		case b.engine.fault != "":
			c.failing = append(c.failing, b.name)
		case b.engine.delay == delayOthers:
			c.others = append(c.others, b.name)
		case b.engine.state == v1alpha1.BackendPausing || b.engine.delay == delayUnserving:
			c.unasked = append(c.unasked, b.name)
		}
	}
	return c
}

// enginesCondition: the spec asks for a pause and every engine has answered that it is paused.
func enginesCondition(asked v1alpha1.EngineMode, p *plan) metav1.Condition {
	const kind = v1alpha1.ConditionEnginesPaused
	c := countPauses(p)
	progress := fmt.Sprintf("%d/%d engines are paused", c.paused, c.members)
	switch {
	case len(c.failing) > 0:
		return condition(kind, metav1.ConditionFalse, v1alpha1.ReasonEngineCallsFailed,
			progress+"; status.backends says what went wrong on: "+names(c.failing))
	case c.continuing > 0:
		return condition(kind, metav1.ConditionFalse, v1alpha1.ReasonContinuing,
			fmt.Sprintf("%d/%d engines have not answered yet that they go on", c.continuing, c.members))
	case !pauseOf(asked).asked():
		return condition(kind, metav1.ConditionFalse, v1alpha1.ReasonEnginesRunning, "the engines are to run")
	case len(c.unasked) > 0:
		return condition(kind, metav1.ConditionFalse, v1alpha1.ReasonPausing, progress+"; waiting for: "+names(c.unasked))
	case len(c.others) > 0:
		return condition(kind, metav1.ConditionFalse, v1alpha1.ReasonPausedByOthers,
			progress+"; somebody else seems to have paused: "+names(c.others))
	default:
		return condition(kind, metav1.ConditionTrue, v1alpha1.ReasonEnginesPaused, progress)
	}
}

// pauseChanges tells that a pause is complete, and that one which was has ended.
func pauseChanges(before, after []metav1.Condition) []change {
	was := meta.FindStatusCondition(before, v1alpha1.ConditionEnginesPaused)
	now := meta.FindStatusCondition(after, v1alpha1.ConditionEnginesPaused)
	switch {
	case now == nil || was != nil && was.Reason == now.Reason:
		return nil
	case now.Status == metav1.ConditionTrue:
		return []change{{corev1.EventTypeNormal, "EnginesPaused", "Pause", now.Message, nil, nil}}
	case now.Reason == v1alpha1.ReasonEnginesRunning && was != nil:
		return []change{{corev1.EventTypeNormal, "EnginesContinued", "Continue", "every engine that was paused goes on", nil, nil}}
	default:
		return nil
	}
}

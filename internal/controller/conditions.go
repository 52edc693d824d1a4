package controller

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/berthmaster/berthmaster/api/v1alpha1"
	"github.com/berthmaster/berthmaster/internal/router"
)

// maxNames is how many names a condition's message lists.
const maxNames = 8

// conditionsOf are all conditions of a pool, from everything else in its status.
func conditionsOf(backends []v1alpha1.BackendStatus, status *v1alpha1.InferencePoolStatus, a account, now time.Time) []metav1.Condition {
	return []metav1.Condition{
		a.ready(status),
		availableCondition(status.Summary, a.spec),
		heldCondition(a.spec.Leasing, &a.snapshot),
		enginesCondition(a.spec.EngineMode, a.plan),
		weightsCondition(a.spec, &a.plan.weights.rollout),
		drainingCondition(backends, a.plan, now),
		fencedCondition(status.Senders),
		failedCondition(status.Failure),
	}
}

// ownCondition reports whether conditions of a type are this controller's.
func ownCondition(kind string) bool {
	switch kind {
	case v1alpha1.ConditionReady, v1alpha1.ConditionBackendsAvailable, v1alpha1.ConditionHeld, v1alpha1.ConditionEnginesPaused,
		v1alpha1.ConditionDraining, v1alpha1.ConditionSendersFenced, v1alpha1.ConditionFailed, v1alpha1.ConditionWeightsConverged:
		return true
	}
	return false
}

// setConditions puts conditions into a status; one that stays what it is keeps its transition time.
func setConditions(status *v1alpha1.InferencePoolStatus, conditions []metav1.Condition, generation int64, now time.Time) {
	for _, condition := range conditions {
		condition.ObservedGeneration = generation
		condition.LastTransitionTime = toTheSecond(now)
		meta.SetStatusCondition(&status.Conditions, condition)
	}
}

func condition(kind string, status metav1.ConditionStatus, reason, message string) metav1.Condition {
	return metav1.Condition{Type: kind, Status: status, Reason: reason, Message: message}
}

// readyCondition: leases can be granted.
func readyCondition(status *v1alpha1.InferencePoolStatus, leasing v1alpha1.Leasing) metav1.Condition {
	switch {
	case status.Term == 0:
		return condition(v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonNoTerm, "no router has taken the pool over yet")
	case status.Failure != nil:
		return condition(v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonPoolFailed,
			"the pool has failed; raise spec.epoch once what may still run is dealt with")
	case status.Summary.Backends == 0:
		return condition(v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonNoBackends, "there is no backend")
	case status.Summary.Serving == 0:
		return condition(v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonNoneServing, "no backend serves")
	case leasing == v1alpha1.LeasingHeld:
		return condition(v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonLeasingHeld, "spec.leasing is Held: clients wait")
	default:
		return condition(v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonServing, "leases are granted")
	}
}

// availableCondition: at least one backend serves.
func availableCondition(summary *v1alpha1.PoolSummary, spec *v1alpha1.InferencePoolSpec) metav1.Condition {
	switch {
	case summary.Backends == 0 && spec.Backends.Selector != nil:
		return condition(v1alpha1.ConditionBackendsAvailable, metav1.ConditionFalse, v1alpha1.ReasonNoBackends,
			"spec.backends.selector matches no pod in the pool's namespace")
	case summary.Backends == 0:
		return condition(v1alpha1.ConditionBackendsAvailable, metav1.ConditionFalse, v1alpha1.ReasonNoBackends, "spec.backends names no endpoint")
	case summary.Serving == 0:
		return condition(v1alpha1.ConditionBackendsAvailable, metav1.ConditionFalse, v1alpha1.ReasonNoneServing,
			"no backend serves; status.backends says why")
	case summary.Serving < summary.Backends:
		return condition(v1alpha1.ConditionBackendsAvailable, metav1.ConditionTrue, v1alpha1.ReasonSomeServing,
			"some backends do not serve; status.backends says why")
	default:
		return condition(v1alpha1.ConditionBackendsAvailable, metav1.ConditionTrue, v1alpha1.ReasonAllServing, "every backend serves")
	}
}

// heldCondition: leasing is held, by the router's word too, and nothing is counted or unknown on any
// incarnation, retired ones included.
func heldCondition(asked v1alpha1.Leasing, seen *router.Snapshot) metav1.Condition {
	var counted, unknown []string
	for i := range seen.Backends {
		b := &seen.Backends[i]
		if b.Outstanding > 0 {
			counted = append(counted, string(b.Name))
		}
		if b.UnknownLoad {
			unknown = append(unknown, string(b.Name))
		}
	}
	switch {
	case asked != v1alpha1.LeasingHeld:
		return condition(v1alpha1.ConditionHeld, metav1.ConditionFalse, v1alpha1.ReasonLeasingOpen, "leasing is not held")
	case seen.Leasing != router.LeasingHeld:
		return condition(v1alpha1.ConditionHeld, metav1.ConditionFalse, v1alpha1.ReasonHolding, "the router has not been told yet")
	case len(counted) > 0:
		return condition(v1alpha1.ConditionHeld, metav1.ConditionFalse, v1alpha1.ReasonHolding, "executions are counted on: "+names(counted))
	case len(unknown) > 0:
		return condition(v1alpha1.ConditionHeld, metav1.ConditionFalse, v1alpha1.ReasonLoadUnknown,
			"executions of an earlier term or pool may be running on: "+names(unknown))
	default:
		return condition(v1alpha1.ConditionHeld, metav1.ConditionTrue, v1alpha1.ReasonLeasingHeld, "no lease is granted and nothing is running")
	}
}

// drainingCondition: a drain goes on that has not ended.
func drainingCondition(backends []v1alpha1.BackendStatus, p *plan, now time.Time) metav1.Condition {
	going := namesIn(backends, v1alpha1.BackendDraining)
	overdue := slices.DeleteFunc(slices.Clone(going), func(name string) bool { return !p.lateFor(name, now) })
	switch {
	case len(overdue) > 0:
		return condition(v1alpha1.ConditionDraining, metav1.ConditionTrue, v1alpha1.ReasonDrainsLate, "past its deadline: "+names(overdue))
	case len(going) > 0:
		return condition(v1alpha1.ConditionDraining, metav1.ConditionTrue, v1alpha1.ReasonDrainsInProgress, "being drained: "+names(going))
	case p.nodes == nodesBarred:
		return condition(v1alpha1.ConditionDraining, metav1.ConditionUnknown, v1alpha1.ReasonNodesNotWatched,
			"spec.backends.onCordon asks for drains of cordoned nodes, but a manager of one namespace has no right to look at nodes")
	case p.nodes == nodesAwaited:
		return condition(v1alpha1.ConditionDraining, metav1.ConditionUnknown, v1alpha1.ReasonNodesNotWatched,
			"spec.backends.onCordon asks for drains of cordoned nodes, but the nodes have not been listed; if this stays, the manager lacks the right to")
	case len(namesIn(backends, v1alpha1.BackendDrained)) > 0:
		return condition(v1alpha1.ConditionDraining, metav1.ConditionFalse, v1alpha1.ReasonAllDrained, "every drain has ended")
	default:
		return condition(v1alpha1.ConditionDraining, metav1.ConditionFalse, v1alpha1.ReasonNotDraining, "no backend is being drained")
	}
}

// namesIn lists the backends in a state.
func namesIn(backends []v1alpha1.BackendStatus, state v1alpha1.BackendState) []string {
	var list []string
	for i := range backends {
		if backends[i].State == state {
			list = append(list, backends[i].Name)
		}
	}
	return list
}

// lateFor reports whether a drain of a backend of that name is past its deadline.
func (p *plan) lateFor(name string, now time.Time) bool {
	return slices.ContainsFunc(p.berths, func(b berth) bool { return b.name == name && b.drain.late(now) })
}

// fencedCondition: nothing of any fenced sender can be running.
func fencedCondition(senders []v1alpha1.SenderStatus) metav1.Condition {
	var fencing, fenced []string
	for _, sender := range senders {
		switch sender.Access {
		case v1alpha1.SenderStateFencing:
			fencing = append(fencing, sender.Name)
		case v1alpha1.SenderStateFenced:
			fenced = append(fenced, sender.Name)
		case v1alpha1.SenderStateOpen:
		}
	}
	switch {
	case len(fencing) > 0:
		return condition(v1alpha1.ConditionSendersFenced, metav1.ConditionFalse, v1alpha1.ReasonFencing,
			"executions are or may be running of: "+names(fencing))
	case len(fenced) > 0:
		return condition(v1alpha1.ConditionSendersFenced, metav1.ConditionTrue, v1alpha1.ReasonFenced, "fenced: "+names(fenced))
	default:
		return condition(v1alpha1.ConditionSendersFenced, metav1.ConditionFalse, v1alpha1.ReasonNoneFenced, "every sender is open")
	}
}

// failedCondition: an execution of unknown fate failed the pool.
func failedCondition(failure *v1alpha1.PoolFailure) metav1.Condition {
	if failure == nil {
		return condition(v1alpha1.ConditionFailed, metav1.ConditionFalse, v1alpha1.ReasonNotFailed, "the pool has not failed in this epoch")
	}
	return condition(v1alpha1.ConditionFailed, metav1.ConditionTrue, v1alpha1.ReasonAmbiguousExecution, fmt.Sprintf(
		"request %s of session %s on backend %s could not be proven dead; raise spec.epoch once it cannot do harm",
		failure.RequestID, failure.SessionID, failure.Backend))
}

// names lists names in order, so that a message stays the same while its problem does.
func names(list []string) string {
	slices.Sort(list)
	list = slices.Compact(list)
	if more := len(list) - maxNames; more > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(list[:maxNames], ", "), more)
	}
	return strings.Join(list, ", ")
}

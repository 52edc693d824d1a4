package doctor

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/berthmaster/berthmaster/api/v1alpha1"
)

// checkSelector: a selector that matches nothing leaves an empty pool, which looks like one that waits.
func checkSelector(w *World) []Finding {
	chosen := w.Pool.Spec.Backends.Selector
	if chosen == nil || unlooked(w, lookPods) {
		return nil
	}
	selector, err := metav1.LabelSelectorAsSelector(chosen.LabelSelector())
	if err != nil || slices.ContainsFunc(w.Pods, func(p corev1.Pod) bool { return selector.Matches(labels.Set(p.Labels)) }) {
		return nil
	}
	do := "label the engines' pods so, or correct spec.backends.selector"
	if near := nearest(w.Pods, chosen.MatchLabels); near != "" {
		do += "; closest comes " + near
	}
	return one(Finding{SelectorMatchesNothing, Error, "spec.backends.selector",
		fmt.Sprintf("none of the %d pods of namespace %s matches %s; pods of other namespaces are not looked at", len(w.Pods), w.Pool.Namespace, selector), do})
}

// nearest is the pod that has most of the labels, and what it lacks; empty: none has any.
func nearest(pods []corev1.Pod, want map[string]v1alpha1.LabelValue) string {
	best, most, lacks := "", 0, []string(nil)
	for i := range pods {
		var missing []string
		for key, value := range want {
			if pods[i].Labels[key] != string(value) {
				missing = append(missing, fmt.Sprintf("%s=%s", key, value))
			}
		}
		if has := len(want) - len(missing); has > most {
			best, most, lacks = pods[i].Name, has, missing
		}
	}
	if best == "" {
		return ""
	}
	slices.Sort(lacks)
	return fmt.Sprintf("pod %s, which lacks %s", best, strings.Join(lacks, " and "))
}

// advice is what a reason in the status means to a person.
type advice struct {
	fault    Fault
	severity Severity
	what, do string
}

// advices are the reasons that somebody has to act on. Others pass by themselves, or were wanted.
func advices() map[v1alpha1.BackendReason]advice {
	return map[v1alpha1.BackendReason]advice{
		v1alpha1.ReasonSuspectedPaused: {PausedByOthers, Error, "somebody else paused the engine: it answers about itself, and does not generate",
			"whoever paused it (often the trainer, for a weight update) must POST /continue_generation; what this pool did not pause it does not continue"},
		v1alpha1.ReasonBackendConflict: {EngineConflict, Error, "an older pool, or another backend of this one, has the same engine",
			"let one pool select it: an engine in two pools would be counted by neither"},
		v1alpha1.ReasonCapacityUnknown: {CapacityUnknown, Error, "the engine does not say how much it can run at once",
			"set spec.backends.capacity.fallback, or annotate the pod with " + v1alpha1.AnnotationCapacity},
		v1alpha1.ReasonPodNotReady: {PodsNotReady, Error, "its pod is not Ready", "see kubectl describe pod, and the engine's log"},
		v1alpha1.ReasonContainerNotFound: {ContainerNotFound, Error, "the engine's container cannot be told among the pod's",
			"name it in spec.backends.container, or declare the port on it"},
		v1alpha1.ReasonInvalidCapacityAnnotation: {BadAnnotation, Error, "the capacity annotation of its pod is no whole number above 0",
			"correct or remove " + v1alpha1.AnnotationCapacity},
		v1alpha1.ReasonInvalidURL:   {EngineRefuses, Error, "its address makes no usable URL", "correct spec.backends"},
		v1alpha1.ReasonProbesFailed: {EngineUnhealthy, Error, "the engine fails its health probes", "see the engine's log; a scheduler that hangs must be restarted"},
		v1alpha1.ReasonUnknownLoad: {LoadUnknown, Warning, "executions of an earlier term or pool may still run there",
			"it clears itself once the engine is known to be quiet; if the engine process has ended, name the incarnation in spec.confirmedGone"},
		v1alpha1.ReasonPodMissing: {PodLost, Warning, "its pod object went without a word about its containers, so that the process may still run",
			"once the node is known to be off, name the incarnation in spec.confirmedGone"},
		v1alpha1.ReasonBackendNotFound: {DrainOfNobody, Warning, "spec.drain names it, and the pool has no such backend", "correct the name, or kubectl berth undrain it"},
		v1alpha1.ReasonDeadlineExceeded: {DrainLate, Warning, "its drain takes longer than its deadline",
			"see kubectl berth sessions --backend; to end it by force, drain again with --abort-at-deadline"},
	}
}

// checkBackends reads what the status says of each backend.
func checkBackends(w *World) []Finding {
	known := advices()
	var found []Finding
	for i := range w.Pool.Status.Backends {
		b := &w.Pool.Status.Backends[i]
		subject, reason := "backend "+b.Name, reasonOf(w, b)
		switch {
		case reason == v1alpha1.ReasonConnectionRefused:
			found = append(found, refused(w, b))
			continue
		case strings.Contains(b.Message, "may not call this address"):
			found = append(found, Finding{AddressNotAllowed, Error, subject, withMessage("the manager's flags do not let it call "+b.URL, b.Message),
				"if engines are meant to be there, allow it by the manager's flag that the message names"})
			continue
		case b.State == v1alpha1.BackendIsolated:
			found = append(found, Finding{BackendIsolated, Error, subject, withMessage("an execution there could not be proven dead", b.Message),
				"restart the engine, or name the incarnation in spec.confirmedGone once its process has ended: " + b.Incarnation})
			continue
		case reason == v1alpha1.ReasonProbesFailed && keyRejected(w, b.Name):
			continue // that is why
		}
		if a, ok := known[reason]; ok {
			found = append(found, Finding{a.fault, a.severity, subject, withMessage(a.what, b.Message), a.do})
		}
	}
	return found
}

// reasonOf is a backend's reason, and the router's word on its health where the status tells of something
// else, as of a change of weights that waits for it. An engine that the pool itself paused need not answer.
func reasonOf(w *World, b *v1alpha1.BackendStatus) v1alpha1.BackendReason {
	if _, known := advices()[b.Reason]; known || b.Reason == v1alpha1.ReasonConnectionRefused || w.Live == nil || b.PausedBy != "" {
		return b.Reason
	}
	health := map[string]v1alpha1.BackendReason{
		"SuspectedPaused": v1alpha1.ReasonSuspectedPaused, "Unhealthy": v1alpha1.ReasonProbesFailed, "Refused": v1alpha1.ReasonConnectionRefused,
	}
	for i := range w.Live.Backends {
		if l := &w.Live.Backends[i]; l.Incarnation == b.Incarnation && health[l.Health] != "" {
			return health[l.Health]
		}
	}
	return b.Reason
}

func withMessage(what, message string) string {
	if message == "" {
		return what
	}
	return what + " (" + message + ")"
}

// refused: nobody listens. Where the pod declares another port, that is the likely one.
func refused(w *World, b *v1alpha1.BackendStatus) Finding {
	port := w.Pool.Spec.Backends.Port
	declared := declaredPorts(w.Pods, b.Name)
	if port != 0 && len(declared) > 0 && !slices.Contains(declared, port) {
		return Finding{WrongPort, Error, "backend " + b.Name,
			fmt.Sprintf("nobody listens on port %d, and its pod declares %s", port, ports(declared)),
			"set spec.backends.port to the port of the engine's HTTP server"}
	}
	return Finding{EngineRefuses, Error, "backend " + b.Name, "nobody listens at " + b.URL,
		"see whether the engine has started (its log says when it is ready), on that port and on all addresses (--host 0.0.0.0)"}
}

func declaredPorts(pods []corev1.Pod, name string) []int32 {
	var out []int32
	for i := range pods {
		if pods[i].Name != name {
			continue
		}
		for _, c := range pods[i].Spec.Containers {
			for _, p := range c.Ports {
				out = append(out, p.ContainerPort)
			}
		}
	}
	return out
}

func ports(list []int32) string {
	words := make([]string, 0, len(list))
	for _, p := range list {
		words = append(words, fmt.Sprint(p))
	}
	return strings.Join(words, ", ")
}

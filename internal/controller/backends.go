package controller

import (
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/berthmaster/berthmaster/api/v1alpha1"
	"github.com/berthmaster/berthmaster/internal/router"
)

// backends lists every berth as the status has it. A stray that the router has forgotten is gone,
// and is not listed.
func (a account) backends(now time.Time) []v1alpha1.BackendStatus {
	known := make(map[router.Incarnation]*router.BackendSnapshot, len(a.snapshot.Backends))
	for i := range a.snapshot.Backends {
		known[a.snapshot.Backends[i].Incarnation] = &a.snapshot.Backends[i]
	}
	before := make(map[[2]string]*v1alpha1.BackendStatus, len(a.before.Backends))
	for i := range a.before.Backends {
		entry := &a.before.Backends[i]
		before[[2]string{entry.Name, entry.Incarnation}] = entry
	}
	var entries []v1alpha1.BackendStatus
	for i := range a.plan.berths {
		b, seen := a.plan.berths[i], known[a.plan.berths[i].incarnation]
		if b.place == placeStray && seen == nil && !b.engine.paused.asked() {
			if !a.standsFor(b.name) {
				continue
			}
			b = b.vanished()
		}
		entry := a.entryOf(&b, seen)
		was := before[[2]string{entry.Name, entry.Incarnation}]
		if was != nil {
			entry.QuietSince = a.plan.weights.stillOn(&b, was.QuietSince)
		}
		entry.IsolationStartTime = isolationOf(seen, was, now)
		entry.LastTransitionTime = transitionOf(&entry, was, now)
		entries = append(entries, entry)
	}
	return entries
}

// entryOf is one line of the status, but for its times.
func (a account) entryOf(b *berth, seen *router.BackendSnapshot) v1alpha1.BackendStatus {
	entry := entryOf(b, seen, a.verdicts[string(b.incarnation)])
	if b.place == placeNobody && a.knew(b.name) {
		entry.Reason, entry.Message = v1alpha1.ReasonBackendGone, "the backend is not there any more, and nothing of it can be running"
	}
	if a.keysFault != "" && seen != nil && entry.State != v1alpha1.BackendServing && b.unusable == "" {
		entry.Message = a.keysFault // whatever else the engine's answers look like
	}
	return entry
}

// standsFor reports whether a drain asks for a name of which nothing is left but a stray that the router
// has forgotten: the drain is then over.
func (a account) standsFor(name string) bool {
	for i := range a.plan.berths {
		if b := &a.plan.berths[i]; b.name == name && b.place != placeStray {
			return false
		}
	}
	_, asked := drainsByName(a.spec)[name]
	return asked
}

// vanished is what is left of a stray's line once nothing of it can be running.
func (b berth) vanished() berth {
	return berth{sighting: sighting{name: b.name}, place: placeNobody, drain: b.drain}
}

// knew reports whether the status has told of a backend of that name, which is not the same as one
// that never was.
func (a account) knew(name string) bool {
	for i := range a.before.Backends {
		entry := &a.before.Backends[i]
		was := entry.Incarnation != "" || entry.Reason == v1alpha1.ReasonBackendGone ||
			entry.Reason == v1alpha1.ReasonStarting || entry.Reason == v1alpha1.ReasonCrashLooping
		if entry.Name == name && was {
			return true
		}
	}
	return false
}

// transitionOf is when an entry came into its state.
func transitionOf(entry, was *v1alpha1.BackendStatus, now time.Time) metav1.Time {
	if was != nil && was.State == entry.State {
		return was.LastTransitionTime
	}
	return toTheSecond(now)
}

// isolationOf is when an incarnation was isolated. One that an earlier term isolated stays so until
// nothing there is unknown; one that the router has forgotten is over.
func isolationOf(seen *router.BackendSnapshot, was *v1alpha1.BackendStatus, now time.Time) *metav1.Time {
	before := was != nil && was.IsolationStartTime != nil
	switch {
	case seen == nil:
		return nil
	case before && (seen.Isolated || seen.UnknownLoad):
		return was.IsolationStartTime
	case seen.Isolated:
		at := toTheSecond(now)
		return &at
	default:
		return nil
	}
}

// entryOf is one line of the status.
func entryOf(b *berth, seen *router.BackendSnapshot, verdict string) v1alpha1.BackendStatus {
	entry := v1alpha1.BackendStatus{
		Name: b.name, Incarnation: string(b.incarnation), URL: b.url, DrainStartTime: timeOrNil(b.drain.start),
	}
	b.recordEngine(&entry)
	if seen != nil {
		entry.Capacity, entry.WeightVersion = seen.Capacity, cut(string(seen.Version), maxVersion)
	}
	entry.State, entry.Reason, entry.Message = stateOf(b, seen)
	if verdict != "" && entry.Message == "" && entry.State != v1alpha1.BackendServing {
		entry.Message = verdict
	}
	entry.Message = cut(entry.Message, maxMessage)
	return entry
}

// maxMessage and maxVersion are the bounds of a backend's message and version in the API, in bytes here:
// the API server, which counts letters, refuses the whole status for one that is longer.
const (
	maxMessage = 512
	maxVersion = 256
)

// cut is the beginning of a text, of at most that many bytes and of whole letters: half a letter is
// never read back as it was written.
func cut(text string, limit int) string {
	return strings.ToValidUTF8(text[:min(len(text), limit)], "")
}

// stateOf says what a backend is doing, and why.
func stateOf(b *berth, seen *router.BackendSnapshot) (v1alpha1.BackendState, v1alpha1.BackendReason, string) {
	switch {
	case b.drain.reason != "":
		return drainState(b, seen)
	case b.place == placeStray:
		return v1alpha1.BackendRetired, b.unusable, b.message
	case b.isIsolated(seen):
		return v1alpha1.BackendIsolated, v1alpha1.ReasonExecutionUncertain, ""
	case b.engine.shows():
		return engineState(b)
	default:
		return ownState(b, seen)
	}
}

// ownState is the state of a backend that nobody keeps out of service but itself and its pod.
func ownState(b *berth, seen *router.BackendSnapshot) (v1alpha1.BackendState, v1alpha1.BackendReason, string) {
	switch {
	case b.unusable != "":
		return v1alpha1.BackendPending, b.unusable, b.message
	case seen == nil:
		return v1alpha1.BackendPending, v1alpha1.ReasonNotProbed, ""
	default:
		return healthState(seen)
	}
}

// isIsolated reports whether an execution there could not be proven dead.
func (b *berth) isIsolated(seen *router.BackendSnapshot) bool {
	return seen != nil && (seen.Isolated || !b.isolated.IsZero() && seen.UnknownLoad)
}

// drainState tells how a drain goes. Drained is only what the router knows to be empty; a name
// that no engine process has is empty.
func drainState(b *berth, seen *router.BackendSnapshot) (v1alpha1.BackendState, v1alpha1.BackendReason, string) {
	switch {
	case b.place == placeNobody:
		return v1alpha1.BackendDrained, v1alpha1.ReasonBackendNotFound, "the pool has no backend of this name"
	case b.place == placeStray:
		return v1alpha1.BackendDraining, b.unusable, b.message
	case seen == nil && b.process != processLives:
		return v1alpha1.BackendDrained, b.unusable, b.message
	case seen != nil && seen.Drained:
		return v1alpha1.BackendDrained, b.drain.reason, ""
	default:
		return v1alpha1.BackendDraining, b.drain.reason, ""
	}
}

// healthState is the state of a backend that nothing keeps out of service but itself.
func healthState(seen *router.BackendSnapshot) (v1alpha1.BackendState, v1alpha1.BackendReason, string) {
	if seen.Admissible {
		return v1alpha1.BackendServing, "", ""
	}
	switch seen.Health {
	case router.HealthUnknown:
		return v1alpha1.BackendPending, v1alpha1.ReasonNotProbed, ""
	case router.Refused:
		return v1alpha1.BackendUnhealthy, v1alpha1.ReasonConnectionRefused, ""
	case router.Unhealthy:
		return v1alpha1.BackendUnhealthy, v1alpha1.ReasonProbesFailed, ""
	case router.SuspectedPaused:
		return v1alpha1.BackendPending, v1alpha1.ReasonSuspectedPaused, ""
	case router.Healthy:
	}
	return closedState(seen)
}

// closedState is the state of a backend that is well and takes no leases.
func closedState(seen *router.BackendSnapshot) (v1alpha1.BackendState, v1alpha1.BackendReason, string) {
	switch {
	case seen.Capacity <= 0:
		return v1alpha1.BackendPending, v1alpha1.ReasonCapacityUnknown,
			"neither the engine nor spec.backends.capacity says how many executions it can run"
	case seen.Settling && seen.UnknownLoad:
		return v1alpha1.BackendSettling, v1alpha1.ReasonUnknownLoad, ""
	case seen.Settling:
		return v1alpha1.BackendSettling, v1alpha1.ReasonExecutionUncertain, ""
	default:
		return v1alpha1.BackendPending, v1alpha1.BackendReason(seen.Reason), ""
	}
}

package rollout

import (
	"fmt"
	"strings"
)

// named is how many backends a message names.
const named = 3

// explain says why the pool has not converged, or that it has.
func (v *view) explain(plans []BackendPlan) (Reason, string) {
	behind := v.count(func(b *Backend) bool { return !v.on(b, v.goal) })
	switch {
	case v.goal != v.ask.Target:
		return DeadlineExceeded, v.list("the deadline has passed without enough backends on "+string(v.ask.Target)+"; the pool stays on "+string(v.goal), plans)
	case v.course == courseSettled && behind == 0:
		return Converged, ""
	case v.course == courseSettled:
		return CatchingUp, v.list(string(v.goal)+" is published, and some backends are not on it yet", plans)
	case v.late():
		return DeadlineExceeded, v.list("the deadline has passed without enough backends on "+string(v.ask.Target), plans)
	case behind > 0 && behind == v.count(v.lost):
		return BackendsFailing, v.list("some backends cannot be brought to "+string(v.ask.Target), plans)
	default:
		return v.explainWait(plans)
	}
}

// explainWait says what a rollout that goes on waits for.
func (v *view) explainWait(plans []BackendPlan) (Reason, string) {
	switch {
	case v.pinned || waitsForPins(plans):
		return WaitingForPins, "sessions of pinned senders live on " + string(v.ask.Published)
	case v.ask.Engines == EnginesPaused && waitsForEngines(plans):
		return EnginesHeld, "spec.engineMode keeps engines paused with something running on them"
	default:
		return InProgress, "backends are being brought to " + string(v.ask.Target)
	}
}

// count counts the backends in service that match.
func (v *view) count(match func(*Backend) bool) int {
	n := 0
	for i := range v.all {
		if b := &v.all[i]; b.Station == InService && match(b) {
			n++
		}
	}
	return n
}

// waitsForPins reports whether pinned sessions are all that is waited for.
func waitsForPins(plans []BackendPlan) bool {
	pinned := false
	for i := range plans {
		p := &plans[i]
		pinned = pinned || p.Drain == DrainPinned
		if p.Step.Kind != NoStep || p.Activity != Serving && p.Drain != DrainPinned {
			return false
		}
	}
	return pinned
}

func waitsForEngines(plans []BackendPlan) bool {
	for i := range plans {
		if plans[i].Activity == Pausing && plans[i].Step.Kind == NoStep {
			return true
		}
	}
	return false
}

// list adds to a message what is wrong with the first few backends.
func (v *view) list(message string, plans []BackendPlan) string {
	var parts []string
	for i := range plans {
		if p := &plans[i]; p.Activity == Failed || p.Activity == Absent {
			parts = append(parts, p.Name+": "+p.Message)
		}
	}
	rest := len(parts) - named
	if rest > 0 {
		parts = append(parts[:named], fmt.Sprintf("and %d more", rest))
	}
	if len(parts) == 0 {
		return message
	}
	return message + " (" + strings.Join(parts, "; ") + ")"
}

// events tells what backends do now and did not in the last status.
func events(before []Backend, after []BackendPlan) []Event {
	var out []Event
	for i := range after {
		was, is := before[i].Was, after[i].Activity
		if was == is || was == "" && is == Serving {
			continue
		}
		message := string(is)
		if after[i].Message != "" {
			message += ": " + after[i].Message
		}
		out = append(out, Event{Backend: after[i].Name, Kind: "Backend" + string(is), Message: message})
	}
	return out
}

package controller

import (
	"github.com/berthmaster/berthmaster/api/v1alpha1"
	"github.com/berthmaster/berthmaster/internal/prober"
	"github.com/berthmaster/berthmaster/internal/rollout"
	"github.com/berthmaster/berthmaster/internal/router"
	"github.com/berthmaster/berthmaster/internal/sglang"
)

// engineFacts are what the status says of an engine, less what has been answered since.
type engineFacts struct {
	paused   pause
	updating rollout.Version
	declared rollout.Version
}

// factsAbout reads the facts of a berth's engine. A pause is over once the engine has answered that it
// goes on, and an update is known once the engine has answered it, yes or no.
func factsAbout(w *world, b *berth) engineFacts {
	var f engineFacts
	memory := w.engines[b.incarnation]
	if entry := find(w.pool.Status.Backends, b.name, string(b.incarnation)); entry != nil {
		f = engineFacts{pausedIn(entry), rollout.Version(entry.Updating), rollout.Version(entry.DeclaredVersion)}
	}
	if memory.did(order{kind: orderContinue}) {
		f.paused = pause{}
	}
	if memory.settled {
		f.updating = ""
	}
	return f
}

// viewOf is a member as a rollout looks at it.
func viewOf(w *world, b *berth, f engineFacts, seen *router.BackendSnapshot, told rollout.Drain) rollout.Backend {
	memory, verdict := w.engines[b.incarnation], w.verdicts[string(b.incarnation)]
	view := rollout.Backend{
		Name: b.name, Incarnation: string(b.incarnation), Contact: contactOf(f, verdict.Verdict), Station: stationOf(b, f, verdict.Verdict),
		Report: reportOf(f, memory, &verdict), Declared: f.declared, Begun: f.updating,
		Pause: pauseSeen(f, memory, verdict.Verdict), PausedHow: rollout.PauseMode(pauseModes[f.paused.mode]), PausedAt: memory.record.PausedAt,
		Told: told, Call: stepOf(memory.under).Kind, Failure: memory.record.Failure, Load: rollout.LoadUnknown,
	}
	if seen == nil {
		return view // the router has not met it, and nobody knows what it counts there
	}
	view.Counted, view.Pinned, view.Door = seen.Outstanding, seen.Pinned, doorOf(seen)
	if !seen.UnknownLoad {
		view.Load = rollout.LoadKnown
	}
	return view
}

// contactOf says whether the engine can be spoken to. One that is paused or updated by us is not
// probed: it is spoken to until a call fails.
func contactOf(f engineFacts, verdict prober.Verdict) rollout.Contact {
	if f.paused.asked() || f.updating != "" || verdict == prober.Healthy || verdict == prober.SuspectedPaused {
		return rollout.Reachable
	}
	return rollout.Unreachable
}

// stationOf says whether the pool waits for the backend. A pod is not ready while its engine is paused,
// if its kubelet asks the engine; that alone takes it out of no rollout.
func stationOf(b *berth, f engineFacts, verdict prober.Verdict) rollout.Station {
	ready := b.unusable == "" || b.unusable == v1alpha1.ReasonPodNotReady &&
		(f.paused.asked() || f.updating != "" || verdict == prober.Healthy)
	if ready && b.drain.reason == "" && b.isolated.IsZero() {
		return rollout.InService
	}
	return rollout.OutOfService
}

// reportOf is the newest that is known of the engine's version. The prober does not read one that we
// have paused, or whose weights we change.
func reportOf(f engineFacts, memory engineMemory, verdict *prober.Observation) rollout.Report {
	own := memory.record.Report
	if f.paused.asked() || f.updating != "" {
		return own
	}
	if verdict.Verdict != prober.Healthy || !verdict.VersionConfirmed && doubted(own, verdict) {
		return rollout.Report{} // to be read again (R9)
	}
	if verdict.VersionConfirmed && verdict.At.After(memory.changedAt) && verdict.At.After(own.At) {
		return rollout.Report{Version: rollout.Version(verdict.WeightVersion), Freshness: rollout.Fresh, At: verdict.At}
	}
	return own
}

// doubted reports whether an engine was out of reach since it was read, be it for a moment that no reconcile
// has seen.
func doubted(read rollout.Report, verdict *prober.Observation) bool {
	return read.Freshness == rollout.Fresh && verdict.Wanting.After(read.At)
}

func pauseSeen(f engineFacts, memory engineMemory, verdict prober.Verdict) rollout.Pause {
	switch {
	case f.paused.asked() && memory.paused == f.paused.mode:
		return rollout.PausedByUs
	case f.paused.asked():
		return rollout.PauseBegun
	case verdict == prober.SuspectedPaused:
		return rollout.PausedByOthers
	default:
		return rollout.NotPaused
	}
}

// doorOf says whether the router may grant leases there, by its own state.
func doorOf(seen *router.BackendSnapshot) rollout.Door {
	switch {
	case seen.Admissible:
		return rollout.DoorOpen
	case seen.Drain == router.DrainMove, seen.Drain == router.DrainAbort, seen.Engine != router.EngineRunning, seen.Excluded != "":
		return rollout.DoorShut
	default:
		return rollout.DoorClosed
	}
}

// stepKinds are orders by a rollout's names.
var stepKinds = map[orderKind]rollout.StepKind{
	orderNone: rollout.NoStep, orderPause: rollout.StepPause, orderContinue: rollout.StepContinue, orderRepause: rollout.StepRepause,
	orderUpdate: rollout.StepUpdate, orderStamp: rollout.StepStamp, orderVerify: rollout.StepVerify,
}

// stepOf is an order as a rollout asks for it.
func stepOf(o order) rollout.Step {
	return rollout.Step{Kind: stepKinds[o.kind], Version: o.version, Pause: rollout.PauseMode(pauseModes[o.mode])}
}

// orderOf is what a rollout asks for as an order. path finds the weights of a version.
func orderOf(s rollout.Step, goal rollout.Version, path func(rollout.Version) string) order {
	o := order{goal: goal, version: s.Version}
	for kind, name := range stepKinds {
		if name == s.Kind {
			o.kind = kind
		}
	}
	for mode, name := range pauseModes {
		if rollout.PauseMode(name) == s.Pause {
			o.mode = mode
		}
	}
	if o.kind == orderUpdate {
		o.path = path(s.Version)
	}
	if s.Flush == rollout.FlushIdle {
		o.flush = sglang.FlushIdle
	}
	return o
}

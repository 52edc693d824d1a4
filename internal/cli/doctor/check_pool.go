package doctor

import (
	"fmt"
	"slices"

	"github.com/berthmaster/berthmaster/api/v1alpha1"
)

// checkPool: what stops the whole pool, or was wanted and is easily forgotten.
func checkPool(w *World) []Finding {
	var found []Finding
	if f := w.Pool.Status.Failure; f != nil {
		found = append(found, Finding{PoolFailed, Error, "the pool",
			fmt.Sprintf("it failed in epoch %d: request %s of session %s on %s could not be proven dead, so that no lease is granted", f.Epoch, f.RequestID, f.SessionID, f.Backend),
			"see to it that what that request generated is not used, then kubectl berth raise-epoch --yes"})
	}
	spec := &w.Pool.Spec
	if spec.Leasing == v1alpha1.LeasingHeld {
		found = append(found, Finding{LeasingHeld, Notice, "the pool", "leasing is held: no lease is granted, and clients wait", "to go on: kubectl berth open"})
	}
	if spec.EngineMode != "" && spec.EngineMode != v1alpha1.EnginesRunning {
		found = append(found, Finding{EnginesPaused, Notice, "the pool", "the engines are paused (" + string(spec.EngineMode) + ")", "to go on: kubectl berth continue"})
	}
	for i := range spec.Senders {
		if s := &spec.Senders[i]; s.Access == v1alpha1.SenderFenced {
			found = append(found, Finding{SenderFenced, Notice, "sender " + s.Name, "it is fenced: it gets no lease, and its clients wait",
				"to let it in: kubectl berth unfence " + s.Name})
		}
	}
	return found
}

// The things that are looked at.
const (
	lookPods     = "the pods of the pool's namespace"
	lookManagers = "the manager's pods"
	lookKinds    = "the kinds of the cluster"
	lookClock    = "the API server's clock"
	lookSecret   = "the Secret of the engines' keys"
	lookEngines  = "what the engines say about themselves"
)

func unlooked(w *World, what string) bool {
	return slices.ContainsFunc(w.Unlooked, func(u Unlooked) bool { return u.What == what })
}

// checkUnlooked: what was not seen may be wrong.
func checkUnlooked(w *World) []Finding {
	var found []Finding
	for _, u := range w.Unlooked {
		found = append(found, Finding{NotLooked, Notice, u.What, "not looked at: " + u.Err.Error(), "faults that would show there are not found"})
	}
	return found
}

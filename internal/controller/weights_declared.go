package controller

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/berthmaster/berthmaster/api/v1alpha1"
	"github.com/berthmaster/berthmaster/internal/prober"
	"github.com/berthmaster/berthmaster/internal/rollout"
	"github.com/berthmaster/berthmaster/internal/router"
)

// asksQuiet reports whether the spec lets no sender at all have leases: a hold, or a fence of each.
func asksQuiet(spec *v1alpha1.InferencePoolSpec) bool {
	if spec.Leasing == v1alpha1.LeasingHeld {
		return true
	}
	for i := range spec.Senders {
		if spec.Senders[i].Access != v1alpha1.SenderFenced {
			return false
		}
	}
	return len(spec.Senders) > 0
}

// quiet reports whether no lease can be granted, by the router's word, and nothing can be running.
func quiet(snapshot *router.Snapshot) bool {
	shut := snapshot.Leasing == router.LeasingHeld
	fenced := len(snapshot.Senders) > 0
	for i := range snapshot.Senders {
		fenced = fenced && snapshot.Senders[i].Access == router.AccessFenced
	}
	if !shut && !fenced {
		return false
	}
	for i := range snapshot.Backends {
		if b := &snapshot.Backends[i]; b.Outstanding > 0 || b.UnknownLoad {
			return false
		}
	}
	return true
}

// markQuiet marks, in the very status that says that a fence or hold is complete, the incarnations that
// are there then: an engine that comes later was not there throughout, whatever the trainer pushed.
func markQuiet(status *v1alpha1.InferencePoolStatus, a account, now time.Time) {
	disk := a.spec.Weights != nil && a.spec.Weights.Source == v1alpha1.WeightsDisk
	marked := status.Weights != nil && status.Weights.QuietTime != nil
	if disk || marked || !a.plan.weights.quiet || !quiet(&a.snapshot) {
		return
	}
	if status.Weights == nil {
		status.Weights = &v1alpha1.WeightsStatus{}
	}
	at := toTheSecond(now)
	status.Weights.QuietTime = &at
	a.markMembers(status.Backends, &at)
}

// markMembers marks the incarnations that are the pool's now.
func (a account) markMembers(entries []v1alpha1.BackendStatus, at *metav1.Time) {
	members := map[string]struct{}{}
	for i := range a.plan.berths {
		if b := &a.plan.berths[i]; b.usable() {
			members[string(b.incarnation)] = struct{}{}
		}
	}
	for i := range entries {
		if _, here := members[entries[i].Incarnation]; here {
			entries[i].QuietSince = at
		}
	}
}

// declaredFor is the version for which the trainer's word stands on an incarnation: that of a spec seen
// for the first time now, if the incarnation bears the mark of the fence or hold in which it was pushed;
// else the one on record. The life of an endpoint says nothing of its process once it was out of reach.
func (p *plan) declaredFor(w *world, b *berth, f engineFacts) rollout.Version {
	asked, before := w.pool.Spec.Weights, w.pool.Status.Weights
	if _, isPod := podOf(b.incarnation); !isPod && w.verdicts[string(b.incarnation)].Verdict != prober.Healthy {
		return ""
	}
	fresh := before == nil || before.Target != string(asked.Version)
	entry := find(w.pool.Status.Backends, b.name, string(b.incarnation))
	switch {
	case asked.Source == v1alpha1.WeightsDisk:
		return ""
	case fresh && entry != nil && entry.QuietSince != nil:
		return rollout.Version(asked.Version)
	default:
		return f.declared
	}
}

// stillOn is the mark of an incarnation after a plan: an endpoint that was out of reach loses it.
func (p *weightsPlan) stillOn(b *berth, mark *metav1.Time) *metav1.Time {
	if b.interrupted {
		return nil
	}
	return p.still(mark)
}

// still is the mark of the pool after a plan: it goes with the fence or hold.
func (p *weightsPlan) still(mark *metav1.Time) *metav1.Time {
	if p.quiet {
		return mark
	}
	return nil
}

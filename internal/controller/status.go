package controller

import (
	"cmp"
	"slices"
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/berthmaster/berthmaster/api/v1alpha1"
	"github.com/berthmaster/berthmaster/internal/router"
)

// maxBackends is how many backends a status lists.
const maxBackends = 256

// account is what a status is made from: the plan that was carried out and the router afterwards.
type account struct {
	plan     *plan
	snapshot router.Snapshot
	// verdicts are what the prober says to people, by incarnation.
	verdicts map[string]string
	// keysFault says why the keys of the engines are not known. Empty: they are.
	keysFault string
	// before is the status as it stands.
	before *v1alpha1.InferencePoolStatus
	// generation is the generation of the spec that the plan was made from.
	generation int64
	spec       *v1alpha1.InferencePoolSpec
}

// statusOf is the status that the account amounts to.
func statusOf(a account, now time.Time) *v1alpha1.InferencePoolStatus {
	status := a.before.DeepCopy()
	status.ObservedGeneration = a.generation
	status.Term, status.Lives, status.StartSecondsHighWater = a.plan.term, a.plan.lives, a.plan.startSeconds
	status.Router = a.plan.router.DeepCopy()
	status.Epoch = int64(a.snapshot.Epoch)
	status.Failure = failureOf(a.snapshot)
	status.Senders = senderStatuses(a.snapshot, a.spec)
	backends := a.backends(now)
	status.Summary = summaryOf(a.plan, backends)
	status.Weights = a.plan.weights.reported()
	status.Backends = bounded(backends)
	markQuiet(status, a, now)
	setConditions(status, conditionsOf(backends, status, a, now), a.generation, now)
	return status
}

// withFacts is a status with what a plan must record before it is carried out, and nothing else
// changed.
func withFacts(before *v1alpha1.InferencePoolStatus, p *plan, now time.Time) *v1alpha1.InferencePoolStatus {
	status := before.DeepCopy()
	status.Router = p.routerAfter(before)
	status.Term, status.Lives, status.StartSecondsHighWater = p.term, p.lives, p.startSeconds
	status.Weights = p.weights.recorded()
	for i := range p.berths {
		b := &p.berths[i]
		entry := find(status.Backends, b.name, string(b.incarnation))
		if !b.bears() && (entry == nil || !hasEngineFacts(entry)) {
			continue
		}
		if entry == nil {
			status.Backends = append(status.Backends, v1alpha1.BackendStatus{
				Name: b.name, Incarnation: string(b.incarnation),
				State: v1alpha1.BackendPending, LastTransitionTime: toTheSecond(now),
			})
			entry = &status.Backends[len(status.Backends)-1]
		}
		b.record(entry, now)
		entry.QuietSince = p.weights.stillOn(b, entry.QuietSince)
	}
	if len(status.Backends) > maxBackends {
		status.Backends = bounded(status.Backends)
	}
	return status
}

// routerAfter is who leads once the plan's term is written: whoever writes it.
func (p *plan) routerAfter(before *v1alpha1.InferencePoolStatus) *v1alpha1.RouterStatus {
	if before.Term == p.term {
		return before.Router
	}
	return p.router.DeepCopy()
}

// isEndpoint reports whether the berth is a life of a static endpoint, which is a fact itself.
func (b *berth) isEndpoint() bool {
	return b.place == placeMember && lifeNumber(b.name, string(b.incarnation)) > 0
}

// bears reports whether a berth has facts to record.
func (b *berth) bears() bool {
	return b.isEndpoint() || !b.drain.start.IsZero() || b.engine.bears() || b.declared != ""
}

// record writes a berth's facts into its entry.
func (b *berth) record(entry *v1alpha1.BackendStatus, now time.Time) {
	if b.isEndpoint() || b.engine.paused.asked() {
		entry.URL = b.url
	}
	b.recordEngine(entry)
	if entry.DrainStartTime == nil && !b.drain.start.IsZero() {
		// What the next step begins is said before it, so that a drain that is over at once
		// was seen to begin.
		entry.State, entry.Reason, entry.LastTransitionTime = v1alpha1.BackendDraining, b.drain.reason, toTheSecond(now)
	}
	entry.DrainStartTime = timeOrNil(b.drain.start)
}

func find(entries []v1alpha1.BackendStatus, name, incarnation string) *v1alpha1.BackendStatus {
	for i := range entries {
		if entries[i].Name == name && entries[i].Incarnation == incarnation {
			return &entries[i]
		}
	}
	return nil
}

// toTheSecond is a time as the API keeps it, so that what was written equals what is read.
func toTheSecond(t time.Time) metav1.Time { return metav1.Time{Time: t.Truncate(time.Second)} }

func failureOf(snapshot router.Snapshot) *v1alpha1.PoolFailure {
	f := snapshot.Failure
	if f == nil {
		return nil
	}
	return &v1alpha1.PoolFailure{
		Epoch: int64(snapshot.Epoch), RequestID: string(f.Request), SessionID: string(f.Session),
		Backend: string(f.Backend), Incarnation: v1alpha1.Incarnation(f.Incarnation), Time: toTheSecond(f.Time),
	}
}

// senderStatuses tells of every sender of the spec. One that the router has not been told to fence
// yet, or that has something counted, is Fencing.
func senderStatuses(snapshot router.Snapshot, spec *v1alpha1.InferencePoolSpec) []v1alpha1.SenderStatus {
	seen := map[string]router.SenderSnapshot{}
	for _, sender := range snapshot.Senders {
		seen[string(sender.Name)] = sender
	}
	statuses := make([]v1alpha1.SenderStatus, 0, len(spec.Senders))
	for _, sender := range sendersOf(spec, "") { // whom they are for is not told
		s := v1alpha1.SenderStatus{
			Name: string(sender.Name), Access: v1alpha1.SenderStateOpen, Generation: sender.MinGeneration,
		}
		switch now := seen[s.Name]; {
		case sender.Access == router.AccessFenced && now.Fenced:
			s.Access = v1alpha1.SenderStateFenced
		case sender.Access == router.AccessFenced:
			s.Access = v1alpha1.SenderStateFencing
		}
		statuses = append(statuses, s)
	}
	return statuses
}

// summaryOf counts the backends that the spec selects.
func summaryOf(p *plan, entries []v1alpha1.BackendStatus) *v1alpha1.PoolSummary {
	summary := &v1alpha1.PoolSummary{}
	for i := range p.berths {
		if p.berths[i].place == placeMember {
			summary.Backends++
		}
	}
	for i := range entries {
		switch entries[i].State {
		case v1alpha1.BackendServing:
			summary.Serving++
			summary.Capacity += entries[i].Capacity
		case v1alpha1.BackendDraining, v1alpha1.BackendDrained:
			summary.Draining++
		case v1alpha1.BackendPending, v1alpha1.BackendUnhealthy, v1alpha1.BackendSettling,
			v1alpha1.BackendIsolated, v1alpha1.BackendRetired,
			v1alpha1.BackendPausing, v1alpha1.BackendPaused, v1alpha1.BackendContinuing,
			v1alpha1.BackendUpdating, v1alpha1.BackendVerifying:
		}
	}
	summary.Ready = strconv.Itoa(int(summary.Serving)) + "/" + strconv.Itoa(int(summary.Backends))
	return summary
}

// bounded sorts entries, those with facts first, then those that do not serve, then the others,
// each part by name, and keeps as many as a status may list.
func bounded(entries []v1alpha1.BackendStatus) []v1alpha1.BackendStatus {
	sorted := slices.Clone(entries)
	slices.SortStableFunc(sorted, func(a, b v1alpha1.BackendStatus) int {
		return cmp.Or(
			cmp.Compare(weight(&a), weight(&b)),
			cmp.Compare(a.Name, b.Name),
			cmp.Compare(a.Incarnation, b.Incarnation))
	})
	return sorted[:min(len(sorted), maxBackends)]
}

// weight orders entries by how much would be lost with them, the most first: what must not be leased or
// must be continued, then the numbers of lives, then when a drain began. An incarnation that is retired
// is as good as a fact: nothing else remembers it after a restart.
func weight(entry *v1alpha1.BackendStatus) int {
	switch {
	case entry.IsolationStartTime != nil, hasEngineFacts(entry), entry.State == v1alpha1.BackendRetired:
		return 0
	case lifeNumber(entry.Name, entry.Incarnation) > 0:
		return 1
	case entry.DrainStartTime != nil:
		return 2
	case entry.State != v1alpha1.BackendServing:
		return 3
	default:
		return 4
	}
}

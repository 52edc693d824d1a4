package controller

import (
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/berthmaster/berthmaster/api/v1alpha1"
	"github.com/berthmaster/berthmaster/internal/router"
)

// seenAs is what the router says of an incarnation that serves, changed.
func seenAs(change func(*router.BackendSnapshot)) *router.BackendSnapshot {
	b := &router.BackendSnapshot{Admissible: true, Health: router.Healthy, Capacity: 8}
	change(b)
	return b
}

func TestStateOfABackend(t *testing.T) {
	closed := func(change func(*router.BackendSnapshot)) *router.BackendSnapshot {
		return seenAs(func(b *router.BackendSnapshot) { b.Admissible = false; change(b) })
	}
	member := berth{sighting: running("a")}
	draining := member
	draining.drain = drain{mode: router.DrainMove, reason: v1alpha1.ReasonDrainRequested, start: noon}
	lost := berth{sighting: sighting{name: "a", incarnation: "x", unusable: v1alpha1.ReasonPodMissing, process: processLives}, place: placeStray}
	lostAndDraining := lost
	lostAndDraining.drain = draining.drain
	starting := berth{sighting: sighting{name: "a", unusable: v1alpha1.ReasonStarting}}
	startingAndDraining := starting
	startingAndDraining.drain = draining.drain
	isolated := member
	isolated.isolated = noon
	nobody := berth{sighting: sighting{name: "a"}, place: placeNobody, drain: draining.drain}
	for name, c := range map[string]struct {
		berth  berth
		seen   *router.BackendSnapshot
		want   v1alpha1.BackendState
		reason v1alpha1.BackendReason
	}{
		"serves":                    {member, seenAs(func(*router.BackendSnapshot) {}), v1alpha1.BackendServing, ""},
		"unknown to the router":     {member, nil, v1alpha1.BackendPending, v1alpha1.ReasonNotProbed},
		"not probed":                {member, closed(func(b *router.BackendSnapshot) { b.Health = router.HealthUnknown }), v1alpha1.BackendPending, v1alpha1.ReasonNotProbed},
		"refuses":                   {member, closed(func(b *router.BackendSnapshot) { b.Health = router.Refused }), v1alpha1.BackendUnhealthy, v1alpha1.ReasonConnectionRefused},
		"unhealthy":                 {member, closed(func(b *router.BackendSnapshot) { b.Health = router.Unhealthy }), v1alpha1.BackendUnhealthy, v1alpha1.ReasonProbesFailed},
		"paused by another":         {member, closed(func(b *router.BackendSnapshot) { b.Health = router.SuspectedPaused }), v1alpha1.BackendPending, v1alpha1.ReasonSuspectedPaused},
		"without a capacity":        {member, closed(func(b *router.BackendSnapshot) { b.Capacity = 0 }), v1alpha1.BackendPending, v1alpha1.ReasonCapacityUnknown},
		"settles after a take-over": {member, closed(func(b *router.BackendSnapshot) { b.Settling, b.UnknownLoad = true, true }), v1alpha1.BackendSettling, v1alpha1.ReasonUnknownLoad},
		"settles":                   {member, closed(func(b *router.BackendSnapshot) { b.Settling = true }), v1alpha1.BackendSettling, v1alpha1.ReasonExecutionUncertain},
		"closed for a reason of the router's own": {member, closed(func(b *router.BackendSnapshot) { b.Reason = "VersionStale" }), v1alpha1.BackendPending, "VersionStale"},
		"starting":                    {starting, nil, v1alpha1.BackendPending, v1alpha1.ReasonStarting},
		"isolated":                    {member, closed(func(b *router.BackendSnapshot) { b.Isolated = true }), v1alpha1.BackendIsolated, v1alpha1.ReasonExecutionUncertain},
		"isolated by an earlier term": {isolated, closed(func(b *router.BackendSnapshot) { b.UnknownLoad = true }), v1alpha1.BackendIsolated, v1alpha1.ReasonExecutionUncertain},
		"draining":                    {draining, closed(func(b *router.BackendSnapshot) { b.Drain = router.DrainMove }), v1alpha1.BackendDraining, v1alpha1.ReasonDrainRequested},
		"draining as far as the router knows not": {draining, nil, v1alpha1.BackendDraining, v1alpha1.ReasonDrainRequested},
		"drained":                           {draining, closed(func(b *router.BackendSnapshot) { b.Drained = true }), v1alpha1.BackendDrained, v1alpha1.ReasonDrainRequested},
		"draining before it has started":    {startingAndDraining, nil, v1alpha1.BackendDrained, v1alpha1.ReasonStarting},
		"a stray":                           {lost, closed(func(*router.BackendSnapshot) {}), v1alpha1.BackendRetired, v1alpha1.ReasonPodMissing},
		"a stray under a drain, never idle": {lostAndDraining, closed(func(b *router.BackendSnapshot) { b.Drained = true }), v1alpha1.BackendDraining, v1alpha1.ReasonPodMissing},
		"a name that nobody has":            {nobody, nil, v1alpha1.BackendDrained, v1alpha1.ReasonBackendNotFound},
	} {
		t.Run(name, func(t *testing.T) {
			if state, reason, _ := stateOf(&c.berth, c.seen); state != c.want || reason != c.reason {
				t.Errorf("%s for %q, want %s for %q", state, reason, c.want, c.reason)
			}
		})
	}
}

func TestIsolationLastsUntilNothingThereIsUnknown(t *testing.T) {
	at := metav1.NewTime(noon.Add(-time.Hour))
	was := &v1alpha1.BackendStatus{IsolationStartTime: &at}
	for name, c := range map[string]struct {
		seen *router.BackendSnapshot
		was  *v1alpha1.BackendStatus
		want *metav1.Time
	}{
		"begins":                           {&router.BackendSnapshot{Isolated: true}, nil, &metav1.Time{Time: noon}},
		"goes on":                          {&router.BackendSnapshot{Isolated: true}, was, &at},
		"goes on after a take-over":        {&router.BackendSnapshot{UnknownLoad: true}, was, &at},
		"ends":                             {&router.BackendSnapshot{}, was, nil},
		"ends with the router's memory":    {nil, was, nil},
		"unknown load alone isolates none": {&router.BackendSnapshot{UnknownLoad: true}, nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, isolationOf(c.seen, c.was, noon)); diff != "" {
				t.Errorf("since (-want +got):\n%s", diff)
			}
		})
	}
}

// accountOf is an account of a world that was carried out.
func accountOf(w world, snapshot router.Snapshot, now time.Time) account {
	p := decide(w, now)
	return account{plan: &p, snapshot: snapshot, before: &w.pool.Status, generation: w.pool.Generation, spec: &w.pool.Spec}
}

func TestStatusIsTheSameWhileNothingChanges(t *testing.T) {
	w := worldWith(running("a"), running("b"))
	snapshot := router.Snapshot{Epoch: 1, Term: 3, Backends: []router.BackendSnapshot{
		{Name: "a", Incarnation: running("a").incarnation, Admissible: true, Health: router.Healthy, Capacity: 8},
		{Name: "b", Incarnation: running("b").incarnation, Health: router.Refused},
	}}
	first := statusOf(accountOf(w, snapshot, noon), noon)
	w.pool.Status = *first
	second := statusOf(accountOf(w, snapshot, noon.Add(time.Hour)), noon.Add(time.Hour))
	if diff := cmp.Diff(first, second); diff != "" {
		t.Errorf("an hour later (-before +after):\n%s", diff)
	}
	if want := (&v1alpha1.PoolSummary{Ready: "1/2", Backends: 2, Serving: 1, Capacity: 8}); cmp.Diff(want, first.Summary) != "" {
		t.Errorf("summary %+v, want %+v", first.Summary, want)
	}
}

func TestStatusListsNoStrayThatTheRouterHasForgotten(t *testing.T) {
	w := worldWith(running("a"))
	w.strays = []stray{{name: "lost", incarnation: "lost-uid/lost-0", fate: fateMissing}}
	if got := statusOf(accountOf(w, router.Snapshot{}, noon), noon).Backends; len(got) != 1 || got[0].Name != "a" {
		t.Errorf("%v, want a alone", got)
	}
}

func TestADrainOfWhatIsNotThereEndsWithAReasonOfItsOwn(t *testing.T) {
	lost := []stray{{name: "a", incarnation: "a-uid/a-0", fate: fateMissing}}
	retired := router.Snapshot{Backends: []router.BackendSnapshot{{Name: "a", Incarnation: "a-uid/a-0", Retired: true}}}
	for name, c := range map[string]struct {
		before   []v1alpha1.BackendStatus
		strays   []stray
		snapshot router.Snapshot
		want     v1alpha1.BackendState
		reason   v1alpha1.BackendReason
	}{
		"it never was there":                      {nil, nil, router.Snapshot{}, v1alpha1.BackendDrained, v1alpha1.ReasonBackendNotFound},
		"it is not there, as was said before":     {[]v1alpha1.BackendStatus{{Name: "a", Reason: v1alpha1.ReasonBackendNotFound}}, nil, router.Snapshot{}, v1alpha1.BackendDrained, v1alpha1.ReasonBackendNotFound},
		"it is gone, and counted still":           {[]v1alpha1.BackendStatus{{Name: "a", Incarnation: "a-uid/a-0"}}, lost, retired, v1alpha1.BackendDraining, v1alpha1.ReasonPodMissing},
		"it is gone, and the router has let go":   {[]v1alpha1.BackendStatus{{Name: "a", Incarnation: "a-uid/a-0"}}, lost, router.Snapshot{}, v1alpha1.BackendDrained, v1alpha1.ReasonBackendGone},
		"it is gone, as was said before":          {[]v1alpha1.BackendStatus{{Name: "a", Reason: v1alpha1.ReasonBackendGone}}, nil, router.Snapshot{}, v1alpha1.BackendDrained, v1alpha1.ReasonBackendGone},
		"another is gone, which is nothing to it": {[]v1alpha1.BackendStatus{{Name: "b", Incarnation: "b-uid/b-0"}}, nil, router.Snapshot{}, v1alpha1.BackendDrained, v1alpha1.ReasonBackendNotFound},
	} {
		t.Run(name, func(t *testing.T) {
			w := worldWith()
			w.pool.Spec.Drain = []v1alpha1.DrainSpec{{Backend: "a"}}
			w.pool.Status.Backends, w.strays = c.before, c.strays
			got := statusOf(accountOf(w, c.snapshot, noon), noon).Backends
			if len(got) != 1 || got[0].Name != "a" || got[0].State != c.want || got[0].Reason != c.reason || got[0].DrainStartTime == nil {
				t.Errorf("%+v, want a alone, %s for %s", got, c.want, c.reason)
			}
		})
	}
}

func TestFactsAreRecordedAndNothingElse(t *testing.T) {
	w := worldWith(running("a"), running("b"))
	w.pool.Spec.Drain = []v1alpha1.DrainSpec{{Backend: "a"}}
	w.pool.Spec.Leases.StartSeconds = 45
	w.pool.Status.Conditions = []metav1.Condition{{Type: "Ready", Status: metav1.ConditionTrue}}
	w.pool.Status.ObservedGeneration = 7
	p := decide(w, noon)
	got := withFacts(&w.pool.Status, &p, noon)
	want := w.pool.Status.DeepCopy()
	want.StartSecondsHighWater = 45
	want.Backends = []v1alpha1.BackendStatus{{
		Name: "a", Incarnation: string(running("a").incarnation), State: v1alpha1.BackendDraining, Reason: v1alpha1.ReasonDrainRequested,
		DrainStartTime: &metav1.Time{Time: noon}, LastTransitionTime: metav1.Time{Time: noon},
	}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	w.pool.Status = *got
	again := decide(w, noon.Add(time.Hour))
	if diff := cmp.Diff(got, withFacts(&w.pool.Status, &again, noon.Add(time.Hour))); diff != "" {
		t.Errorf("recorded twice (-once +twice):\n%s", diff)
	}
}

func TestBoundedKeepsFactsThenWhatDoesNotServe(t *testing.T) {
	var entries []v1alpha1.BackendStatus
	for i := range maxBackends + 40 {
		entries = append(entries, v1alpha1.BackendStatus{Name: fmt.Sprintf("n%03d", i), State: v1alpha1.BackendServing})
	}
	last := len(entries) - 1
	entries[last].DrainStartTime = &metav1.Time{Time: noon}
	entries[last-1].State = v1alpha1.BackendUnhealthy
	entries[last-2].State = v1alpha1.BackendRetired
	entries = append(entries, v1alpha1.BackendStatus{Name: "z", Incarnation: "endpoint:z/4", State: v1alpha1.BackendServing})
	got := bounded(entries)
	if len(got) != maxBackends {
		t.Fatalf("%d entries, want %d", len(got), maxBackends)
	}
	var first []string
	for _, entry := range got[:5] {
		first = append(first, entry.Name)
	}
	want := []string{entries[last-2].Name, "z", entries[last].Name, entries[last-1].Name, "n000"}
	if diff := cmp.Diff(want, first); diff != "" {
		t.Errorf("the first (-want +got):\n%s", diff)
	}
}

func TestSenderIsFencedOnlyOnTheRoutersWord(t *testing.T) {
	spec := &v1alpha1.InferencePoolSpec{Senders: []v1alpha1.SenderSpec{
		{Name: "open"}, {Name: "closing", Access: v1alpha1.SenderFenced}, {Name: "closed", Access: v1alpha1.SenderFenced},
		{Name: "unheard", Access: v1alpha1.SenderFenced},
	}}
	snapshot := router.Snapshot{Senders: []router.SenderSnapshot{
		{Name: "open", Fenced: true}, {Name: "closing"}, {Name: "closed", Fenced: true},
	}}
	want := []v1alpha1.SenderStatus{
		{Name: "open", Access: v1alpha1.SenderStateOpen}, {Name: "closing", Access: v1alpha1.SenderStateFencing},
		{Name: "closed", Access: v1alpha1.SenderStateFenced}, {Name: "unheard", Access: v1alpha1.SenderStateFencing},
	}
	if diff := cmp.Diff(want, senderStatuses(snapshot, spec)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// The API server refuses a whole status for one field that is too long, and the facts in it with it.
func TestAnEngineCannotMakeAStatusThatIsRefused(t *testing.T) {
	member := berth{sighting: running("a")}
	verbose := seenAs(func(b *router.BackendSnapshot) {
		b.Admissible, b.Version = false, router.Version(strings.Repeat("v", 1000))
	})
	for name, said := range map[string]string{
		"what an engine says at length":    strings.Repeat("x", 1000),
		"what it says in letters of bytes": "x" + strings.Repeat("\u00e9", 1000),
	} {
		entry := entryOf(&member, verbose, said)
		if len(entry.Message) > 512 || len(entry.Message) < 500 || !utf8.ValidString(entry.Message) {
			t.Errorf("%s: a message of %d bytes, valid: %t", name, len(entry.Message), utf8.ValidString(entry.Message))
		}
		if len(entry.WeightVersion) > 256 {
			t.Errorf("%s: a version of %d bytes", name, len(entry.WeightVersion))
		}
	}
}

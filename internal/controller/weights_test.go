package controller

import (
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/google/go-cmp/cmp"

	"github.com/berthmaster/berthmaster/api/v1alpha1"
	"github.com/berthmaster/berthmaster/internal/prober"
	"github.com/berthmaster/berthmaster/internal/rollout"
	"github.com/berthmaster/berthmaster/internal/router"
	"github.com/berthmaster/berthmaster/internal/sglang"
)

func TestAskOfTakesEveryFieldOfTheSpec(t *testing.T) {
	start, published := metav1.NewTime(noon), metav1.NewTime(noon.Add(-60e9))
	half := intstr.FromString("50%")
	facts := &v1alpha1.WeightsStatus{Published: "v1", PublishedTime: &published, Target: "v2", StartTime: &start}
	full := &v1alpha1.InferencePoolSpec{
		EngineMode: v1alpha1.EnginesPausedAbort,
		Weights: &v1alpha1.WeightsSpec{
			Version: "v2", Source: v1alpha1.WeightsDisk, Strategy: v1alpha1.RolloutRolling, Clearing: v1alpha1.ClearAbort,
			Verification: v1alpha1.VerifyDeclared, StampEngines: v1alpha1.StampEnabled, MaxUnavailable: &half, DeadlineSeconds: 10,
			OnFailure: v1alpha1.FailureProceed, MinReadyPercent: 40, PinDeadlineSeconds: 20,
		},
	}
	want := rollout.Ask{
		Target: "v2", Published: "v1", Start: noon, PublishedAt: published.Time, Told: rollout.LeasesStopped,
		Source: rollout.Disk, Strategy: rollout.Rolling, Clearing: rollout.ClearAbort, Verification: rollout.VerifyDeclared,
		Stamping: rollout.StampEnabled, MaxUnavailable: 4, OnFailure: rollout.Proceed, MinReadyPercent: 40,
		Deadline: seconds(10), PinDeadline: seconds(20), Engines: rollout.EnginesPaused,
	}
	if diff := cmp.Diff(want, askOf(full, facts, rollout.LeasesStopped, 9)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	empty := &v1alpha1.InferencePoolSpec{Weights: &v1alpha1.WeightsSpec{Version: "v2"}}
	want = rollout.Ask{
		Target: "v2", Source: rollout.External, Strategy: rollout.AllAtOnce, Clearing: rollout.ClearDrain, Verification: rollout.VerifyEngine,
		Stamping: rollout.StampDisabled, MaxUnavailable: 1, OnFailure: rollout.Hold, MinReadyPercent: 90, PinDeadline: seconds(600),
	}
	if diff := cmp.Diff(want, askOf(empty, &v1alpha1.WeightsStatus{}, "", 9)); diff != "" {
		t.Errorf("empty fields (-want +got):\n%s", diff)
	}
}

// wanting is a verdict on an engine that was out of reach so many seconds after noon.
func wanting(verdict prober.Observation, after int32) prober.Observation {
	verdict.Wanting = noon.Add(seconds(after))
	return verdict
}

func TestAReportIsBelievedOnlyIfNothingHasHappenedSince(t *testing.T) {
	read := rollout.Report{Version: "v2", Freshness: rollout.Fresh, At: noon}
	healthy := func(version string, confirmed bool, after int32) prober.Observation {
		return prober.Observation{Verdict: prober.Healthy, WeightVersion: version, VersionConfirmed: confirmed, At: noon.Add(seconds(after))}
	}
	for name, c := range map[string]struct {
		facts   engineFacts
		memory  engineMemory
		verdict prober.Observation
		want    rollout.Report
	}{
		"the prober's, if it is later": {
			engineFacts{}, engineMemory{record: rollout.Record{Report: read}}, healthy("v3", true, 1),
			rollout.Report{Version: "v3", Freshness: rollout.Fresh, At: noon.Add(seconds(1))},
		},
		"our own, if that is later":          {engineFacts{}, engineMemory{record: rollout.Record{Report: read}}, healthy("v1", true, -1), read},
		"our own, while the prober has none": {engineFacts{}, engineMemory{record: rollout.Record{Report: read}}, healthy("v1", false, 1), read},
		"not the prober's of before a change": {
			engineFacts{}, engineMemory{changedAt: noon.Add(seconds(5))}, healthy("v1", true, 1), rollout.Report{},
		},
		"none of an engine that is not well": {
			engineFacts{}, engineMemory{record: rollout.Record{Report: read}}, prober.Observation{Verdict: prober.Refused}, rollout.Report{},
		},
		"none of before it was out of reach, however shortly": {
			engineFacts{}, engineMemory{record: rollout.Record{Report: read}}, wanting(healthy("v2", false, 2), 1), rollout.Report{},
		},
		"our own of after it was out of reach": {
			engineFacts{}, engineMemory{record: rollout.Record{Report: read}}, wanting(healthy("v2", false, 2), -1), read,
		},
		"the prober's of after it was out of reach": {
			engineFacts{}, engineMemory{record: rollout.Record{Report: read}}, wanting(healthy("v1", true, 2), 1),
			rollout.Report{Version: "v1", Freshness: rollout.Fresh, At: noon.Add(seconds(2))},
		},
		"our own of an engine that we have paused": {
			engineFacts{paused: aborting}, engineMemory{record: rollout.Record{Report: read}}, prober.Observation{Verdict: prober.Refused}, read,
		},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, reportOf(c.facts, c.memory, &c.verdict)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestAPodThatIsUnreadyOnlyBecauseItsEngineRestsIsWaitedFor(t *testing.T) {
	unready := berth{sighting: running("a")}
	unready.unusable = v1alpha1.ReasonPodNotReady
	for name, c := range map[string]struct {
		facts   engineFacts
		verdict prober.Verdict
		want    rollout.Station
	}{
		"paused by us":      {engineFacts{paused: aborting}, prober.Unhealthy, rollout.InService},
		"being updated":     {engineFacts{updating: "v2"}, prober.Unhealthy, rollout.InService},
		"well all the same": {engineFacts{}, prober.Healthy, rollout.InService},
		"not well":          {engineFacts{}, prober.Unhealthy, rollout.OutOfService},
	} {
		if got := stationOf(&unready, c.facts, c.verdict); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

func TestOrdersAndStepsAreTheSameInBothDirections(t *testing.T) {
	path := func(v rollout.Version) string { return "/" + string(v) }
	for _, step := range []rollout.Step{
		{Kind: rollout.StepPause, Pause: rollout.PauseAbort}, {Kind: rollout.StepRepause, Pause: rollout.PauseRetract},
		{Kind: rollout.StepPause, Pause: rollout.PauseInPlace}, {Kind: rollout.StepContinue}, {Kind: rollout.StepVerify},
		{Kind: rollout.StepStamp, Version: "v2"}, {Kind: rollout.StepUpdate, Version: "v2"}, {},
	} {
		o := orderOf(step, "v2", path)
		if got := stepOf(o); got != step {
			t.Errorf("%+v became %+v", step, got)
		}
		if (o.path == "/v2") != (step.Kind == rollout.StepUpdate) {
			t.Errorf("%+v: path %q", step, o.path)
		}
	}
}

func TestReadySaysWhyClientsWait(t *testing.T) {
	status := &v1alpha1.InferencePoolStatus{Term: 1, Summary: &v1alpha1.PoolSummary{Backends: 2, Serving: 2}}
	barrier := plan{weights: weightsPlan{rollout: rollout.Plan{Leases: rollout.LeasesStopped}}}
	for name, c := range map[string]struct {
		spec   v1alpha1.InferencePoolSpec
		plan   plan
		reason string
	}{
		"it serves":                {v1alpha1.InferencePoolSpec{}, plan{}, v1alpha1.ReasonServing},
		"a barrier of new weights": {v1alpha1.InferencePoolSpec{}, barrier, v1alpha1.ReasonRolloutInProgress},
		"a pause":                  {v1alpha1.InferencePoolSpec{EngineMode: v1alpha1.EnginesPausedAbort}, plan{}, v1alpha1.ReasonEnginesPaused},
		"a hold":                   {v1alpha1.InferencePoolSpec{Leasing: v1alpha1.LeasingHeld}, barrier, v1alpha1.ReasonLeasingHeld},
	} {
		got := account{spec: &c.spec, plan: &c.plan}.ready(status)
		if got.Reason != c.reason || (got.Status == metav1.ConditionTrue) != (c.reason == v1alpha1.ReasonServing) {
			t.Errorf("%s: %s/%s, want reason %s", name, got.Status, got.Reason, c.reason)
		}
	}
}

func TestTheTrainersWordStandsForThoseWhoWereThereThroughout(t *testing.T) {
	at := metav1.NewTime(noon)
	marked := v1alpha1.BackendStatus{Name: "a", Incarnation: string(running("a").incarnation), QuietSince: &at}
	w := worldWith(running("a"), running("b"))
	w.pool.Status.Weights = &v1alpha1.WeightsStatus{Target: "v1", QuietTime: &at}
	w.pool.Status.Backends = []v1alpha1.BackendStatus{marked, {Name: "b", Incarnation: string(running("b").incarnation)}}
	w.pool.Spec.Weights = &v1alpha1.WeightsSpec{Version: "v2", Verification: v1alpha1.VerifyDeclared}
	w.snapshot = router.Snapshot{}
	p := decide(w, noon)
	status := withFacts(&w.pool.Status, &p, noon)
	if got := status.Backends[0]; got.DeclaredVersion != "v2" || got.QuietSince != nil {
		t.Errorf("a: declared %q, mark %v; want v2 declared, and the mark gone with the fence", got.DeclaredVersion, got.QuietSince)
	}
	if got := status.Backends[1]; got.DeclaredVersion != "" {
		t.Errorf("b came later and is declared %q", got.DeclaredVersion)
	}
	if status.Weights.QuietTime != nil {
		t.Error("the pool's mark outlives the fence")
	}
}

// givenUp is a world in which the deadline of v2 has passed, the pool stays on v1, and engine a, which
// was updated, has to go back.
func givenUp() world {
	w := worldWith(running("a"), running("b"))
	began := metav1.NewTime(noon.Add(-time.Hour))
	w.pool.Spec.Weights = &v1alpha1.WeightsSpec{Version: "v2", Source: v1alpha1.WeightsDisk, Path: "/v2", DeadlineSeconds: 60}
	w.pool.Status.Weights = &v1alpha1.WeightsStatus{Published: "v1", PublishedPath: "/v1", Target: "v2", StartTime: &began}
	w.told.leases = rollout.LeasesStopped
	w.verdicts = map[string]prober.Observation{
		string(running("a").incarnation): {Verdict: prober.Healthy, WeightVersion: "v2", VersionConfirmed: true, At: noon},
		string(running("b").incarnation): {Verdict: prober.Healthy, WeightVersion: "v1", VersionConfirmed: true, At: noon},
	}
	for _, name := range []string{"a", "b"} {
		w.snapshot.Backends = append(w.snapshot.Backends, router.BackendSnapshot{Name: router.BackendName(name), Incarnation: running(name).incarnation})
	}
	return w
}

func TestAnEngineThatCannotGoBackIsNotAskedAgainAtOnce(t *testing.T) {
	w := givenUp()
	asked := decide(w, noon).berths[0].engine.order
	if asked.kind != orderUpdate || asked.version != "v1" || asked.path != "/v1" {
		t.Fatalf("order %+v, want a to be updated to v1", asked)
	}
	declined := engineMemory{}.began(asked).answered("", fmt.Errorf("no such file: %w", sglang.ErrDeclined), noon)
	w.engines = map[router.Incarnation]engineMemory{running("a").incarnation: declined}
	got := decide(w, noon.Add(time.Millisecond)).berths[0].engine
	if got.order.kind != orderNone || got.activity != rollout.Failed {
		t.Errorf("a is %s and told to %s at once, want it left alone as failed", got.activity, got.order.kind)
	}
}

func TestAnEngineThatOthersPausedIsNotAskedForItsVersionAgainAndAgain(t *testing.T) {
	for _, source := range []v1alpha1.WeightsSource{v1alpha1.WeightsDisk, v1alpha1.WeightsExternal} {
		w := givenUp()
		w.pool.Spec.Weights.Source = source
		a := running("a").incarnation
		w.verdicts[string(a)] = prober.Observation{Verdict: prober.SuspectedPaused, At: noon}
		read := engineMemory{}.began(order{kind: orderVerify}).answered("v1", nil, noon)
		w.engines = map[router.Incarnation]engineMemory{a: read}
		if got := decide(w, noon.Add(time.Millisecond)).berths[0].engine; got.order.kind != orderNone {
			t.Errorf("%s: a is told to %s, which it was a moment ago", source, got.order.kind)
		}
	}
}

func TestAReplicaThatFollowsDoesNotLookAgainAndAgainAtWhatItMayNotPublish(t *testing.T) {
	w := givenUp()
	w.election, w.authority, w.standing = ElectionAwaited, authorityNone, standingNew
	w.pool.Spec.Weights.Strategy, w.pool.Spec.Weights.DeadlineSeconds = v1alpha1.RolloutInPlace, 0
	b := string(running("b").incarnation)
	w.verdicts[b] = prober.Observation{Verdict: prober.Healthy, WeightVersion: "v2", VersionConfirmed: true, At: noon}
	p := decide(w, noon)
	if p.course != courseFollow || p.weights.rollout.Published != "v2" {
		t.Fatalf("course %d, published %q; want to follow where v2 could be published", p.course, p.weights.rollout.Published)
	}
	if !p.deadline.IsZero() {
		t.Errorf("looks again after %v, though only the leader can change anything", p.deadline.Sub(noon))
	}
}

func TestAnEndpointThatWasOutOfReachWasNotThereThroughout(t *testing.T) {
	at := metav1.NewTime(noon)
	for name, c := range map[string]struct {
		verdict  prober.Verdict
		standing standing
		kept     bool
	}{
		"it was well":                           {prober.Healthy, standingLeads, true},
		"it seems paused, as for a push":        {prober.SuspectedPaused, standingLeads, true},
		"it has not been probed in this term":   {prober.Unknown, standingLeads, true},
		"its connections were refused":          {prober.Refused, standingLeads, false},
		"it failed":                             {prober.Unhealthy, standingLeads, false},
		"nobody watched it between two terms":   {prober.Unknown, standingNew, false},
		"a follower watched it between the two": {prober.Healthy, standingNew, true},
	} {
		w := worldWith()
		w.standing = c.standing
		w.pool.Spec.Leasing = v1alpha1.LeasingHeld
		w.pool.Spec.Backends = v1alpha1.BackendsSpec{Endpoints: []v1alpha1.Endpoint{{Name: "a", URL: "http://a:1"}}}
		w.pool.Status.Weights = &v1alpha1.WeightsStatus{QuietTime: &at}
		w.pool.Status.Backends = []v1alpha1.BackendStatus{{Name: "a", Incarnation: "endpoint:a/1", URL: "http://a:1", QuietSince: &at}}
		w.verdicts = map[string]prober.Observation{"endpoint:a/1": {Verdict: c.verdict}}
		p := decide(w, noon)
		status := withFacts(&w.pool.Status, &p, noon)
		if got := status.Backends[0].QuietSince != nil; got != c.kept {
			t.Errorf("%s: its mark is kept: %t, want %t", name, got, c.kept)
		}
		a := account{plan: &p, before: &w.pool.Status, spec: &w.pool.Spec}
		if got := a.backends(noon)[0].QuietSince != nil; got != c.kept {
			t.Errorf("%s: its mark is reported: %t, want %t", name, got, c.kept)
		}
	}
}

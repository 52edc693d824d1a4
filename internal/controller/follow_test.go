package controller

import (
	"context"
	"maps"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	testingclock "k8s.io/utils/clock/testing"

	"github.com/berthmaster/berthmaster/api/v1alpha1"
	"github.com/berthmaster/berthmaster/internal/prober"
	"github.com/berthmaster/berthmaster/internal/router"
)

// toldProbes is a prober that takes note of the pauses, and the ends of pauses, that it is told of.
type toldProbes struct{ paused, resumed []string }

func (p *toldProbes) Set(string, []prober.Target) {}
func (p *toldProbes) Forget(string)               {}
func (p *toldProbes) Pause(key prober.Key) error {
	p.paused = append(p.paused, key.Incarnation)
	return nil
}
func (p *toldProbes) Resume(key prober.Key) error {
	p.resumed = append(p.resumed, key.Incarnation)
	return nil
}
func (p *toldProbes) Latest(string) map[string]prober.Observation { return nil }

// What a follower would do to engines it does not do, and nobody tells it when the leader has done it: a
// probe that rests because of it would rest until the take-over, which then goes by what is long past.
func TestAReplicaThatFollowsGoesOnProbingEnginesThatItWouldPause(t *testing.T) {
	a := string(running("a").incarnation)
	for name, c := range map[string]struct {
		election  Election
		authority authority
		standing  standing
		want      []string
	}{
		"the leader":  {ElectionNone, authorityHeld, standingLeads, []string{a}},
		"who follows": {ElectionAwaited, authorityNone, standingNew, nil},
	} {
		w := worldWith(running("a"))
		w.election, w.authority, w.standing = c.election, c.authority, c.standing
		w.pool.Spec.EngineMode = v1alpha1.EnginesPausedAbort
		w.verdicts = map[string]prober.Observation{a: {Verdict: prober.Healthy}}
		told := &toldProbes{}
		p := decide(w, noon)
		(&Reconciler{prober: told}).setProbes(&w, &p)
		if !slices.Equal(told.paused, c.want) {
			t.Errorf("%s lets the probes of %v rest, want %v", name, told.paused, c.want)
		}
	}
}

// What the probes of a follower read may be older than what the leader before did to the weights.
func TestWhoTakesOverChangesOfWeightsProbesAgainBeforeItGrants(t *testing.T) {
	a := running("a")
	for source, c := range map[v1alpha1.WeightsSource]struct {
		again []string
		known int
	}{
		v1alpha1.WeightsDisk:     {[]string{string(a.incarnation)}, 0},
		v1alpha1.WeightsExternal: {nil, 1},
	} {
		w := worldWith(a)
		w.standing = standingNew
		w.pool.Spec.Weights = &v1alpha1.WeightsSpec{Version: "v2", Source: source, Strategy: v1alpha1.RolloutRolling, Path: "/v2"}
		w.pool.Status.Weights = &v1alpha1.WeightsStatus{Published: "v1", Target: "v2"}
		w.verdicts = map[string]prober.Observation{string(a.incarnation): {
			Key: prober.Key{Pool: "pool", Incarnation: string(a.incarnation)}, Seq: 7, At: noon,
			Verdict: prober.Healthy, Capacity: 8, WeightVersion: "v2", VersionConfirmed: true,
		}}
		p := decide(w, noon)
		if p.course != courseLead || p.weights.rollout.Ready != c.known {
			t.Errorf("%s: course %d with %d on v2; want to lead with %d", source, p.course, p.weights.rollout.Ready, c.known)
		}
		told := &toldProbes{}
		(&Reconciler{prober: told}).probeAgain(&w)
		if !slices.Equal(told.paused, c.again) || !slices.Equal(told.resumed, c.again) {
			t.Errorf("%s: the probes of %v are cut and those of %v begin anew, want that of %v", source, told.paused, told.resumed, c.again)
		}
		if got := len(w.health()); got != c.known {
			t.Errorf("%s: the router is told of the health of %d, want %d", source, got, c.known)
		}
	}
}

// Engines end for as long as a replica follows. What it must know when it leads is what became of the
// lives that an earlier term may have counted something on, and the status names those.
func TestAReplicaThatFollowsRemembersTheEndsOfWhatTheStatusNamesAlone(t *testing.T) {
	w := worldWith(running("a"))
	w.election, w.authority, w.standing = ElectionAwaited, authorityNone, standingNew
	w.pool.Status.Backends = []v1alpha1.BackendStatus{{Name: "b", Incarnation: "b-uid/b-0"}}
	w.tenure = &tenure{table: router.NewTable("pool", nil, noon), ended: map[router.Incarnation]struct{}{}}
	w.tenure.bury([]router.Incarnation{"b-uid/b-0", "a-uid/earlier"}, noon)
	w.ended = w.tenure.buried()
	p := decide(w, noon)
	for _, step := range (&Reconciler{prober: &toldProbes{}}).steps(&w, &p, noon) {
		if err := step.do(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	want := map[router.Incarnation]struct{}{"b-uid/b-0": {}}
	if got := w.tenure.buried(); !maps.Equal(got, want) {
		t.Errorf("remembers the ends of %v, want %v", got, want)
	}
}

func TestTheEndOfAContainerOfOthersIsNotRemembered(t *testing.T) {
	ts := newTenures(router.NewPools(), func(context.Context, types.NamespacedName) {}, untilDone)
	defer ts.close()
	tenure := ts.enter(t.Context(), thePool, "u", noon)
	tenure.watch(labels.SelectorFromSet(labels.Set{"app": "sglang"}), map[types.UID]struct{}{"counted": {}})
	r := &Reconciler{tenures: ts, clock: testingclock.NewFakePassiveClock(noon)}
	ended := func(uid types.UID, app string) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: thePool.Namespace, Name: string(uid), UID: uid, Labels: map[string]string{"app": app}}}
	}
	r.bury([]router.Incarnation{"job/1"}, ended("job", "other"))
	r.bury([]router.Incarnation{"selected/1"}, ended("selected", "sglang"))
	r.bury([]router.Incarnation{"counted/1"}, ended("counted", "other"))
	r.bury([]router.Incarnation{"was/1"}, ended("was", "sglang"), ended("was", "other"))
	want := map[router.Incarnation]struct{}{"selected/1": {}, "counted/1": {}, "was/1": {}}
	if got := tenure.buried(); !maps.Equal(got, want) {
		t.Errorf("remembers the ends of %v, want %v", got, want)
	}
}

func TestAReplicaThatFollowsIsConcernedByThePodsThatTheStatusNames(t *testing.T) {
	w := worldWith()
	w.pool.Status.Backends = []v1alpha1.BackendStatus{{Name: "b", Incarnation: "b-uid/b-0"}, {Name: "c", Incarnation: "endpoint:c/1"}}
	if got := w.countedOn(); len(got) != 0 {
		t.Errorf("a leader that knows of no backend counts on %v", got)
	}
	w.standing = standingNew
	if _, named := w.countedOn()["b-uid"]; !named {
		t.Error("who follows is not concerned by a pod that the status names")
	}
}

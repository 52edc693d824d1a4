package controller

import (
	"slices"
	"testing"

	"github.com/berthmaster/berthmaster/api/v1alpha1"
	"github.com/berthmaster/berthmaster/internal/prober"
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

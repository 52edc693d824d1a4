package controller

import (
	"slices"
	"testing"

	"github.com/berthmaster/berthmaster/api/v1alpha1"
	"github.com/berthmaster/berthmaster/internal/prober"
)

// toldProbes is a prober that takes note of the pauses that it is told of.
type toldProbes struct{ paused []string }

func (p *toldProbes) Set(string, []prober.Target) {}
func (p *toldProbes) Forget(string)               {}
func (p *toldProbes) Pause(key prober.Key) error {
	p.paused = append(p.paused, key.Incarnation)
	return nil
}
func (p *toldProbes) Resume(prober.Key) error                     { return nil }
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

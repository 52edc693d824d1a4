package rollout_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/berthmaster/berthmaster/internal/rollout"
)

// diskWays are the ways in which the operator itself changes weights.
func diskWays() map[string]rollout.Ask {
	out := map[string]rollout.Ask{
		"rolling":  {Strategy: rollout.Rolling, MaxUnavailable: 1},
		"in place": {Strategy: rollout.InPlace},
	}
	for _, c := range []rollout.Clearing{rollout.ClearDrain, rollout.ClearAbort, rollout.ClearRetract, rollout.ClearFreeze} {
		out["all at once by "+string(c)] = rollout.Ask{Strategy: rollout.AllAtOnce, Clearing: c}
	}
	for name, ask := range out {
		ask.Source, ask.Target, ask.OnFailure, ask.MinReadyPercent = rollout.Disk, newer, rollout.Hold, 50
		out[name] = ask
	}
	return out
}

// troubles are what engines may do meanwhile.
var troubles = map[string]func(w *world){
	"engines that do as they are told":               func(*world) {},
	"an engine that declines twice":                  func(w *world) { w.engines[1].refuse = 2 },
	"an engine that comes back with another version": func(w *world) { w.engines[0].misread = 1 },
	"an engine that was restarted":                   func(w *world) { w.engines[2].version = alien },
	"a dead engine, which Proceed does without": func(w *world) {
		w.engines[1].dead = true
		w.spec.OnFailure = rollout.Proceed
	},
	"an engine that always declines, until Hold gives up": func(w *world) {
		w.engines[1].refuse = 1000
		w.spec.Deadline = 3 * time.Second
	},
	"an engine that always declines, which Proceed does without": func(w *world) {
		w.engines[1].refuse = 1000
		w.spec.OnFailure = rollout.Proceed
	},
}

func TestWhoeverStopsAfterAnyStepIsFinishedByAnother(t *testing.T) {
	for way, ask := range diskWays() {
		for trouble, make := range troubles {
			t.Run(way+" with "+trouble, func(t *testing.T) {
				begin := func() *world {
					w := newWorld(ask, 3)
					make(w)
					w.pass()
					return w
				}
				whole := begin()
				acts := whole.finish(0, 2000)
				report(t, whole, "without a crash")
				for at := 1; at <= acts; at++ {
					w := begin()
					w.finish(at, 2000)
					report(t, w, fmt.Sprintf("after a crash at act %d of %d", at, acts))
					if got, want := w.state(), whole.state(); got != want {
						t.Fatalf("a crash at act %d of %d ends elsewhere:\n got %s\nwant %s\n%s", at, acts, got, want, strings.Join(w.log, "\n"))
					}
				}
				t.Logf("%d acts: %s", acts, whole.state())
			})
		}
	}
}

func report(t *testing.T, w *world, when string) {
	t.Helper()
	if w.broken != nil {
		t.Fatalf("%s: %v\n%s", when, w.broken, strings.Join(w.log, "\n"))
	}
}

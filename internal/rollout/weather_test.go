package rollout_test

import (
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/berthmaster/berthmaster/internal/rollout"
)

// TestEveryWeatherEndsInTheVersionAskedFor plays processes that crash, engines that decline, die, are
// restarted and paused by others, and owners who change their minds, in any order. While it lasts no
// law is broken; once it ends, the pool comes to the version that was asked for last.
func TestEveryWeatherEndsInTheVersionAskedFor(t *testing.T) {
	ways := diskWays()
	names := []string{"rolling", "in place", "all at once by Drain", "all at once by Abort", "all at once by Retract", "all at once by InPlace"}
	rapid.Check(t, func(t *rapid.T) {
		spec := ways[rapid.SampledFrom(names).Draw(t, "way")]
		spec.OnFailure = rapid.SampledFrom([]rollout.OnFailure{rollout.Hold, rollout.Proceed}).Draw(t, "onFailure")
		spec.MaxUnavailable = rapid.IntRange(0, 2).Draw(t, "maxUnavailable")
		spec.Deadline = rapid.SampledFrom([]time.Duration{0, 2 * time.Second, time.Minute}).Draw(t, "deadline")
		w := newWorld(spec, rapid.IntRange(1, 4).Draw(t, "size"))
		engine := rapid.IntRange(0, len(w.engines)-1)
		act := func(*rapid.T) { w.act() }
		serve := func(t *rapid.T) { w.serve(engine.Draw(t, "engine")) }
		t.Repeat(map[string]func(*rapid.T){
			"act": act, "act again": act, "act once more": act, "serve": serve, "serve again": serve,
			"pass":  func(*rapid.T) { w.pass() },
			"crash": func(*rapid.T) { w.crash() },
			"ask": func(t *rapid.T) {
				w.spec.Target = rapid.SampledFrom([]rollout.Version{older, newer, "v3"}).Draw(t, "version")
			},
			"restart": func(t *rapid.T) { w.restart(engine.Draw(t, "engine")) },
			"die":     func(t *rapid.T) { w.engines[engine.Draw(t, "engine")].dead = true },
			"decline": func(t *rapid.T) { w.engines[engine.Draw(t, "engine")].refuse = 2 },
			"misread": func(t *rapid.T) { w.engines[engine.Draw(t, "engine")].misread = 1 },
			"meddle":  func(t *rapid.T) { w.meddle(engine.Draw(t, "engine")) },
			"": func(t *rapid.T) {
				if w.broken != nil {
					t.Fatalf("%v\n%s", w.broken, strings.Join(w.log, "\n"))
				}
			},
		})
		w.clear()
		w.finish(0, 3000)
		if w.broken != nil {
			t.Fatalf("in the end: %v\n%s", w.broken, strings.Join(w.log, "\n"))
		}
		if w.status.published != w.spec.Target {
			t.Fatalf("ends on %s, and %s was asked for\n%s", w.status.published, w.spec.Target, strings.Join(w.log, "\n"))
		}
	})
}

// restart begins a new life of an engine: nothing runs, and it has the weights that it ships with.
func (w *world) restart(i int) {
	for _, c := range w.engines[i].queue {
		if c.answer != nil {
			c.answer(rollout.Answer{Problem: "connection reset"})
		}
	}
	w.endRuns(i)
	w.engines[i] = &engine{version: alien}
	w.memory.records[i], w.memory.pausedBy[i] = rollout.Record{}, rollout.NotPaused
	w.status.begun[i], w.status.pause[i], w.status.how[i] = "", rollout.NotPaused, ""
	w.router.confirmed[i], w.router.unknown[i] = "", false
	w.todo = nil // what was planned for the old life is void
	w.log = append(w.log, string(rune('a'+i))+" is restarted")
}

// meddle pauses an engine behind our back, or ends that.
func (w *world) meddle(i int) {
	e := w.engines[i]
	switch {
	case e.by == "others":
		e.paused, e.by = "", ""
	case e.paused == "" && len(e.queue) == 0 && len(w.todo) == 0 && w.status.pause[i] == rollout.NotPaused:
		e.paused, e.by = rollout.PauseInPlace, "others"
	}
}

// clear ends the weather. The owner gives up deadlines: what was given up by one is asked for anew.
func (w *world) clear() {
	w.spec.Deadline = 0
	for i, e := range w.engines {
		if e.dead {
			w.restart(i)
		}
		e = w.engines[i]
		e.refuse, e.misread = 0, 0
		if e.by == "others" {
			e.paused, e.by = "", ""
		}
	}
}

package conformance

import (
	"net/http"
	"testing"
	"time"

	"github.com/berthmaster/berthmaster/internal/enginesim"
)

func pauseRows() []row {
	return []row{
		{"1.5", "pause needs a body, of which {} is enough, and says that it paused", admin, nil, func(t *testing.T, e *engine) {
			wantStatus(t, e.post(t, "/pause_generation", ""), http.StatusBadRequest)
			wantStatus(t, e.post(t, "/pause_generation", `{"mode":"gently"}`), http.StatusBadRequest)
			o := e.ok(t, "/pause_generation", "{}").object(t)
			if o["message"] != "Generation paused successfully." || o["status"] != "ok" {
				t.Errorf("%v", o)
			}
			o = e.ok(t, "/continue_generation", "{}").object(t)
			if o["message"] != "Generation continued successfully." || o["status"] != "ok" {
				t.Errorf("%v", o)
			}
		}},
		{"1.5", "pause and continue are idempotent", admin, nil, func(t *testing.T, e *engine) {
			e.pause(t, "abort")
			e.pause(t, "abort")
			e.ok(t, "/continue_generation", "{}")
			e.ok(t, "/continue_generation", "{}")
			e.ok(t, "/generate", `{"text":"x","sampling_params":{"max_new_tokens":1}}`)
		}},
		{"1.5", "a pause in mode abort ends what runs with abort", admin, nil, func(t *testing.T, e *engine) {
			p := e.hold(t)
			e.pause(t, "abort")
			defer e.ok(t, "/continue_generation", "{}")
			var g generated
			p.wait(t).decode(t, &g)
			if g.Meta.Reason["type"] != "abort" {
				t.Errorf("%v", g.Meta.Reason)
			}
		}},
		{"1.5", "new requests park while paused and are served after continue, in every mode", admin, nil, func(t *testing.T, e *engine) {
			for _, mode := range []string{"abort", "retract", "in_place"} {
				e.pause(t, mode)
				p := e.background(t, "/generate", `{"text":"parked","sampling_params":{"max_new_tokens":2,"ignore_eos":true}}`)
				if e.simulated != nil {
					eventually(t, "it is parked", func() bool { return e.get(t, "/sim/state").object(t)["parked"] == 1.0 })
				}
				if p.answered() {
					t.Errorf("%s: answered while paused", mode)
				}
				e.ok(t, "/continue_generation", "{}")
				wantStatus(t, p.wait(t), http.StatusOK)
			}
		}},
		{"1.5", "what ran before a pause in mode retract or in_place completes after continue", admin, nil, checkSurvival},
		{"1.5", "an abort of a running request waits for continue while retracted or paused in place", admin, nil, checkLateAbort},
		{"1.5", "an abort of a waiting request works while paused in place", simulator,
			func(c *enginesim.Config) { c.Model.MaxRunning = 1 }, func(t *testing.T, e *engine) {
				e.hold(t)
				rid := e.rid(t)
				p := e.background(t, "/generate", body(map[string]any{"text": "x", "rid": rid}))
				eventually(t, "it waits", func() bool { return e.loads(t)[0].Waiting == 1 })
				e.pause(t, "in_place")
				e.abort(t, rid)
				wantStatus(t, p.wait(t), http.StatusOK)
			}},
		{"1.5", "a continue waits for a pause in mode abort that is at work", simulator, nil, checkContinueWaits},
	}
}

func checkSurvival(t *testing.T, e *engine) {
	for _, mode := range []string{"retract", "in_place"} {
		goOn := func() { e.ok(t, "/continue_generation", "{}") }
		p, n := e.catch(t, func() { e.pause(t, mode) }, goOn)
		goOn()
		var g generated
		r := p.wait(t)
		wantStatus(t, r, http.StatusOK)
		r.decode(t, &g)
		if g.Meta.Completion != n || g.Meta.Reason["type"] != "length" {
			t.Errorf("%s: %d tokens, %v", mode, g.Meta.Completion, g.Meta.Reason)
		}
		if mode == "retract" && g.Meta.Retractions == 0 {
			t.Error("it was not retracted")
		}
	}
}

func checkLateAbort(t *testing.T, e *engine) {
	for _, mode := range []string{"retract", "in_place"} {
		p := e.hold(t)
		e.pause(t, mode)
		e.abort(t, p.rid)
		// A control request that answers after the abort shows that the abort has been looked at.
		wantStatus(t, e.get(t, "/server_info"), http.StatusOK)
		if p.answered() {
			t.Errorf("%s: aborted while paused", mode)
		}
		e.ok(t, "/continue_generation", "{}")
		var g generated
		p.wait(t).decode(t, &g)
		if g.Meta.Reason["type"] != "abort" || g.Meta.Completion == e.endless {
			t.Errorf("%s: %v", mode, g.Meta.Reason)
		}
	}
}

// checkContinueWaits makes a pause in mode abort take long: an update that is under way keeps the scheduler from
// looking at the abort.
func checkContinueWaits(t *testing.T, e *engine) {
	p := e.hold(t)
	e.fault(t, `{"kind":"scheduler-dead"}`)
	pause := e.background(t, "/pause_generation", "{}")
	eventually(t, "the pause is at work", func() bool { return e.get(t, "/sim/state").object(t)["paused"] == "abort" })
	goOn := e.background(t, "/continue_generation", "{}")
	select {
	case <-goOn.reply:
		t.Error("continue did not wait for the pause")
	case <-time.After(20 * e.second / 10):
	}
	e.clearFaults(t)
	wantStatus(t, pause.wait(t), http.StatusOK)
	wantStatus(t, p.wait(t), http.StatusOK)
	wantStatus(t, goOn.wait(t), http.StatusOK)
	e.ok(t, "/generate", `{"text":"x","sampling_params":{"max_new_tokens":1}}`)
}

package field

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/berthmaster/berthmaster/internal/enginesim"
	"github.com/berthmaster/berthmaster/internal/prober"
	"github.com/berthmaster/berthmaster/internal/router"
	"github.com/berthmaster/berthmaster/internal/sglang"
)

// post asks an engine something that is not part of the story, such as to misbehave.
func post(t *testing.T, e *engine, path, body string) {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, path, strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	rec := httptest.NewRecorder()
	e.Server.ServeHTTP(rec, r)
	if rec.Code != http.StatusOK {
		t.Fatalf("%s %s: %d %s", path, body, rec.Code, rec.Body)
	}
}

// training-gym#307, sglang#22511: engines were killed for the 503s of a pause. Ours pauses one for
// ten minutes with a budget of ten seconds, and a probe sent before the pause would land after it.
func TestTenMinutesOfAPauseSpendNoBudgetAndThreeRealFailuresDo(t *testing.T) {
	inHouse(t, func(h *house) {
		paused, other := h.add("b0", enginesim.Config{}), h.add("b1", enginesim.Config{})
		pass(10 * time.Second)
		h.startOfAProbe(paused)
		h.pause("b0")
		asked := paused.probed()
		pass(600 * time.Second)
		if got := h.backend("b0"); got.Health != router.Healthy || got.Admissible {
			t.Errorf("during the pause: %+v, want Healthy and no leases", got)
		}
		if n := paused.probed() - asked; n != 0 {
			t.Errorf("%d probes during the pause", n)
		}
		if _, err := h.turn("s1", 4); err != nil || other.started() != 1 {
			t.Fatalf("a turn during the pause: %v, %d on the other backend", err, other.started())
		}

		h.resume("b0")
		pass(2 * time.Second) // a probe of the simulated engine takes one
		if got := h.backend("b0"); !got.Admissible {
			t.Errorf("after the pause: %+v", got)
		}
		if _, err := h.turn("s2", 4); err != nil || paused.started() != 1 {
			t.Fatalf("a turn after the pause: %v, %d on the backend that was paused", err, paused.started())
		}

		h.fault("b0", `{"kind":"status","status":500,"paths":["/health"],"count":3}`)
		failing := paused.probed()
		for paused.probed() < failing+2 {
			pass(time.Second)
		}
		if got := h.backend("b0"); got.Health != router.Healthy {
			t.Errorf("after two failures: %s", got.Health)
		}
		for paused.probed() < failing+3 {
			pass(time.Second)
		}
		if got := h.backend("b0"); got.Health != router.Unhealthy || got.Admissible {
			t.Errorf("after three failures: %+v", got)
		}
		h.nothingLeft()
	})
}

// AReaL: SGLang's /health generates a token, so that a probe that meets a paused engine hangs for
// twenty seconds and is answered 503 once the engine runs again.
func TestAProbeThatMeetsAPauseHasNoEffect(t *testing.T) {
	inHouse(t, func(h *house) {
		e := h.add("b0", enginesim.Config{})
		h.targets[0].FailureThreshold = 1 // a single answer that counted would show
		h.apply()
		pass(10 * time.Second)
		for range 10 { // wherever in the period the pause begins
			late := e.answerLate()
			h.startOfAProbe(e)
			h.pause("b0")
			pass(19 * time.Second)
			h.resume("b0")
			close(late) // now, if the probe still waits, its 503 lands
			for range 30 {
				pass(time.Second)
				if got := h.backend("b0"); got.Health != router.Healthy {
					t.Fatalf("%s after the pause", got.Health)
				}
			}
		}
		if _, err := h.turn("s1", 4); err != nil {
			t.Error(err)
		}
		h.nothingLeft()
	})
}

// The same engine, paused by somebody else: it takes no leases, spends no budget, is not continued
// by us, and is back by itself once it generates.
func TestAnEngineThatSomebodyElsePausedIsLeftAloneAndComesBack(t *testing.T) {
	inHouse(t, func(h *house) {
		e := h.add("b0", enginesim.Config{})
		pass(10 * time.Second)
		post(h.t, e, "/pause_generation", `{"mode":"in_place"}`)
		pass(50 * time.Second)
		for range 60 { // many budgets of ten seconds
			if got := h.backend("b0"); got.Health != router.SuspectedPaused || got.Admissible {
				t.Fatalf("while paused by another: %+v", got)
			}
			pass(10 * time.Second)
		}
		if _, err := h.turn("s1", 4); err == nil || e.started() != 0 {
			t.Errorf("a turn met a paused engine: %v, %d started", err, e.started())
		}
		post(h.t, e, "/continue_generation", `{}`)
		pass(30 * time.Second)
		if got := h.backend("b0"); !got.Admissible {
			t.Errorf("after it was continued: %+v", got)
		}
		if _, err := h.turn("s1", 4); err != nil || e.started() != 1 {
			t.Errorf("a turn afterwards: %v, %d started", err, e.started())
		}
		h.nothingLeft()
	})
}

// startOfAProbe passes time until the engine has just been asked for its health.
func (h *house) startOfAProbe(e *engine) {
	for n := e.probed(); e.probed() == n; {
		pass(100 * time.Millisecond)
	}
}

// pause stops an engine as the operator does: the router first, then the prober, then the engine.
func (h *house) pause(name string) {
	h.t.Helper()
	h.mode(name, router.EnginePaused)
	if err := h.prober.Pause(prober.Key{Pool: poolUID, Incarnation: name}); err != nil {
		h.t.Fatal(err)
	}
	if err := h.engineClient(name).Pause(h.t.Context(), sglang.PauseInPlace); err != nil {
		h.t.Fatal(err)
	}
}

// resume lets it run again, in the opposite order.
func (h *house) resume(name string) {
	h.t.Helper()
	if err := h.engineClient(name).Continue(h.t.Context()); err != nil {
		h.t.Fatal(err)
	}
	if err := h.prober.Resume(prober.Key{Pool: poolUID, Incarnation: name}); err != nil {
		h.t.Fatal(err)
	}
	h.mode(name, router.EngineRunning)
}

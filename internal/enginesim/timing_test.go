package enginesim

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/berthmaster/berthmaster/internal/enginesim/model"
)

func TestARequestTakesTheTimeOfTheModelDividedBySpeed(t *testing.T) {
	for _, speed := range []float64{1, 10, 0.5} {
		inBubble(t, Config{Speed: speed}, func(b *bubble) {
			c := b.post("/generate", hundred(""))
			if want := time.Duration(float64(hundredTime) / speed); !about(c.took, want) {
				t.Errorf("speed %v: took %v, want %v", speed, c.took, want)
			}
		})
	}
}

func TestHealthTakesAPollAndGivesUpAtItsTimeout(t *testing.T) {
	inBubble(t, Config{}, func(b *bubble) {
		if c := b.do(http.MethodGet, "/health", ""); c.rec.Code != http.StatusOK || !about(c.took, time.Second) {
			t.Errorf("healthy: %d after %v", c.rec.Code, c.took)
		}
		b.post("/pause_generation", `{"mode":"in_place"}`)
		if c := b.do(http.MethodGet, "/health", ""); c.rec.Code != http.StatusServiceUnavailable || !about(c.took, 20*time.Second) {
			t.Errorf("paused: %d after %v", c.rec.Code, c.took)
		}
	})
}

func TestHealthScalesWithSpeed(t *testing.T) {
	inBubble(t, Config{Speed: 100, HealthPoll: 2 * time.Second}, func(b *bubble) {
		if c := b.do(http.MethodGet, "/health", ""); !about(c.took, 20*time.Millisecond) {
			t.Errorf("took %v", c.took)
		}
	})
}

func TestAHealthProbeThatSpansTheResumeSucceeds(t *testing.T) {
	inBubble(t, Config{}, func(b *bubble) {
		b.post("/pause_generation", `{}`)
		c := b.start(http.MethodGet, "/health", "")
		after(5500 * time.Millisecond)
		b.post("/continue_generation", `{}`)
		<-c.done
		if c.rec.Code != http.StatusOK || !about(c.took, 6*time.Second) {
			t.Errorf("%d after %v", c.rec.Code, c.took)
		}
	})
}

func TestPauseInPlaceDelaysByItsLength(t *testing.T) {
	inBubble(t, Config{}, func(b *bubble) {
		c := b.start(http.MethodPost, "/generate", hundred(""))
		after(300 * time.Millisecond)
		b.post("/pause_generation", `{"mode":"in_place"}`)
		after(600 * time.Second)
		if c.over() {
			t.Fatal("it went on while paused")
		}
		b.post("/continue_generation", `{}`)
		<-c.done
		if want := hundredTime + 600*time.Second; !about(c.took, want) {
			t.Errorf("took %v, want %v", c.took, want)
		}
	})
}

func TestARetractedRequestPrefillsAgainAndKeepsItsTokens(t *testing.T) {
	inBubble(t, Config{}, func(b *bubble) {
		whole := b.post("/generate", hundred("")).json(t)["output_ids"]
		c := b.start(http.MethodPost, "/generate", hundred(""))
		after(300 * time.Millisecond)
		b.post("/pause_generation", `{"mode":"retract"}`)
		b.post("/continue_generation", `{}`)
		<-c.done
		if c.took <= hundredTime {
			t.Errorf("it took %v, no longer than without a retraction", c.took)
		}
		if diff := cmp.Diff(whole, c.json(t)["output_ids"]); diff != "" {
			t.Error(diff)
		}
	})
}

func TestEqualRequestsGetEqualTokensOnEveryEngine(t *testing.T) {
	var first any
	for _, name := range []string{"a", "b"} {
		inBubble(t, Config{Name: name, WeightVersion: name, Speed: 3}, func(b *bubble) {
			ids := b.post("/generate", hundred("")).json(t)["output_ids"]
			if first == nil {
				first = ids
			}
			if diff := cmp.Diff(first, ids); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestUpdateHoldsTheEngineForItsTime(t *testing.T) {
	inBubble(t, Config{UpdateTime: 7 * time.Second, Speed: 2}, func(b *bubble) {
		c := b.post("/update_weights_from_disk", `{"model_path":"m"}`)
		if !about(c.took, 3500*time.Millisecond) {
			t.Errorf("took %v", c.took)
		}
	})
}

func TestANegativeUpdateTimeMeansNone(t *testing.T) {
	inBubble(t, Config{UpdateTime: -1}, func(b *bubble) {
		if c := b.post("/update_weights_from_disk", `{"model_path":"m"}`); c.took > time.Millisecond || c.rec.Code != http.StatusOK {
			t.Errorf("%d after %v", c.rec.Code, c.took)
		}
	})
}

func TestAnUpdateOutlivesItsClient(t *testing.T) {
	inBubble(t, Config{}, func(b *bubble) {
		c := b.start(http.MethodPost, "/update_weights_from_disk", `{"model_path":"m","weight_version":"v2"}`)
		after(time.Second)
		c.cancel()
		after(time.Minute)
		if v := b.do(http.MethodGet, "/model_info", "").json(t)["weight_version"]; v != "v2" {
			t.Errorf("version %v", v)
		}
	})
}

func TestStreamIntervalBoundsTheEvents(t *testing.T) {
	count := func(interval time.Duration) (n int) {
		inBubble(t, Config{StreamInterval: interval}, func(b *bubble) {
			c := b.post("/generate", hundred(`,"stream":true`))
			n = strings.Count(c.rec.Body.String(), "data: {")
			if !about(c.took, hundredTime) {
				t.Errorf("the stream took %v", c.took)
			}
		})
		return n
	}
	if n := count(10 * time.Millisecond); n < 50 || n > 66 {
		t.Errorf("%d events at 10 ms", n)
	}
	if n := count(100 * time.Millisecond); n < 6 || n > 10 {
		t.Errorf("%d events at 100 ms", n)
	}
}

func TestStartupLastsAsLongAsItSays(t *testing.T) {
	inBubble(t, Config{Startup: 30 * time.Second}, func(b *bubble) {
		after(29 * time.Second)
		if c := b.do(http.MethodGet, "/health", ""); c.rec.Code != http.StatusServiceUnavailable || c.took > time.Millisecond {
			t.Errorf("starting: %d after %v", c.rec.Code, c.took)
		}
		after(2 * time.Second)
		if c := b.do(http.MethodGet, "/health", ""); c.rec.Code != http.StatusOK {
			t.Errorf("started: %d", c.rec.Code)
		}
	})
}

func TestTerminateLooksEveryExitPoll(t *testing.T) {
	inBubble(t, Config{ExitPoll: 10 * time.Second}, func(b *bubble) {
		c := b.start(http.MethodPost, "/generate", hundred(""))
		after(100 * time.Millisecond)
		began := time.Now()
		b.s.Terminate()
		b.s.Terminate() // twice is once
		<-c.done
		<-b.s.Done()
		if took := time.Since(began); !about(took, 10*time.Second) || b.s.ExitCode() != 0 || c.cut {
			t.Errorf("ended after %v with %d, request cut: %v", took, b.s.ExitCode(), c.cut)
		}
	})
}

// A request may be past the gate and not yet in the scheduler when a pause aborts everything.
func TestPauseAbortsAgainWhatItMissed(t *testing.T) {
	inBubble(t, Config{AbortPoll: 3 * time.Second}, func(b *bubble) {
		if err := b.s.enter(b.t.Context()); err != nil {
			t.Fatal(err)
		}
		pause := b.start(http.MethodPost, "/pause_generation", `{}`)
		after(time.Second)
		q := &sequence{plan: plan{id: "late", rid: "late", promptTokens: 1, output: 100_000}, wake: make(chan struct{}, 1)}
		b.s.change(func(*state) {
			if err := b.s.startLocked([]*sequence{q}); err != nil {
				t.Error(err)
			}
		})
		x := &execution{server: b.s, seqs: []*sequence{q}}
		if _, err := x.wait(b.t.Context()); err != nil {
			t.Error(err)
		}
		x.leave()
		<-pause.done
		if x.look(q).status != seqAborted || !about(pause.took, 3*time.Second) {
			t.Errorf("status %v, the pause took %v", x.look(q).status, pause.took)
		}
	})
}

func TestNothingIsGeneratedUntilAllMemoryIsBack(t *testing.T) {
	inBubble(t, Config{MemorySaver: On}, func(b *bubble) {
		b.post("/release_memory_occupation", `{"tags":["weights","kv_cache"]}`)
		c := b.start(http.MethodPost, "/generate", hundred(""))
		b.post("/resume_memory_occupation", `{"tags":["weights"]}`)
		after(time.Hour)
		if c.over() {
			t.Error("it generated without its cache")
		}
		b.post("/resume_memory_occupation", `{"tags":["kv_cache"]}`)
		<-c.done
		if c.rec.Code != http.StatusOK {
			t.Errorf("status %d", c.rec.Code)
		}
	})
}

func TestARequestForNoTokensGetsNone(t *testing.T) {
	inBubble(t, Config{}, func(b *bubble) {
		out := b.post("/generate", `{"text":"x","sampling_params":{"max_new_tokens":0}}`).json(t)
		meta, _ := out["meta_info"].(map[string]any)
		if out["text"] != "" || meta["completion_tokens"] != 0.0 {
			t.Errorf("%v", out)
		}
	})
}

func TestAnAbortedOutputIsASignOfLifeWhilePaused(t *testing.T) {
	inBubble(t, Config{Model: model.Params{MaxRunning: 1}}, func(b *bubble) {
		runs := b.start(http.MethodPost, "/generate", hundred(""))
		after(50 * time.Millisecond)
		waits := b.start(http.MethodPost, "/generate", hundred(`,"rid":"waits"`))
		after(50 * time.Millisecond)
		b.post("/pause_generation", `{"mode":"in_place"}`)
		probe := b.start(http.MethodGet, "/health", "")
		after(2500 * time.Millisecond)
		b.post("/abort_request", `{"rid":"waits"}`)
		<-waits.done
		<-probe.done
		if probe.rec.Code != http.StatusOK || !about(probe.took, 3*time.Second) {
			t.Errorf("%d after %v", probe.rec.Code, probe.took)
		}
		b.post("/continue_generation", `{}`)
		<-runs.done
	})
}

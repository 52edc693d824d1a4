package field

import (
	"errors"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/berthmaster/berthmaster/client"
	"github.com/berthmaster/berthmaster/internal/enginesim"
	"github.com/berthmaster/berthmaster/internal/router"
)

// sglang#25811, #13894: 400s of too long a context, and 429 or 503 of full queues, opened the
// circuit breakers of all backends.
func TestRefusalsOfRequestsHarmNeitherBackendsNorThePool(t *testing.T) {
	for _, refusal := range []struct {
		what   string
		status int
	}{{"a context too long", http.StatusBadRequest}, {"a full queue", http.StatusTooManyRequests}} {
		t.Run(refusal.what, func(t *testing.T) {
			inHouse(t, func(h *house) {
				for i := range 4 {
					h.add(name(i), enginesim.Config{})
					h.fault(name(i), fmt.Sprintf(`{"kind":"status","status":%d,"paths":["/generate"],"count":100}`, refusal.status))
				}
				pass(10 * time.Second)
				for i := range 400 {
					_, err := h.turn(fmt.Sprint("s", i), 4)
					var ended *client.OutcomeError
					if !errors.As(err, &ended) || ended.Status != refusal.status {
						t.Fatalf("turn %d: %v", i, err)
					}
				}
				for i := range 4 {
					if got := h.backend(name(i)); !got.Admissible || got.Health != router.Healthy {
						t.Errorf("%s: %+v", name(i), got)
					}
					if n := h.engines[name(i)].started(); n != 0 {
						t.Errorf("%s generated %d of the requests that it refused", name(i), n)
					}
				}
				h.nothingLeft()
				if _, err := h.turn("after", 4); err != nil {
					t.Errorf("a turn afterwards: %v", err)
				}
			})
		})
	}
}

// miles#1724, #1805: an engine that came back took traffic with old weights.
func TestAnEngineWithOldWeightsGetsNoSessionUntilItIsConfirmed(t *testing.T) {
	inHouse(t, func(h *house) {
		h.fleet.Published = "v7"
		for i := range 3 {
			h.add(name(i), enginesim.Config{WeightVersion: "v7"})
		}
		fresh := h.add("b3", enginesim.Config{WeightVersion: "default"})
		pass(10 * time.Second)
		h.play("seven", 500)
		if n := fresh.started(); n != 0 {
			t.Errorf("%d of 500 sessions generated on the weights %q", n, "default")
		}
		if got := h.backend("b3"); got.Health != router.Healthy || got.Admissible {
			t.Errorf("the new engine: %+v", got)
		}

		for i := range 4 {
			if err := h.engineClient(name(i)).SetWeightVersion(h.t.Context(), "v8"); err != nil {
				t.Fatal(err)
			}
		}
		h.fleet.Published = "v8"
		h.apply()
		pass(20 * time.Second)
		h.play("eight", 400)
		for i := range 4 { // of 900 sessions, whose ties go to the fewest that live on a backend
			if n := h.backend(name(i)).Sessions; n != 225 {
				t.Errorf("%s is home to %d sessions once v8 was confirmed everywhere, want 225", name(i), n)
			}
		}
		h.nothingLeft()
	})
}

// production-stack#749, #420: one hung backend blocked the loop of all.
func TestABackendThatNeverAnswersDelaysNoOthersProbes(t *testing.T) {
	inHouse(t, func(h *house) {
		h.net.listen("hung:30000") // connections wait to be accepted for ever
		h.join("hung")
		for i := range 100 {
			h.add(name(i), enginesim.Config{})
		}
		pass(61 * time.Second)
		for i := range 100 {
			e := h.engines[name(i)]
			e.mu.Lock()
			probes := e.probes
			e.mu.Unlock()
			if len(probes) < 12 {
				t.Errorf("%s was probed %d times in a minute", name(i), len(probes))
			}
			for n := 1; n < len(probes); n++ {
				if gap := probes[n].Sub(probes[n-1]); gap > 5500*time.Millisecond {
					t.Errorf("%s: %v between two probes of a period of 5 s", name(i), gap)
				}
			}
		}
		if got := h.backend("hung"); got.Admissible {
			t.Errorf("the hung backend: %+v", got)
		}
		if _, err := h.turn("s1", 4); err != nil {
			t.Error(err)
		}
	})
}

// play has n sessions of one turn each, one after the other.
func (h *house) play(prefix string, n int) {
	h.t.Helper()
	for i := range n {
		result, err := h.turn(fmt.Sprintf("%s-%d", prefix, i), 4)
		if err != nil {
			h.t.Fatalf("session %s-%d: %v", prefix, i, err)
		}
		if result.WeightVersion != string(h.fleet.Published) {
			h.t.Fatalf("session %s-%d generated with %q under %q", prefix, i, result.WeightVersion, h.fleet.Published)
		}
	}
}

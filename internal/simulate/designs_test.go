package simulate

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/berthmaster/berthmaster/internal/enginesim/model"
	"github.com/berthmaster/berthmaster/internal/simulate/workload"
)

// drawWeighed is a design's view of a fleet in any state, with one session of one turn.
func drawWeighed(t *rapid.T, d design) *weighed {
	b := drawBoard(t)
	given := situation{fleet: b.fleet, sessions: []workload.Session{turns("a", 50, 50, 50)}}
	opened, err := d.open(given)
	if err != nil {
		t.Fatal(err)
	}
	w := opened.(*weighed)
	w.outstanding, w.sessions, w.served = b.outstanding, b.sessions, b.known
	for i := range w.weights {
		w.weights[i] = int64(rapid.IntRange(0, 9).Draw(t, "weight"))
	}
	return w
}

// checkOrder fails when before is not an order: not antisymmetric or not transitive.
func checkOrder(t *rapid.T, w *weighed) {
	n := len(w.fleet)
	for a := range n {
		for b := range n {
			if w.design.before(w, a, b) != -w.design.before(w, b, a) {
				t.Fatalf("%d and %d are ordered both ways", a, b)
			}
			for c := range n {
				if w.design.before(w, a, b) < 0 && w.design.before(w, b, c) <= 0 && w.design.before(w, a, c) >= 0 {
					t.Fatalf("%d, %d and %d go round", a, b, c)
				}
			}
		}
	}
}

func TestDesignsOrderReplicas(t *testing.T) {
	for name, d := range map[string]design{
		"promised": {before: promised}, "sessions first": {before: sessionsFirst},
		"least weight": {before: leastWeight, weight: remainingTokens}, "ties by weight": {before: tiesByWeight, weight: tokensPerTurn},
		"ties by tokens": {before: tiesByServed}, "ties by tokens, bounded": {before: tiesByServedBounded},
	} {
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) { checkOrder(t, drawWeighed(t, d)) })
		})
	}
}

func TestTiesNeverOutweighOutstandingExecutions(t *testing.T) {
	for name, d := range map[string]design{
		"promised": {before: promised}, "by weight": {before: tiesByWeight, weight: tokensPerTurn},
		"by tokens": {before: tiesByServed}, "by tokens, bounded": {before: tiesByServedBounded},
	} {
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				w := drawWeighed(t, d)
				at := w.best()
				for i := range w.fleet {
					if w.byOutstanding(i, at) < 0 {
						t.Fatalf("chose %d of %v, though %d has less", at, w.outstanding, i)
					}
				}
			})
		})
	}
}

func TestExcessIsZeroUpToHalfAboveAFairShare(t *testing.T) {
	w := &weighed{board: board{situation: situation{fleet: fleet(2, model.Params{})}}}
	w.fleet[1].Capacity /= 2 // shares of 2/3 and 1/3
	for _, c := range []struct {
		sessions []int64
		want     [2]int64
	}{
		{[]int64{0, 0}, [2]int64{0, 0}},
		{[]int64{5, 0}, [2]int64{0, 0}}, // of 6: bounds 6 and 3
		{[]int64{0, 5}, [2]int64{0, 3}},
		{[]int64{0, 2}, [2]int64{0, 1}}, // of 3: bounds 3 and 2
	} {
		w.sessions = c.sessions
		if got := [2]int64{w.excess(0), w.excess(1)}; got != c.want {
			t.Errorf("sessions %v: excess %v, want %v", c.sessions, got, c.want)
		}
	}
}

func TestThirdTurnDecidesOnceMore(t *testing.T) {
	long := make([]int, 12)
	for i := range long {
		long[i] = 100
	}
	s := fixed(ByArrival, 0, 2, turns("a", long...), turns("b", 1), turns("c", long...), turns("d", 1))
	r, err := Run(s, arm(t, "third-turn"), 1)
	if err != nil {
		t.Fatal(err)
	}
	// a and c share a replica until the other one is empty; at its third turn a leaves.
	if r.Moves != 1 {
		t.Errorf("%d moves of two long sessions, want 1", r.Moves)
	}
}

func TestGapIsClosedOnlyWhenItIsWorthThePrefill(t *testing.T) {
	opened, err := design{before: tiesByServedBounded, weight: tokensPerTurn, move: closesGap}.open(
		situation{fleet: fleet(2, model.Params{}), sessions: []workload.Session{turns("a", 50, 50, 50)}})
	if err != nil {
		t.Fatal(err)
	}
	w := opened.(*weighed)
	for range 2 { // two turns at home, 160 new tokens and 50 generated in each
		if at, err := w.acquire(0, 0); err != nil || at != 0 {
			t.Fatal(at, err)
		}
		if err := w.release(0, 0); err != nil {
			t.Fatal(err)
		}
	}
	rate := tokensPerTurn(w.progress[0])
	for _, c := range []struct {
		name string
		gap  int64
		busy int64
		want int
	}{
		{"a gap below the next turns", gapTurns * rate, 0, 0},
		{"a gap above them", gapTurns*rate + 1, 0, 1},
		{"a busier replica", 1 << 30, 1, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			w.settleBack()
			w.served = []int64{c.gap, 0}
			w.outstanding = []int64{0, c.busy}
			at, err := w.acquire(0, time.Hour)
			if err != nil || at != c.want {
				t.Errorf("turn runs on %d, %v; want %d", at, err, c.want)
			}
		})
	}
}

// settleBack brings the only session back to the first replica, as if it had never moved.
func (w *weighed) settleBack() {
	w.leave(0)
	w.settle(0, 0)
	w.progress[0].moved = -moveEvery
}

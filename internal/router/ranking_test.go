package router

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"
)

// TestTheRankingFindsWhatAScanFinds changes the figures of up to forty backends of few capacities
// at random, and compares the best and the second best with those of a look at each.
func TestTheRankingFindsWhatAScanFinds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := newState("pool", nil)
		n := rapid.IntRange(1, 40).Draw(t, "backends")
		for i := range n {
			b := newBackend(Member{Name: BackendName(fmt.Sprint(i)), Incarnation: Incarnation(fmt.Sprint(i)), Capacity: 4}, 0)
			b.seen.Health = Healthy
			s.backends[b.Incarnation] = b
			s.refresh(b)
		}
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			b := s.backends[Incarnation(fmt.Sprint(rapid.IntRange(0, n-1).Draw(t, "backend")))]
			change(t, s, b)
			if err := s.checkMirror(); err != nil {
				t.Fatal(err)
			}
			more := int64(rapid.IntRange(1, 3).Draw(t, "executions"))
			best, second := s.leastOutstanding(more)
			wantBest, wantSecond := s.scan(more, func(a, b *load) bool { return less(a, b, more) })
			if same(s, best, wantBest, more) && same(s, second, wantSecond, more) {
				continue
			}
			t.Fatalf("the ranking says %d and %d, a scan %d and %d of %+v", best, second, wantBest, wantSecond, s.loads)
		}
	})
}

// same: the same backend, or one that the order cannot tell from it.
func same(s *state, a, b int, n int64) bool {
	if a == b || a < 0 || b < 0 {
		return a == b
	}
	return !less(&s.loads[a], &s.loads[b], n) && !less(&s.loads[b], &s.loads[a], n)
}

// change changes one figure of a backend, or whether it takes sessions.
func change(t *rapid.T, s *state, b *backend) {
	switch rapid.IntRange(0, 5).Draw(t, "figure") {
	case 0, 1:
		s.outstanding(b, int64(rapid.IntRange(0, 6).Draw(t, "outstanding"))-b.outstanding)
	case 2:
		s.resident(b, "", int64(rapid.IntRange(0, 3).Draw(t, "sessions"))-b.sessions)
	case 3:
		s.chosen(b)
	case 4:
		b.Capacity = drawCapacity(t)
		b.capacity = b.effectiveCapacity()
		s.refresh(b)
	case 5:
		b.seen.Health = []Health{Healthy, Healthy, Unhealthy}[rapid.IntRange(0, 2).Draw(t, "health")]
		s.refresh(b)
	}
}

func drawCapacity(t *rapid.T) int64 {
	return []int64{2, 4, 8}[rapid.IntRange(0, 2).Draw(t, "capacity")]
}

func TestTiesBetweenCapacitiesGoToWhoeverWasChosenLongestAgo(t *testing.T) {
	// With one execution more each is half full.
	small, large := load{capacity: 4, outstanding: 1, lastChosen: 2}, load{capacity: 8, outstanding: 3, lastChosen: 1}
	if !less(&large, &small, 1) || less(&small, &large, 1) {
		t.Error("the one that was chosen last is chosen again")
	}
	small.lastChosen, large.lastChosen = 1, 2
	if !less(&small, &large, 1) || less(&large, &small, 1) {
		t.Error("the larger one is chosen, whenever it was chosen before")
	}
}

package simulate

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/berthmaster/berthmaster/internal/enginesim/model"
	"github.com/berthmaster/berthmaster/internal/simulate/workload"
)

// drawBoard is a board in any state.
func drawBoard(t *rapid.T) *board {
	n := rapid.IntRange(1, 8).Draw(t, "replicas")
	b := &board{situation: situation{
		fleet: fleet(n, model.Params{}), random: rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "chance"), 0)),
	}}
	for i := range b.fleet {
		b.fleet[i].Capacity = int64(rapid.IntRange(1, 300).Draw(t, "capacity"))
		b.outstanding = append(b.outstanding, int64(rapid.IntRange(0, 300).Draw(t, "outstanding")))
		b.sessions = append(b.sessions, int64(rapid.IntRange(0, 300).Draw(t, "sessions")))
		b.known = append(b.known, int64(rapid.IntRange(0, 300).Draw(t, "known")))
	}
	return b
}

func drawSession(t *rapid.T) *workload.Session {
	return &workload.Session{ID: rapid.StringMatching(`[a-z]{1,8}`).Draw(t, "session")}
}

func TestFewestSessionsLeavesNobodyWithFewer(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := drawBoard(t)
		at := fewestSessions(b, drawSession(t))
		for i := range b.fleet {
			if (b.sessions[i]+1)*b.fleet[at].Capacity < (b.sessions[at]+1)*b.fleet[i].Capacity {
				t.Fatalf("chose %d of %v, though %d has fewer", at, b.sessions, i)
			}
		}
	})
}

func TestPowerOfTwoNeverTakesTheHeavierOfTwo(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := drawBoard(t)
		at := betterOfTwo(b, drawSession(t))
		heavier := 0
		for i := range b.fleet {
			if b.outstanding[i]*b.fleet[at].Capacity >= b.outstanding[at]*b.fleet[i].Capacity {
				heavier++
			}
		}
		if len(b.fleet) > 1 && heavier < 2 { // the chosen one counts itself
			t.Fatalf("chose %d of %v, the single heaviest", at, b.outstanding)
		}
	})
}

func TestPowerOfTwoReachesEveryReplica(t *testing.T) {
	b := &board{situation: situation{fleet: fleet(5, model.Params{}), random: rand.New(rand.NewPCG(1, 1))}, outstanding: make([]int64, 5)}
	seen := make(map[int]int)
	for range 5000 {
		seen[betterOfTwo(b, nil)]++
	}
	for i := range 5 {
		if seen[i] < 800 || seen[i] > 1200 {
			t.Errorf("equal replicas were chosen %v times of 5000", seen)
		}
	}
}

func TestBoundedHashKeepsWithinItsBound(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := drawBoard(t)
		at := boundedScore(b, drawSession(t))
		total, capacity := int64(1), int64(0)
		for i := range b.fleet {
			total += b.outstanding[i]
			capacity += b.fleet[i].Capacity
		}
		bound := math.Ceil(hashBound * float64(total) * float64(b.fleet[at].Capacity) / float64(capacity))
		if float64(b.outstanding[at]+1) > bound {
			t.Fatalf("chose %d with %d outstanding, above %v", at, b.outstanding[at], bound)
		}
	})
}

func TestHashMovesOnlyTheSessionsOfAReplicaThatLeaves(t *testing.T) {
	whole := &board{situation: situation{fleet: fleet(8, model.Params{})}}
	short := &board{situation: situation{fleet: fleet(7, model.Params{})}}
	for i := range 2000 {
		s := &workload.Session{ID: fmt.Sprintf("t%04d", i)}
		before, after := highestScore(whole, s), highestScore(short, s)
		if before != 7 && before != after {
			t.Fatalf("session %s moved from %d to %d when 7 left", s.ID, before, after)
		}
	}
}

func TestHashGivesEachReplicaItsShareOfCapacity(t *testing.T) {
	b := &board{situation: situation{fleet: fleet(4, model.Params{})}}
	b.fleet[0].Capacity *= 3
	const n = 30000
	var seen [4]float64
	for i := range n {
		seen[highestScore(b, &workload.Session{ID: fmt.Sprintf("t%05d", i)})]++
	}
	for i, want := range []float64{0.5, 1. / 6, 1. / 6, 1. / 6} {
		if got := seen[i] / n; math.Abs(got-want) > 0.01 {
			t.Errorf("replica %d got %.3f of the sessions, want %.3f", i, got, want)
		}
	}
}

func TestLongestFirstStaysWithinBarriers(t *testing.T) {
	s := sweGroup(0.5)
	sessions, err := s.Sessions(1)
	if err != nil {
		t.Fatal(err)
	}
	sorted := longestFirst(sessions, s)
	size := 8 * inFlight
	for start := 0; start < len(sessions); start += size {
		batch := make(map[string]bool)
		for _, one := range sessions[start : start+size] {
			batch[one.ID] = true
		}
		for i, one := range sorted[start : start+size] {
			if !batch[one.ID] {
				t.Fatalf("session %s left its update", one.ID)
			}
			if i > 0 && one.OutputTokens() > sorted[start+i-1].OutputTokens() {
				t.Fatalf("session %s is longer than the one before it", one.ID)
			}
		}
	}
}

func TestFindArmsPutsTodaysPracticeFirst(t *testing.T) {
	arms, err := FindArms([]string{"random", Today, Promise})
	if err != nil || len(arms) != 3 || arms[0].Name != Today || arms[1].Name != "random" || arms[2].Name != Promise {
		t.Errorf("arms %v, %v", arms, err)
	}
	_, err = FindArms([]string{"fastest"})
	if !errors.Is(err, ErrUnknownArm) || !strings.Contains(err.Error(), "power-of-two") {
		t.Errorf("error %v", err)
	}
}

package simulate

import (
	"errors"
	"math"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/berthmaster/berthmaster/internal/enginesim/model"
	"github.com/berthmaster/berthmaster/internal/simulate/workload"
)

// fixed is a scenario of given sessions.
func fixed(opening Opening, inFlight, replicas int, sessions ...workload.Session) Scenario {
	return Scenario{
		Name: "fixed", Fleet: fleet(replicas, model.Params{}), Opening: opening, InFlight: inFlight,
		Sessions: func(uint64) ([]workload.Session, error) { return sessions, nil },
	}
}

// turns makes a session whose turns each generate that many tokens.
func turns(id string, outputs ...int) workload.Session {
	s := workload.Session{ID: id}
	context := 0
	for _, n := range outputs {
		s.Turns = append(s.Turns, workload.Turn{Prompt: context + 160, Fresh: 160, Output: n, ToolGap: time.Second})
		context += 160 + n
	}
	s.Turns[len(outputs)-1].ToolGap = 0
	return s
}

func arm(t *testing.T, name string) Arm {
	t.Helper()
	arms, err := FindArms([]string{name})
	if err != nil {
		t.Fatal(err)
	}
	return arms[len(arms)-1]
}

// drawScenario draws a small scenario of any rhythm on a fleet of any speeds.
func drawScenario(t *rapid.T) Scenario {
	shape := workload.Bundled()
	shape.Tasks = rapid.IntRange(1, 8).Draw(t, "tasks")
	shape.Samples = rapid.IntRange(1, 3).Draw(t, "samples")
	shape.Every = time.Duration(rapid.IntRange(0, 20).Draw(t, "every")) * time.Second
	s := Scenario{
		Name: "drawn", Fleet: fleet(rapid.IntRange(1, 5).Draw(t, "replicas"), model.Params{}),
		Opening:  rapid.SampledFrom([]Opening{ByArrival, KeepInFlight, Barrier}).Draw(t, "opening"),
		InFlight: rapid.IntRange(1, 8).Draw(t, "in flight"), Sessions: shape.Generate,
	}
	if rapid.Bool().Draw(t, "mixed") {
		s.Fleet[0].Engine = s.Fleet[0].Engine.Scaled(0.5)
		s.Fleet[0].Capacity /= 2
	}
	return s
}

// moves are the arms that may move a session between two turns.
var moves = map[string]bool{Rebalanced: true, "third-turn": true, "rebalance-by-tokens": true}

func TestEveryArmDoesAllTheWorkAndNoneBeatsTheFloor(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s, seed := drawScenario(t), rapid.Uint64().Draw(t, "seed")
		sessions, err := s.Sessions(seed)
		if err != nil {
			t.Fatal(err)
		}
		var tokens int64
		for _, one := range sessions {
			tokens += int64(one.OutputTokens())
		}
		for _, a := range append(Arms(), Designs()...) {
			r, err := Run(s, a, seed)
			if err != nil {
				t.Fatal(err)
			}
			if r.OutputTokens != tokens || r.Turns != workload.Requests(sessions) {
				t.Fatalf("%s: %d tokens in %d turns, want %d in %d", a.Name, r.OutputTokens, r.Turns, tokens, workload.Requests(sessions))
			}
			if low := floor(s, sessions); r.Duration < low {
				t.Fatalf("%s: %v, faster than the floor of %v", a.Name, r.Duration, low)
			}
			if !moves[a.Name] && r.Moves != 0 {
				t.Fatalf("%s moved sessions", a.Name)
			}
			if r.P50 > r.P90 || r.P90 > r.P99 || r.P99 > r.Duration || r.WorstHitRate > r.HitRate {
				t.Fatalf("%s: figures contradict each other: %+v", a.Name, r)
			}
		}
	})
}

func TestRunRepeatsItselfForEqualSeeds(t *testing.T) {
	scenario := mixedFleet()
	shape := swe()
	shape.Tasks = inFlight
	scenario.Sessions = shape.Generate
	for _, a := range append(Arms(), Designs()...) {
		first, err := Run(scenario, a, 3)
		if err != nil {
			t.Fatal(err)
		}
		again, err := Run(scenario, a, 3)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(first, again); diff != "" {
			t.Errorf("%s: %s", a.Name, diff)
		}
	}
}

func TestOneSessionAloneTakesPrefillDecodeAndToolGaps(t *testing.T) {
	r, err := Run(fixed(ByArrival, 0, 1, turns("a", 11, 21)), arm(t, Today), 1)
	if err != nil {
		t.Fatal(err)
	}
	step := 6350 * time.Microsecond
	want := 10*step + 20*step + time.Second + 2*20*time.Millisecond
	// The second prompt finds only whole blocks of 16 tokens cached.
	if diff := r.Duration - want; diff < 0 || diff > 2*time.Millisecond {
		t.Errorf("duration %v, want %v and less than two milliseconds", r.Duration, want)
	}
}

func TestOpeningsKeepTheirRhythm(t *testing.T) {
	a, b, c := turns("a", 1000), turns("b", 1), turns("c", 1000)
	long := 1000 * 6350 * time.Microsecond
	for name, k := range map[string]struct {
		scenario Scenario
		rounds   float64 // of the long sessions, one after the other
	}{
		"all at once":                    {fixed(ByArrival, 0, 3, a, b, c), 1},
		"in flight, the third after b":   {fixed(KeepInFlight, 2, 3, a, b, c), 1},
		"in flight, one at a time":       {fixed(KeepInFlight, 1, 3, a, b, c), 2},
		"a barrier, the third after a":   {fixed(Barrier, 2, 3, a, b, c), 2},
		"a barrier that holds all three": {fixed(Barrier, 3, 3, a, b, c), 1},
	} {
		t.Run(name, func(t *testing.T) {
			r, err := Run(k.scenario, arm(t, "session-round-robin"), 1)
			if err != nil {
				t.Fatal(err)
			}
			if got := float64(r.Duration) / float64(long); math.Abs(got-k.rounds) > 0.1 {
				t.Errorf("took %.2f rounds, want %v", got, k.rounds)
			}
		})
	}
}

func TestTraceTurnsWaitForTheirRecordedTime(t *testing.T) {
	s := turns("a", 2, 2)
	s.Arrival = 10 * time.Second
	s.Turns[0].ToolGap = 0
	s.Turns[1].NotBefore = 30 * time.Second
	r, err := Run(fixed(ByArrival, 0, 1, s), arm(t, Today), 1)
	if err != nil {
		t.Fatal(err)
	}
	if r.Duration < 40*time.Second || r.Duration > 41*time.Second || r.P50 > 31*time.Second {
		t.Errorf("ended at %v after %v, want just after 40 s and 30 s", r.Duration, r.P50)
	}
}

func TestIdleWhileQueuedCountsReplicasThatCouldHaveHelped(t *testing.T) {
	s := fixed(ByArrival, 0, 3, turns("a", 1000), turns("b", 1000), turns("c", 1))
	for i := range s.Fleet {
		s.Fleet[i].Engine.MaxRunning = 1
	}
	together := Arm{Name: "together", open: pickOnce(func(*board, *workload.Session) int { return 0 })}
	r, err := Run(s, together, 1)
	if err != nil {
		t.Fatal(err)
	}
	// b and c wait while a decodes, c while b does; two replicas idle all that time.
	want := 2 * 2 * 1000 * 6350 * time.Microsecond
	if ratio := float64(r.IdleWhileQueued) / float64(want); math.Abs(ratio-1) > 0.02 {
		t.Errorf("idle while queued %v, want %v", r.IdleWhileQueued, want)
	}
	apart, err := Run(s, arm(t, "session-round-robin"), 1)
	if err != nil || apart.IdleWhileQueued != 0 {
		t.Errorf("apart: idle while queued %v, %v", apart.IdleWhileQueued, err)
	}
}

func TestMovedSessionsLoseTheirCache(t *testing.T) {
	s := fixed(ByArrival, 0, 2, turns("a", 100, 100, 100, 100))
	wander := func(given situation) (placer, error) { return &wanderer{replicas: len(given.fleet)}, nil }
	moved, err := Run(s, Arm{Name: "wander", open: wander}, 1)
	if err != nil {
		t.Fatal(err)
	}
	stayed, err := Run(s, arm(t, Today), 1)
	if err != nil {
		t.Fatal(err)
	}
	if moved.Moves != 3 || stayed.Moves != 0 || moved.HitRate >= stayed.HitRate {
		t.Errorf("moved %+v\nstayed %+v", moved, stayed)
	}
}

// wanderer sends each turn to another replica.
type wanderer struct{ replicas, turn int }

func (w *wanderer) acquire(int, time.Duration) (int, error) {
	w.turn++
	return w.turn % w.replicas, nil
}
func (w *wanderer) release(int, time.Duration) error { return nil }
func (w *wanderer) end(int, time.Duration) error     { return nil }

func TestRunSaysWhichTurnIsTooLong(t *testing.T) {
	_, err := Run(fixed(ByArrival, 0, 1, turns("a", 600_000)), arm(t, Today), 1)
	if !errors.Is(err, model.ErrTooLong) {
		t.Errorf("error %v", err)
	}
}

func TestR1SpreadsABurstEvenly(t *testing.T) {
	var sessions []workload.Session
	for i := range 64 {
		sessions = append(sessions, turns("s"+strconv.Itoa(i), 100))
	}
	r, err := Run(fixed(ByArrival, 0, 16, sessions...), arm(t, Promise), 1)
	if err != nil {
		t.Fatal(err)
	}
	if r.Variation != 0 {
		t.Errorf("64 equal sessions over 16 replicas: variation %v", r.Variation)
	}
}

func TestR1FollowsCapacity(t *testing.T) {
	var sessions []workload.Session
	for i := range 150 {
		sessions = append(sessions, turns("s"+strconv.Itoa(i), 200))
	}
	s := fixed(ByArrival, 0, 4, sessions...)
	s.Fleet[3].Capacity /= 4
	r, err := Run(s, arm(t, Promise), 1)
	if err != nil {
		t.Fatal(err)
	}
	equal, err := Run(s, arm(t, "least-outstanding"), 1)
	if err != nil {
		t.Fatal(err)
	}
	if r.Variation > 0.1 || equal.Variation < 0.5 {
		t.Errorf("variation per capacity %.3f, and %.3f where capacities are ignored", r.Variation, equal.Variation)
	}
}

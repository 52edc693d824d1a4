package leaselog

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/berthmaster/berthmaster/internal/router"
	"github.com/berthmaster/berthmaster/internal/router/steps"
)

// told is the line that a step makes at a level; nil: none.
func told(t *testing.T, level slog.Level, s steps.Step) map[string]any {
	t.Helper()
	var out bytes.Buffer
	New(slog.New(slog.NewJSONHandler(&out, &slog.HandlerOptions{Level: level}))).Told(&s)
	if out.Len() == 0 {
		return nil
	}
	var line map[string]any
	if err := json.Unmarshal(out.Bytes(), &line); err != nil {
		t.Fatal(err)
	}
	delete(line, "time")
	return line
}

func granted() steps.Step {
	began := time.Unix(1_700_000_000, 0)
	return steps.Step{
		Kind: steps.Acquire, Pool: router.PoolKey{Namespace: "rl", Name: "policy"}, Request: "r1", Session: "s1", Sender: "train",
		Backend: "b0", Incarnation: "pod-0/c-1", RID: "abc", Epoch: 3, Term: 2, Began: began, Ended: began.Add(time.Millisecond),
	}
}

func TestALineSaysWhomItConcerns(t *testing.T) {
	want := map[string]any{
		"level": "DEBUG", "msg": "lease: granted", "pool": "rl/policy", "request": "r1", "session": "s1", "sender": "train", "backend": "b0",
		"incarnation": "pod-0/c-1", "rid": "abc", "epoch": 3.0, "term": 2.0, "took": 1e6,
	}
	if diff := cmp.Diff(want, told(t, slog.LevelDebug, granted())); diff != "" {
		t.Error(diff)
	}
}

func TestLevelsSayWhatALineIsWorth(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*steps.Step)
		want   string
	}{
		"a grant is one of millions":          {func(*steps.Step) {}, "DEBUG"},
		"waiting is no news":                  {func(s *steps.Step) { s.Reason = router.ReasonSenderFenced }, "DEBUG"},
		"an uncertain end is rare":            {func(s *steps.Step) { s.Outcome, s.Fate = router.Ambiguous, router.FateDead }, "INFO"},
		"a stranger's token is rare":          {func(s *steps.Step) { s.Reason = router.ReasonTokenInvalid }, "INFO"},
		"a failed pool is to be looked at":    {func(s *steps.Step) { s.Outcome, s.Fate = router.Ambiguous, router.FateFailed }, "WARN"},
		"what we did wrong is ours to answer": {func(s *steps.Step) { s.Reason = steps.ReasonInternal }, "ERROR"},
	} {
		s := granted()
		c.change(&s)
		if got := told(t, slog.LevelDebug, s)["level"]; got != c.want {
			t.Errorf("%s: %v, want %s", name, got, c.want)
		}
	}
}

func TestTheUsualIsSilentAtInfo(t *testing.T) {
	if line := told(t, slog.LevelInfo, granted()); line != nil {
		t.Errorf("%v", line)
	}
}

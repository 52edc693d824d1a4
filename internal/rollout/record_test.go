package rollout_test

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/berthmaster/berthmaster/internal/rollout"
)

var (
	toNewer = rollout.Step{Kind: rollout.StepUpdate, Version: newer}
	reading = rollout.Step{Kind: rollout.StepVerify}
)

// history plays calls and their answers on an empty record.
func history(r rollout.Record, calls ...struct {
	step   rollout.Step
	answer rollout.Answer
}) rollout.Record {
	for _, c := range calls {
		r = r.Began(c.step).Ended(c.step, c.answer, newer, noon)
	}
	return r
}

type exchange = struct {
	step   rollout.Step
	answer rollout.Answer
}

func TestARecordBelievesAnEngineOnlyWhatItSaidLast(t *testing.T) {
	read := rollout.Report{Version: older, Freshness: rollout.Fresh, At: noon}
	for name, c := range map[string]struct {
		calls []exchange
		want  rollout.Report
	}{
		"what was read is fresh":                {[]exchange{{reading, rollout.Answer{Reported: older}}}, read},
		"an update makes it stale":              {[]exchange{{reading, rollout.Answer{Reported: older}}, {toNewer, rollout.Answer{}}}, rollout.Report{Version: older, At: noon}},
		"one that was declined does, too":       {[]exchange{{reading, rollout.Answer{Reported: older}}, {toNewer, rollout.Answer{Problem: "no"}}}, rollout.Report{Version: older, At: noon}},
		"a pause does not":                      {[]exchange{{reading, rollout.Answer{Reported: older}}, {rollout.Step{Kind: rollout.StepPause}, rollout.Answer{}}}, read},
		"a reading that failed changes nothing": {[]exchange{{reading, rollout.Answer{Reported: older}}, {reading, rollout.Answer{Problem: "refused"}}}, read},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, history(rollout.Record{}, c.calls...).Report); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestFailuresInARowAreRetriedLaterAndLater(t *testing.T) {
	declined := exchange{toNewer, rollout.Answer{Problem: "no such file"}}
	var r rollout.Record
	for i, want := range []time.Duration{1, 2, 4, 8, 16, 32, 60, 60} {
		r = history(r, declined)
		if got := r.Failure.RetryAt.Sub(noon); got != want*time.Second || r.Failure.Count != i+1 || r.Failure.Message != "no such file" {
			t.Errorf("failure %d: retried after %v, %+v", i+1, got, r.Failure)
		}
	}
	if r := r.Began(toNewer).Ended(toNewer, rollout.Answer{Problem: "no"}, "v3", noon); r.Failure.Count != 1 || r.Failure.Version != "v3" {
		t.Errorf("a failure about another version goes on from %+v", r.Failure)
	}
	r = history(r, exchange{reading, rollout.Answer{Reported: older}})
	if r.Failure.Count == 0 {
		t.Error("a reading of the old version ends the row")
	}
	if r = history(r, exchange{reading, rollout.Answer{Reported: newer}}); r.Failure.Count != 0 {
		t.Errorf("the version that was wanted leaves %+v", r.Failure)
	}
}

func TestAnEngineThatComesBackWithAnotherVersionHasFailed(t *testing.T) {
	r := history(rollout.Record{}, exchange{toNewer, rollout.Answer{}}, exchange{reading, rollout.Answer{Reported: alien}})
	if r.Failure.Count != 1 || r.Failure.Version != newer || r.Failure.Message != "the engine was updated to v2 and reports default" {
		t.Errorf("the failure is %+v", r.Failure)
	}
	if r := history(rollout.Record{}, exchange{reading, rollout.Answer{Reported: alien}}); r.Failure.Count != 0 {
		t.Errorf("an engine that was not updated has failed: %+v", r.Failure)
	}
	if r := r.Outdated(); r.Report.Freshness != rollout.Stale {
		t.Error("a doubtful report is still fresh")
	}
}

func TestARecordKnowsOneCallAtATime(t *testing.T) {
	r := rollout.Record{}.Began(toNewer)
	if r.Call != rollout.StepUpdate {
		t.Errorf("the call under way is %q", r.Call)
	}
	pause := rollout.Step{Kind: rollout.StepPause}
	if r = r.Ended(toNewer, rollout.Answer{}, newer, noon); r.Call != rollout.NoStep || r.Updated != newer {
		t.Errorf("after its answer: %+v", r)
	}
	if r = r.Began(pause).Ended(pause, rollout.Answer{}, newer, noon.Add(time.Second)); r.PausedAt != noon.Add(time.Second) {
		t.Errorf("paused at %v", r.PausedAt)
	}
}

func TestAFailureSaysOnlySoMuchOfWhatAnEngineReports(t *testing.T) {
	reported := rollout.Version(strings.Repeat("\u00e9", 100_000))
	r := history(rollout.Record{}, exchange{toNewer, rollout.Answer{}}, exchange{reading, rollout.Answer{Reported: reported}})
	if n := len(r.Failure.Message); n == 0 || n > 512 || !utf8.ValidString(r.Failure.Message) {
		t.Errorf("a message of %d bytes, want one that fits in a status", n)
	}
	if r.Report.Version != reported {
		t.Error("the version itself is cut, and could be taken for another")
	}
}

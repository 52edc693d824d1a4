package prober

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

var noon = time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC)

// script drives the rule by hand: each step happens at a second after noon, under the stamp of
// the moment unless it is told to be stale.
type script struct {
	state state
	rule  rule
}

func (s *script) at(second int, k kind, change ...func(*event)) Verdict {
	e := event{kind: k, stamp: s.state.stamp, message: "m"}
	for _, c := range change {
		c(&e)
	}
	s.state = next(s.state, e, s.rule, noon.Add(time.Duration(second)*time.Second))
	return s.state.verdict
}

func version(v string) func(*event) { return func(e *event) { e.version = v } }

func TestTheRuleOfHealth(t *testing.T) {
	type step struct {
		second int
		kind   kind
		want   Verdict
	}
	usual := rule{threshold: 3, budget: 60 * time.Second}
	cases := map[string]struct {
		rule  rule
		steps []step
	}{
		"failures short of the threshold leave it healthy": {usual, []step{
			{0, probeAnswered, Healthy}, {5, probeFailed, Healthy}, {10, probeFailed, Healthy}, {15, probeAnswered, Healthy},
			{20, probeFailed, Healthy}, {25, probeFailed, Healthy}, {30, probeFailed, Unhealthy},
		}},
		"the budget is spent before the threshold is reached": {rule{10, 10 * time.Second}, []step{
			{0, probeAnswered, Healthy}, {5, probeFailed, Healthy}, {14, probeFailed, Healthy}, {15, probeFailed, Unhealthy},
		}},
		"the budget ends between two probes": {rule{10, 10 * time.Second}, []step{
			{0, probeAnswered, Healthy}, {5, probeFailed, Healthy}, {14, budgetDue, Healthy}, {15, budgetDue, Unhealthy},
		}},
		"the passing of time alone harms nobody": {rule{1, time.Second}, []step{
			{0, budgetDue, Unknown}, {5, probeAnswered, Healthy}, {500, budgetDue, Healthy},
		}},
		"no budget means the threshold alone": {rule{threshold: 3}, []step{
			{0, probeFailed, Unknown}, {5000, probeFailed, Unknown}, {9000, probeFailed, Unhealthy},
		}},
		"a threshold of zero counts as one": {rule{}, []step{{0, probeFailed, Unhealthy}}},
		"a refusal is told at once and turns unhealthy by the rule": {usual, []step{
			{0, probeAnswered, Healthy}, {5, probeRefused, Refused}, {10, probeRefused, Refused}, {15, probeRefused, Unhealthy},
			{20, probeRefused, Unhealthy}, {25, probeAnswered, Healthy},
		}},
		"a time-out after a refusal does not open the engine again": {usual, []step{
			{0, probeAnswered, Healthy}, {5, probeRefused, Refused}, {10, probeFailed, Refused}, {15, probeFailed, Unhealthy},
		}},
		"a connection refused to somebody else is told at once and counts as no failed probe": {usual, []step{
			{0, probeAnswered, Healthy}, {5, weWereRefused, Refused}, {10, weWereRefused, Refused}, {10, weWereRefused, Refused},
			{11, probeFailed, Refused}, {15, probeFailed, Refused}, {20, probeFailed, Unhealthy}, {21, weWereRefused, Unhealthy},
			{25, probeAnswered, Healthy},
		}},
		"the budget of one that fails already runs on when somebody else is refused": {rule{10, 10 * time.Second}, []step{
			{0, probeAnswered, Healthy}, {5, probeFailed, Healthy}, {6, weWereRefused, Refused}, {14, budgetDue, Refused}, {15, budgetDue, Unhealthy},
		}},
		"a connection refused to somebody else in our pause is ignored": {usual, []step{
			{0, probeAnswered, Healthy}, {1, wePause, Healthy}, {2, weWereRefused, Healthy}, {3, weResume, Healthy},
		}},
		"a connection refused to somebody else tells nothing of one that was never well": {usual, []step{
			{0, weWereRefused, Unknown}, {1, probeParked, SuspectedPaused}, {2, weWereRefused, SuspectedPaused},
		}},
		"a suspected pause spends nothing however long it lasts": {usual, []step{
			{0, probeAnswered, Healthy}, {5, probeFailed, Healthy}, {10, probeParked, SuspectedPaused},
			{5000, probeParked, SuspectedPaused}, {5000, budgetDue, SuspectedPaused}, {5005, probeFailed, SuspectedPaused},
			{5010, probeFailed, Unhealthy},
		}},
		"one success ends a suspected pause": {usual, []step{
			{0, probeParked, SuspectedPaused}, {5, probeAnswered, Healthy},
		}},
		"budgets stand still while we pause": {rule{10, 10 * time.Second}, []step{
			{0, probeAnswered, Healthy}, {1, probeFailed, Healthy}, {5, wePause, Healthy}, {605, weResume, Healthy},
			{610, probeFailed, Healthy}, {611, probeFailed, Unhealthy},
		}},
		"the clock of a failure after a suspected pause runs on after a pause of ours": {rule{10, 10 * time.Second}, []step{
			{0, probeParked, SuspectedPaused}, {5, probeFailed, SuspectedPaused}, {10, wePause, SuspectedPaused},
			{60, weResume, SuspectedPaused}, {64, budgetDue, SuspectedPaused}, {65, budgetDue, Unhealthy},
		}},
		"failures that land in our pause are ignored": {usual, []step{
			{0, probeAnswered, Healthy}, {1, wePause, Healthy}, {2, probeFailed, Healthy}, {3, probeRefused, Healthy},
			{4, probeFailed, Healthy}, {5, probeParked, Healthy}, {6, weResume, Healthy}, {7, probeFailed, Healthy},
		}},
		"three real failures after a pause still count": {usual, []step{
			{0, probeAnswered, Healthy}, {1, wePause, Healthy}, {601, weResume, Healthy},
			{605, probeFailed, Healthy}, {610, probeFailed, Healthy}, {615, probeFailed, Unhealthy},
		}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			s := script{newState(), c.rule}
			for i, step := range c.steps {
				if got := s.at(step.second, step.kind); got != step.want {
					t.Fatalf("step %d at %ds: got %v, want %v", i, step.second, got, step.want)
				}
			}
		})
	}
}

func TestAConfirmationDoesNotOutliveAnOutage(t *testing.T) {
	usual := rule{threshold: 2, budget: time.Minute}
	cases := map[string]struct {
		between []kind
		want    bool
	}{
		"nothing happened":            {nil, true},
		"a failure short of the rule": {[]kind{probeFailed}, true},
		"a refused connection":        {[]kind{probeRefused}, false},
		"one refused to another":      {[]kind{weWereRefused}, false},
		"an outage":                   {[]kind{probeFailed, probeFailed}, false},
		"a suspected pause":           {[]kind{probeParked}, false},
		"a pause of ours":             {[]kind{wePause, weResume}, false},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			s := script{newState(), usual}
			s.at(0, probeAnswered, version("v7"))
			for i, k := range c.between {
				s.at(i+1, k)
			}
			s.at(10, probeAnswered) // healthy, but it did not tell its version
			if s.state.confirmed != c.want || s.state.version != "v7" {
				t.Errorf("got version %q, confirmed %v", s.state.version, s.state.confirmed)
			}
			s.at(15, probeAnswered, version("v8"))
			if !s.state.confirmed || s.state.version != "v8" {
				t.Errorf("after it was read again: %q, confirmed %v", s.state.version, s.state.confirmed)
			}
		})
	}
}

func TestTheReasonStaysWhileTheProblemDoes(t *testing.T) {
	s := script{newState(), rule{threshold: 2, budget: 10 * time.Second}}
	s.at(0, probeFailed)
	s.at(5, probeFailed)
	before := s.state
	s.at(100, probeFailed)
	if s.state.reason != ReasonFailureThreshold || s.state.message != before.message {
		t.Errorf("got %s %q, want %s %q", s.state.reason, s.state.message, before.reason, before.message)
	}
}

func TestCapacityIsKeptWhenAProbeCannotReadIt(t *testing.T) {
	s := script{newState(), rule{threshold: 3}}
	s.at(0, probeAnswered, func(e *event) { e.capacity = 256 })
	s.at(5, probeAnswered)
	if s.state.capacity != 256 {
		t.Errorf("got %d", s.state.capacity)
	}
	s.at(10, probeAnswered, func(e *event) { e.capacity = 128 })
	if s.state.capacity != 128 {
		t.Errorf("got %d", s.state.capacity)
	}
}

// history recomputes from everything that happened what next must have remembered.
type history struct {
	events []event
	times  []time.Time
}

// failing replays the whole history: how many failures in a row, and for how long.
func (h history) failing(now time.Time) (failures int, spent time.Duration) {
	counting, paused := false, false
	last := noon
	advance := func(to time.Time) {
		if counting && !paused {
			spent += to.Sub(last)
		}
		last = to
	}
	for i, e := range h.events {
		advance(h.times[i])
		switch e.kind {
		case probeAnswered:
			failures, spent, counting = 0, 0, false
		case probeFailed, probeRefused:
			failures, counting = failures+1, true
		case probeParked:
			counting = false
		case wePause:
			paused = true
		case weResume:
			paused = false
		case budgetDue, weWereRefused:
		}
	}
	advance(now)
	return failures, spent
}

func drawRule(t *rapid.T) rule {
	return rule{
		threshold: rapid.IntRange(1, 5).Draw(t, "threshold"),
		budget:    time.Duration(rapid.IntRange(0, 40).Draw(t, "budget")) * time.Second,
	}
}

var anyProbe = rapid.SampledFrom([]kind{probeAnswered, probeFailed, probeRefused, probeParked, budgetDue})

// TestUnhealthyComesExactlyByTheRule compares next with a replay of the whole history.
func TestUnhealthyComesExactlyByTheRule(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r, s, now, h := drawRule(t), newState(), noon, history{}
		met := false // the rule has been met since the last event that ends an outage
		take := func(e event) {
			h.events, h.times = append(h.events, e), append(h.times, now)
			s = next(s, e, r, now)
			switch e.kind {
			case probeAnswered, probeParked:
				met = false
				return
			case wePause, weResume, weWereRefused:
				return
			case probeFailed, probeRefused, budgetDue:
			}
			failures, spent := h.failing(now)
			met = met || failures > 0 && (failures >= r.threshold || r.budget > 0 && spent >= r.budget)
		}
		t.Repeat(map[string]func(*rapid.T){
			"wait": func(t *rapid.T) { now = now.Add(time.Duration(rapid.IntRange(1, 30).Draw(t, "s")) * time.Second) },
			"probe": func(t *rapid.T) {
				if s.mode == running {
					v := rapid.SampledFrom([]string{"", "v1", "v2"}).Draw(t, "version")
					take(event{kind: anyProbe.Draw(t, "kind"), stamp: s.stamp, version: v})
				}
			},
			"somebody is refused": func(*rapid.T) { take(event{kind: weWereRefused}) },
			"pause or resume": func(t *rapid.T) {
				if s.mode == running {
					take(event{kind: wePause})
				} else {
					take(event{kind: weResume})
				}
			},
			"": func(t *rapid.T) {
				if got := s.verdict == Unhealthy; got != met {
					t.Fatalf("unhealthy is %v, the rule says %v: %+v", got, met, s)
				}
				if s.verdict != Healthy && s.verdict != Unknown && s.wanting.IsZero() {
					t.Fatalf("found wanting, and nobody knows when: %+v", s)
				}
				if s.confirmed && (s.verdict != Healthy || s.mode != running) {
					t.Fatalf("a version is confirmed on an engine that may have changed it: %+v", s)
				}
			},
		})
	})
}

// TestAStaleProbeChangesNothing plants results of every kind that were sent before a pause or a
// resume, at any moment after it.
func TestAStaleProbeChangesNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r, s, now := drawRule(t), newState(), noon
		t.Repeat(map[string]func(*rapid.T){
			"live": func(t *rapid.T) {
				now = now.Add(time.Second)
				s = next(s, event{kind: anyProbe.Draw(t, "kind"), stamp: s.stamp, version: "v"}, r, now)
			},
			"refused": func(*rapid.T) { s = next(s, event{kind: weWereRefused}, r, now) },
			"pause":   func(*rapid.T) { s = next(s, event{kind: wePause}, r, now) },
			"resume":  func(*rapid.T) { s = next(s, event{kind: weResume}, r, now) },
			"stale": func(t *rapid.T) {
				if s.stamp == 0 {
					return
				}
				old := rapid.Uint64Range(0, s.stamp-1).Draw(t, "stamp")
				e := event{kind: anyProbe.Draw(t, "kind"), stamp: old, version: "old", capacity: 1, message: "old"}
				if diff := cmp.Diff(s, next(s, e, r, now), cmp.AllowUnexported(state{})); diff != "" {
					t.Fatal(diff)
				}
			},
		})
	})
}

func TestPauseAndResumeAreIdempotentAndRaiseTheStamp(t *testing.T) {
	s := newState()
	for i, step := range []struct {
		kind  kind
		stamp uint64
	}{{weResume, 0}, {wePause, 1}, {wePause, 1}, {weResume, 2}, {weResume, 2}, {wePause, 3}} {
		s = next(s, event{kind: step.kind}, rule{}, noon)
		if s.stamp != step.stamp {
			t.Errorf("step %d: stamp %d, want %d", i, s.stamp, step.stamp)
		}
	}
}

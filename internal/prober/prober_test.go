package prober

import (
	"errors"
	"fmt"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/berthmaster/berthmaster/internal/sglang"
)

// world is a prober over a fake network, inside a bubble of virtual time.
type world struct {
	*Prober
	net     *network
	journal *journal
	start   time.Time
}

func inBubble(t *testing.T, story func(t *testing.T, w world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := world{net: newNetwork(), journal: newJournal(t), start: time.Now()}
		w.Prober = New(w.journal, Config{Transport: w.net, Jitter: evenly})
		defer w.Close()
		story(t, w)
	})
}

// pass lets virtual time go by, and everything that is due happen.
func pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

var a = Key{Pool: "p", Incarnation: "a"}

func TestAHealthyEngineIsReportedWithItsVersionAndCapacity(t *testing.T) {
	inBubble(t, func(t *testing.T, w world) {
		w.net.set("a:30000", generating("step-41"))
		w.Set("p", []Target{aTarget(t, "a")})
		if got := w.Latest("p")["a"]; got.Verdict != Unknown || got.Reason != ReasonNotProbed || got.Seq != 0 {
			t.Errorf("before the first probe: %+v", got)
		}
		pass(2 * time.Second)
		want := Observation{
			Key: a, Seq: 1, Verdict: Healthy, Reason: ReasonProbeSucceeded, Message: "the engine generates",
			Capacity: 256, WeightVersion: "step-41", VersionConfirmed: true, At: w.start.Add(1500 * time.Millisecond),
		}
		if diff := cmp.Diff(want, w.Latest("p")["a"]); diff != "" {
			t.Error(diff)
		}
		if diff := cmp.Diff([]Observation{want}, w.journal.of(a)); diff != "" {
			t.Error(diff)
		}
	})
}

func TestOneHungBackendDelaysNobody(t *testing.T) {
	inBubble(t, func(t *testing.T, w world) {
		w.net.set("hung:30000", hung)
		targets := []Target{aTarget(t, "hung")}
		for i := range 100 {
			host := fmt.Sprintf("e%d", i)
			w.net.set(host+":30000", generating("v"))
			targets = append(targets, aTarget(t, host))
		}
		w.Set("p", targets)
		pass(61 * time.Second)
		for i := range 100 {
			for n, at := range w.net.times(fmt.Sprintf("e%d:30000/health", i)) {
				if due := w.start.Add(500*time.Millisecond + time.Duration(n)*5*time.Second); !at.Equal(due) {
					t.Fatalf("e%d: probe %d was sent %v late", i, n, at.Sub(due))
				}
			}
			if got := len(w.net.times(fmt.Sprintf("e%d:30000/health", i))); got != 13 {
				t.Fatalf("e%d was probed %d times in a minute, want 13", i, got)
			}
		}
	})
}

// TestAPauseIsFree is the story of an engine that was killed for failing its health check while
// it was paused for ten minutes.
func TestAPauseIsFree(t *testing.T) {
	inBubble(t, func(t *testing.T, w world) {
		w.net.set("a:30000", generating("v"))
		w.Set("p", []Target{aTarget(t, "a", func(x *Target) { x.Budget = 10 * time.Second })})
		pass(4 * time.Second)
		w.net.set("a:30000", deaf(20*time.Second, 503))
		pass(2 * time.Second) // the second probe is on its way, at 5.5 s
		if err := w.Pause(a); err != nil {
			t.Fatal(err)
		}
		pass(600 * time.Second)
		if got := len(w.net.times("a:30000/health")); got != 2 {
			t.Errorf("a paused engine was probed: %d probes, want 2", got)
		}
		if err := w.Resume(a); err != nil {
			t.Fatal(err)
		}
		for _, obs := range w.journal.of(a) {
			if obs.Verdict != Healthy {
				t.Errorf("during the pause: %+v", obs)
			}
		}
		w.net.set("a:30000", plain(500))
		pass(4 * time.Second)
		if got := w.Latest("p")["a"]; got.Verdict != Healthy || got.Reason != ReasonProbeFailed {
			t.Errorf("after one failure: %+v", got)
		}
		pass(10 * time.Second)
		if got := w.Latest("p")["a"]; got.Verdict != Unhealthy {
			t.Errorf("after three failures: %+v", got)
		}
	})
}

// deaf answers after d, whether or not anybody still wants to know.
func deaf(d time.Duration, code int) behaviour {
	return func(*http.Request) (*http.Response, error) {
		time.Sleep(d)
		return respond(code, "")
	}
}

func plain(code int) behaviour {
	return func(*http.Request) (*http.Response, error) { return respond(code, "") }
}

func TestAProbeSentBeforeAPauseChangesNothingAfterTheResume(t *testing.T) {
	inBubble(t, func(t *testing.T, w world) {
		w.net.set("a:30000", generating("v"))
		w.Set("p", []Target{aTarget(t, "a", func(x *Target) { x.FailureThreshold = 1 })})
		pass(4 * time.Second)
		w.net.set("a:30000", deaf(20*time.Second, 500))
		pass(2 * time.Second)
		w.net.set("a:30000", generating("v2"))
		for _, step := range []func(Key) error{w.Pause, w.Resume} {
			if err := step(a); err != nil {
				t.Fatal(err)
			}
		}
		if got := w.Latest("p")["a"]; got.Verdict != Healthy || got.VersionConfirmed {
			t.Errorf("right after the resume: %+v", got)
		}
		pass(30 * time.Second)
		if bad, found := w.journal.first(a, Unhealthy); found {
			t.Errorf("a stale failure counted: %+v", bad)
		}
		if got := w.Latest("p")["a"]; got.WeightVersion != "v2" || !got.VersionConfirmed {
			t.Errorf("the version was not read again: %+v", got)
		}
	})
}

func TestAResumeProbesAtOnce(t *testing.T) {
	inBubble(t, func(t *testing.T, w world) {
		w.net.set("a:30000", generating("v"))
		w.Set("p", []Target{aTarget(t, "a", func(x *Target) { x.Period = time.Hour })})
		pass(2 * time.Second)
		_ = w.Pause(a)
		pass(time.Minute)
		resumed := time.Now()
		_ = w.Resume(a)
		pass(2 * time.Second)
		times := w.net.times("a:30000/health")
		if len(times) != 2 || !times[1].Equal(resumed) {
			t.Errorf("probed at %v, resumed at %v", times, resumed)
		}
	})
}

func TestAPauseCutsTheProbeUnderWay(t *testing.T) {
	inBubble(t, func(t *testing.T, w world) {
		w.net.set("a:30000", hung)
		w.Set("p", []Target{aTarget(t, "a")})
		pass(2 * time.Second)
		_ = w.Pause(a)
		w.net.set("a:30000", generating("v"))
		_ = w.Resume(a)
		pass(2 * time.Second)
		if got := w.Latest("p")["a"]; got.Verdict != Healthy {
			t.Errorf("the loop still waits for a probe that cannot count: %+v", got)
		}
	})
}

func TestAResumeOfARunningEngineDisturbsNothing(t *testing.T) {
	inBubble(t, func(t *testing.T, w world) {
		w.net.set("a:30000", generating("v"))
		w.Set("p", []Target{aTarget(t, "a")})
		pass(time.Second) // a probe is under way
		before := w.Latest("p")["a"]
		if err := w.Resume(a); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(before, w.Latest("p")["a"]); diff != "" {
			t.Error(diff)
		}
		pass(time.Second)
		if got := w.Latest("p")["a"]; got.Verdict != Healthy {
			t.Errorf("the probe under way was lost: %+v", got)
		}
	})
}

func TestARefusedConnectionIsToldAtOnceAndRecoveryReadsTheVersionAgain(t *testing.T) {
	inBubble(t, func(t *testing.T, w world) {
		w.net.set("a:30000", generating("v7"))
		w.Set("p", []Target{aTarget(t, "a")})
		pass(4 * time.Second)
		w.net.set("a:30000", refusing)
		pass(2 * time.Second)
		refused := w.Latest("p")["a"]
		if refused.Verdict != Refused || refused.Reason != ReasonConnectionRefused || refused.VersionConfirmed || refused.EngineTotal != noTotal {
			t.Errorf("after one refusal: %+v", refused)
		}
		w.net.set("a:30000", generating("default"))
		pass(6 * time.Second)
		if got := w.Latest("p")["a"]; got.Verdict != Healthy || got.WeightVersion != "default" || !got.VersionConfirmed {
			t.Errorf("after its return: %+v", got)
		}
	})
}

func TestAPauseBySomebodyElseIsSuspectedAndSpendsNothing(t *testing.T) {
	for name, timeout := range map[string]time.Duration{
		"the engine's own 503 is seen": 25 * time.Second,
		"the probe times out first":    10 * time.Second,
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, w world) {
				w.net.set("a:30000", paused)
				w.Set("p", []Target{aTarget(t, "a", func(x *Target) { x.Timeout = timeout })})
				pass(time.Hour)
				got := w.journal.of(a)
				if len(got) < 100 {
					t.Fatalf("only %d observations in an hour", len(got))
				}
				for _, obs := range got {
					if obs.Verdict != SuspectedPaused || obs.Message != parkedMessage {
						t.Fatalf("got %+v", obs)
					}
				}
				w.net.mu.Lock()
				defer w.net.mu.Unlock()
				if w.net.overlap {
					t.Error("/server_info was asked while /health waited, which wakes a paused engine's health check")
				}
			})
		})
	}
}

func TestAHungSchedulerIsNoPause(t *testing.T) {
	inBubble(t, func(t *testing.T, w world) {
		w.net.set("a:30000", hungScheduler)
		w.Set("p", []Target{aTarget(t, "a")})
		pass(2 * time.Minute)
		got, found := w.journal.first(a, Unhealthy)
		if !found {
			t.Fatalf("got %+v", w.journal.of(a))
		}
		// Each probe takes 20 s of /health and 5 s of /server_info: failures at 25.5, 50.5, 75.5.
		want := Observation{Key: a, Seq: 3, Verdict: Unhealthy, Reason: ReasonFailureThreshold, Message: "/health answered 503", EngineTotal: noTotal}
		if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(Observation{}, "At")); diff != "" {
			t.Error(diff)
		}
		if at := got.At.Sub(w.start); at != 75500*time.Millisecond {
			t.Errorf("unhealthy after %v", at)
		}
	})
}

func TestTheBudgetEndsWithoutWaitingForAProbe(t *testing.T) {
	inBubble(t, func(t *testing.T, w world) {
		w.net.set("a:30000", hung)
		w.Set("p", []Target{aTarget(t, "a", func(x *Target) {
			x.Timeout, x.FailureThreshold, x.Budget = 100*time.Second, 50, 60*time.Second
		})})
		pass(5 * time.Minute)
		got, _ := w.journal.first(a, Unhealthy)
		// The first failure lands at 105.5 s: 0.5 s of rest, 100 s of /health, 5 s of /server_info.
		if at := got.At.Sub(w.start); at != 165500*time.Millisecond || got.Reason != ReasonBudgetSpent {
			t.Errorf("got %+v after %v", got, at)
		}
	})
}

func TestSettingTheSameTargetsAgainDisturbsNothing(t *testing.T) {
	inBubble(t, func(t *testing.T, w world) {
		w.net.set("a:30000", generating("v"))
		for range 60 {
			w.Set("p", []Target{aTarget(t, "a", func(x *Target) { x.Keys = func() sglang.Keys { return sglang.Keys{} } })})
			pass(time.Second)
		}
		for n, at := range w.net.times("a:30000/health") {
			if due := w.start.Add(500*time.Millisecond + time.Duration(n)*5*time.Second); !at.Equal(due) {
				t.Fatalf("probe %d came %v off", n, at.Sub(due))
			}
		}
		if got := len(w.journal.of(a)); got != 12 {
			t.Errorf("%d observations, want 12", got)
		}
	})
}

func TestNewSettingsTakeEffectAtOnce(t *testing.T) {
	change := map[string]func(*Target){
		"period":    func(x *Target) { x.Period = 10 * time.Second },
		"timeout":   func(x *Target) { x.Timeout = 2 * time.Second },
		"threshold": func(x *Target) { x.FailureThreshold = 1 },
		"budget":    func(x *Target) { x.Budget = time.Second },
	}
	// When a hung engine becomes unhealthy, if it was probed under its old settings for a minute:
	// probes of 10 s each, landing at 10.5, 20.5, ... and a threshold and a budget out of reach.
	want := map[string]time.Duration{
		"period":    -1,
		"timeout":   -1,
		"threshold": 70500 * time.Millisecond,
		"budget":    65 * time.Second,
	}
	for name, c := range change {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, w world) {
				w.net.set("a:30000", hung)
				before := func(x *Target) {
					x.Period, x.Timeout, x.FailureThreshold, x.Budget = 5*time.Second, 5*time.Second, 1000, time.Hour
				}
				w.Set("p", []Target{aTarget(t, "a", before)})
				pass(65 * time.Second)
				probes := len(w.net.times("a:30000/health"))
				w.Set("p", []Target{aTarget(t, "a", before, c)})
				pass(100 * time.Second)
				bad, found := w.journal.first(a, Unhealthy)
				if at := bad.At.Sub(w.start); found != (want[name] > 0) || found && at != want[name] {
					t.Errorf("unhealthy %v, after %v, want %v", found, at, want[name])
				}
				// 10 s each as before, 10 s each by the new period, 4 s each (but a period of 5 s) by the new timeout.
				more := len(w.net.times("a:30000/health")) - probes
				if lots := more >= 19; lots != (name == "timeout") {
					t.Errorf("%d more probes", more)
				}
			})
		})
	}
}

func TestAnEndedTargetIsSilent(t *testing.T) {
	end := map[string]func(w world){
		"left out of the set":   func(w world) { w.Set("p", nil) },
		"forgotten":             func(w world) { w.Forget("p") },
		"closed with the rest":  func(w world) { w.Close() },
		"closed twice":          func(w world) { w.Close(); w.Close() },
		"forgotten, then again": func(w world) { w.Forget("p"); w.Forget("p") },
	}
	for name, stop := range end {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, w world) {
				w.net.set("a:30000", deaf(3*time.Second, 500))
				w.Set("p", []Target{aTarget(t, "a")})
				pass(time.Second) // a probe is under way
				stop(w)
				pass(time.Hour)
				if got := w.journal.of(a); len(got) != 0 {
					t.Errorf("observed %+v", got)
				}
				if got := w.Latest("p"); len(got) != 0 {
					t.Errorf("latest %+v", got)
				}
				if err := w.Pause(a); !errors.Is(err, ErrUnknownTarget) {
					t.Errorf("pause: %v", err)
				}
				if got := len(w.net.times("a:30000/health")); got != 1 {
					t.Errorf("%d probes, want the one", got)
				}
			})
		})
	}
}

func TestAClosedProberTakesNoTargets(t *testing.T) {
	inBubble(t, func(t *testing.T, w world) {
		w.Close()
		w.Set("p", []Target{aTarget(t, "a")})
		pass(time.Minute)
		if got := len(w.net.times("a:30000/health")); got != 0 {
			t.Errorf("%d probes", got)
		}
	})
}

func TestAnotherAddressStartsTheIncarnationAnewAndItsNumbersGoOn(t *testing.T) {
	inBubble(t, func(t *testing.T, w world) {
		w.net.set("a:30000", generating("v"))
		w.net.set("b:30000", generating("w"))
		w.Set("p", []Target{aTarget(t, "a")})
		pass(2 * time.Second)
		moved := aTarget(t, "b", func(x *Target) { x.Incarnation = "a" })
		w.Set("p", []Target{moved})
		if got := w.Latest("p")["a"]; got.Verdict != Unknown || got.Seq != 1 {
			t.Errorf("right after the move: %+v", got)
		}
		pass(2 * time.Second)
		if got := w.Latest("p")["a"]; got.Seq != 2 || got.WeightVersion != "w" {
			t.Errorf("got %+v", got)
		}
	})
}

func TestABlockedSinkDelaysItsOwnPoolOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		net, all := newNetwork(), newJournal(t)
		release := make(chan struct{})
		p := New(sinkFunc(func(obs Observation) {
			if obs.Pool == "stuck" {
				<-release
			}
			all.Observe(obs)
		}), Config{Transport: net, Jitter: evenly})
		defer p.Close()
		defer close(release)
		net.set("a:30000", generating("v"))
		p.Set("stuck", []Target{aTarget(t, "a")})
		pass(10 * time.Second)
		p.Set("p", []Target{aTarget(t, "a")})
		pass(10 * time.Second)
		if got := len(all.of(a)); got != 2 {
			t.Errorf("%d observations of the other pool, want 2", got)
		}
	})
}

type sinkFunc func(Observation)

func (f sinkFunc) Observe(obs Observation) { f(obs) }

func TestProbesCarryTheKeysOfTheMoment(t *testing.T) {
	inBubble(t, func(t *testing.T, w world) {
		w.net.set("a:30000", generating("v"))
		with := func(key string) Target {
			return aTarget(t, "a", func(x *Target) { x.Keys = func() sglang.Keys { return sglang.Keys{API: key} } })
		}
		for _, key := range []string{"first", "second"} {
			w.Set("p", []Target{with(key)})
			pass(5 * time.Second)
			w.net.mu.Lock()
			info, health := w.net.keys["a:30000/model_info"], w.net.keys["a:30000/health"]
			w.net.mu.Unlock()
			if info != "Bearer "+key || health != "" {
				t.Errorf("/model_info carried %q, /health %q", info, health)
			}
		}
	})
}

func TestJitterSpreadsProbesAroundThePeriod(t *testing.T) {
	for jitter, want := range map[float64]time.Duration{0: 4500 * time.Millisecond, 0.75: 5250 * time.Millisecond} {
		synctest.Test(t, func(t *testing.T) {
			net := newNetwork()
			net.set("a:30000", generating("v"))
			p := New(newJournal(t), Config{Transport: net, Jitter: func() float64 { return jitter }})
			defer p.Close()
			p.Set("p", []Target{aTarget(t, "a")})
			pass(20 * time.Second)
			times := net.times("a:30000/health")
			for i := 1; i < len(times); i++ {
				if got := times[i].Sub(times[i-1]); got != want {
					t.Errorf("jitter %v: %v between probes, want %v", jitter, got, want)
				}
			}
		})
	}
}

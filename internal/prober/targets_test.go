package prober

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/berthmaster/berthmaster/internal/sglang"
)

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

func TestAnotherHintHasTheEngineProbedAtOnce(t *testing.T) {
	inBubble(t, func(t *testing.T, w world) {
		w.net.set("a:30000", generating("v"))
		hint := func(words string) func(*Target) { return func(x *Target) { x.Hint = words } }
		w.Set("p", []Target{aTarget(t, "a", hint("PodNotReady"))})
		pass(7 * time.Second) // probed after half a second and every five from then on
		if got := len(w.net.times("a:30000/health")); got != 2 {
			t.Fatalf("%d probes, want 2", got)
		}
		w.Set("p", []Target{aTarget(t, "a", hint("PodNotReady"))})
		pass(time.Millisecond)
		if got := len(w.net.times("a:30000/health")); got != 2 {
			t.Errorf("%d probes after the same hint, want 2", got)
		}
		w.Set("p", []Target{aTarget(t, "a", hint(""))})
		pass(time.Millisecond)
		if got := len(w.net.times("a:30000/health")); got != 3 {
			t.Errorf("%d probes after another hint, want 3", got)
		}
	})
}

// The router takes no observation that is not later than the last it was given of an incarnation, and
// it may remember one that leaves the set and comes back.
func TestATargetThatComesBackGoesOnWithLaterNumbers(t *testing.T) {
	inBubble(t, func(t *testing.T, w world) {
		w.net.set("a:30000", generating("v"))
		w.Set("p", []Target{aTarget(t, "a")})
		pass(20 * time.Second)
		before := w.Latest("p")["a"].Seq
		w.Set("p", nil)
		w.Set("p", []Target{aTarget(t, "a")})
		if got := w.Latest("p")["a"]; got.Verdict != Unknown || got.VersionConfirmed {
			t.Errorf("it is back with what it knew: %+v", got)
		}
		pass(2 * time.Second)
		if got := w.Latest("p")["a"].Seq; got <= before {
			t.Errorf("seq %d after %d", got, before)
		}
	})
}

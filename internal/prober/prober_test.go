package prober

import (
	"fmt"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
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
	<-time.After(d)
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
		<-time.After(d)
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
		if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(Observation{}, "At", "Wanting")); diff != "" {
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

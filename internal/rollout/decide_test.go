package rollout_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/berthmaster/berthmaster/internal/rollout"
)

// asking is a rollout from v1 to v2 that began a second ago.
func asking(change func(*rollout.Ask)) rollout.Ask {
	a := rollout.Ask{
		Target: newer, Published: older, Start: noon.Add(-time.Second), Source: rollout.Disk, Strategy: rollout.AllAtOnce,
		Clearing: rollout.ClearDrain, OnFailure: rollout.Hold, MinReadyPercent: 50, MaxUnavailable: 1,
	}
	if change != nil {
		change(&a)
	}
	return a
}

// serving is a backend that serves v1 with nothing running; has is one that was read on v.
func serving(name string, change func(*rollout.Backend)) rollout.Backend {
	b := rollout.Backend{
		Name: name, Incarnation: name + "/1", Contact: rollout.Reachable, Door: rollout.DoorOpen,
		Report: rollout.Report{Version: older, Freshness: rollout.Fresh, At: noon},
	}
	if change != nil {
		change(&b)
	}
	return b
}

func updated(name string, change func(*rollout.Backend)) rollout.Backend {
	return serving(name, func(b *rollout.Backend) {
		b.Report.Version, b.Door = newer, rollout.DoorShut
		if change != nil {
			change(b)
		}
	})
}

func external(a *rollout.Ask) {
	a.Source, a.Told, a.Verification = rollout.External, rollout.LeasesStopped, rollout.VerifyEngine
}

func TestWhatIsAskedOfABackendNext(t *testing.T) {
	type want struct {
		activity rollout.Activity
		step     rollout.Step
		engine   rollout.Engine
		drain    rollout.Drain
	}
	stopped := func(a *rollout.Ask) { a.Told = rollout.LeasesStopped }
	abort := func(a *rollout.Ask) { stopped(a); a.Clearing = rollout.ClearAbort }
	update := rollout.Step{Kind: rollout.StepUpdate, Version: newer, Flush: rollout.FlushIdle}
	aborted := func(ago time.Duration) rollout.Backend {
		return serving("a", func(b *rollout.Backend) {
			b.Counted, b.Pause, b.PausedHow, b.PausedAt = 1, rollout.PausedByUs, rollout.PauseAbort, noon.Add(-ago)
		})
	}
	for name, c := range map[string]struct {
		ask  rollout.Ask
		is   rollout.Backend
		want want
	}{
		"an idle backend behind a barrier is updated, and its cache emptied": {
			asking(stopped), serving("a", nil), want{rollout.Updating, update, rollout.EngineUpdating, ""}},
		"a busy one is let end": {
			asking(stopped), serving("a", func(b *rollout.Backend) { b.Counted = 3 }), want{activity: rollout.Draining}},
		"one of unknown load is not idle": {
			asking(stopped), serving("a", func(b *rollout.Backend) { b.Load = rollout.LoadUnknown }), want{activity: rollout.Draining}},
		"a busy one is paused where the spec aborts": {
			asking(abort), serving("a", func(b *rollout.Backend) { b.Counted = 3 }),
			want{rollout.Pausing, rollout.Step{Kind: rollout.StepPause, Pause: rollout.PauseAbort}, rollout.EnginePaused, ""}},
		"what was aborted has a moment to be released": {
			asking(abort), aborted(time.Second), want{activity: rollout.Pausing, engine: rollout.EnginePaused}},
		"what came after the pause is aborted by another": {
			asking(abort), aborted(2 * time.Second),
			want{rollout.Pausing, rollout.Step{Kind: rollout.StepRepause, Pause: rollout.PauseAbort}, rollout.EnginePaused, ""}},
		"a frozen engine keeps its cache": {
			asking(func(a *rollout.Ask) { a.Strategy = rollout.InPlace }),
			serving("a", func(b *rollout.Backend) {
				b.Counted, b.Pause, b.PausedHow, b.Door = 1, rollout.PausedByUs, rollout.PauseInPlace, rollout.DoorShut
			}),
			want{rollout.Updating, rollout.Step{Kind: rollout.StepUpdate, Version: newer}, rollout.EngineUpdating, ""}},
		"an engine that was updated is not said to run before it was read": {
			asking(stopped), serving("a", func(b *rollout.Backend) { b.Report.Freshness = rollout.Stale }),
			want{rollout.Verifying, rollout.Step{Kind: rollout.StepVerify}, rollout.EngineUpdating, ""}},
		"an engine with an update begun by another process is updated anew, though it reports the old version": {
			asking(stopped), serving("a", func(b *rollout.Backend) { b.Begun = newer }),
			want{rollout.Updating, update, rollout.EngineUpdating, ""}},
		"the trainer's version is looked for every second": {
			asking(external), serving("a", func(b *rollout.Backend) { b.Report.At = noon.Add(-time.Second) }),
			want{rollout.Verifying, rollout.Step{Kind: rollout.StepVerify}, "", ""}},
		"and not more often": {
			asking(external), serving("a", nil), want{activity: rollout.Verifying}},
		"an engine that the trainer vouches for is stamped": {
			asking(func(a *rollout.Ask) { external(a); a.Stamping = rollout.StampEnabled }),
			serving("a", func(b *rollout.Backend) { b.Declared = newer }),
			want{rollout.Updating, rollout.Step{Kind: rollout.StepStamp, Version: newer}, "", ""}},
		"one that came later is not": {
			asking(func(a *rollout.Ask) { external(a); a.Stamping = rollout.StampEnabled }), serving("a", nil),
			want{activity: rollout.Verifying}},
		"one that says the version already needs no stamp": {
			asking(func(a *rollout.Ask) { external(a); a.Stamping = rollout.StampEnabled }),
			updated("a", func(b *rollout.Backend) { b.Declared = newer }), want{activity: rollout.Verifying}},
		"a pause of the spec's ends with it, though the trainer has pushed nothing there": {
			asking(func(a *rollout.Ask) { external(a); a.Published = newer }),
			serving("a", func(b *rollout.Backend) { b.Pause = rollout.PausedByUs }),
			want{rollout.Resuming, rollout.Step{Kind: rollout.StepContinue}, rollout.EnginePaused, ""}},
		"a restarted engine is brought to the published version": {
			asking(func(a *rollout.Ask) { a.Published = newer }),
			serving("a", func(b *rollout.Backend) { b.Report.Version, b.Door = alien, rollout.DoorShut }),
			want{rollout.Updating, update, rollout.EngineUpdating, ""}},
		"one that still runs something is drained first, and the pool goes on": {
			asking(func(a *rollout.Ask) { a.Published = newer }),
			serving("a", func(b *rollout.Backend) { b.Report.Version, b.Counted = alien, 1 }),
			want{activity: rollout.Draining, drain: rollout.DrainMove}},
		"engines of a pool that asks for no version any more go on": {
			rollout.Ask{}, serving("a", func(b *rollout.Backend) { b.Pause = rollout.PausedByUs }),
			want{rollout.Resuming, rollout.Step{Kind: rollout.StepContinue}, rollout.EnginePaused, ""}},
		"unless the spec wants them paused": {
			rollout.Ask{Engines: rollout.EnginesPaused}, serving("a", func(b *rollout.Backend) { b.Pause = rollout.PausedByUs }),
			want{activity: rollout.Serving, engine: rollout.EnginePaused}},
	} {
		t.Run(name, func(t *testing.T) {
			got := rollout.Decide(c.ask, []rollout.Backend{c.is}, noon).Backends[0]
			if diff := cmp.Diff(c.want, want{got.Activity, got.Step, got.Engine, got.Drain}, cmp.AllowUnexported(want{})); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestARolloutWaitsForPinnedSessionsAndNoLonger(t *testing.T) {
	for name, c := range map[string]struct {
		strategy rollout.Strategy
		deadline time.Duration
		want     rollout.Reason
		leases   rollout.Leases
		drain    rollout.Drain
	}{
		"a barrier before its time is over":  {rollout.AllAtOnce, time.Minute, rollout.WaitingForPins, rollout.LeasesEndingPins, ""},
		"in place before its time is over":   {rollout.InPlace, time.Minute, rollout.WaitingForPins, rollout.LeasesEndingPins, ""},
		"rolling drains all but them":        {rollout.Rolling, time.Minute, rollout.WaitingForPins, rollout.LeasesOpen, rollout.DrainPinned},
		"a barrier when its time is over":    {rollout.AllAtOnce, time.Second, rollout.InProgress, rollout.LeasesStopped, ""},
		"in place when its time is over":     {rollout.InPlace, time.Second, rollout.InProgress, rollout.LeasesOpen, ""},
		"rolling when its time is over":      {rollout.Rolling, time.Second, rollout.InProgress, rollout.LeasesOpen, rollout.DrainMove},
		"nothing is waited for without time": {rollout.AllAtOnce, 0, rollout.InProgress, rollout.LeasesStopped, ""},
	} {
		t.Run(name, func(t *testing.T) {
			ask := asking(func(a *rollout.Ask) { a.Strategy, a.PinDeadline = c.strategy, c.deadline })
			all := []rollout.Backend{serving("a", func(b *rollout.Backend) { b.Pinned, b.Counted = 1, 1 })}
			p := rollout.Decide(ask, all, noon)
			if p.Reason != c.want || p.Leases != c.leases || p.Backends[0].Drain != c.drain {
				t.Errorf("reason %s, leases %q, drain %q; want %s, %q, %q", p.Reason, p.Leases, p.Backends[0].Drain, c.want, c.leases, c.drain)
			}
			if c.want == rollout.WaitingForPins && (p.Again != ask.Start.Add(c.deadline) || p.Backends[0].Step.Kind != rollout.NoStep) {
				t.Errorf("looks again at %v, step %v", p.Again, p.Backends[0].Step)
			}
		})
	}
}

func TestTheTrainersVersionIsPublishedInOneStepAndWithNothingFromBefore(t *testing.T) {
	declared := func(a *rollout.Ask) { external(a); a.Verification = rollout.VerifyDeclared }
	for name, c := range map[string]struct {
		ask  func(*rollout.Ask)
		all  []rollout.Backend
		want rollout.Version
	}{
		"all have it": {external, []rollout.Backend{updated("a", nil), updated("b", nil)}, newer},
		"one has not": {external, []rollout.Backend{updated("a", nil), serving("b", nil)}, older},
		"one has something from before": {external, []rollout.Backend{updated("a", nil),
			updated("b", func(b *rollout.Backend) { b.Counted = 1 })}, older},
		"leases could still be granted when that was counted": {func(a *rollout.Ask) { external(a); a.Told = rollout.LeasesOpen },
			[]rollout.Backend{updated("a", func(b *rollout.Backend) { b.Door = rollout.DoorClosed })}, older},
		"the trainer vouches for those that were there": {declared, []rollout.Backend{updated("a", nil),
			serving("b", func(b *rollout.Backend) { b.Declared = newer })}, newer},
		"and not for those that came later": {declared, []rollout.Backend{updated("a", nil), serving("b", nil)}, older},
		"its word is not asked for":         {external, []rollout.Backend{serving("a", func(b *rollout.Backend) { b.Declared = newer })}, older},
	} {
		t.Run(name, func(t *testing.T) {
			p := rollout.Decide(asking(c.ask), c.all, noon)
			if p.Published != c.want || p.Leases != rollout.LeasesStopped {
				t.Errorf("published %s with leases %q, want %s", p.Published, p.Leases, c.want)
			}
			if p.Published == newer && p.Again != noon {
				t.Errorf("looks again at %v after a publication, not at once", p.Again)
			}
		})
	}
}

func TestABarrierFallsWhenItsDeadlineHasPassed(t *testing.T) {
	late := func(a *rollout.Ask) { a.Deadline = time.Second }
	failing := serving("b", func(b *rollout.Backend) {
		b.Door, b.Failure = rollout.DoorShut, rollout.Failure{Version: newer, Count: 3, Message: "no such file", RetryAt: noon.Add(time.Minute)}
	})
	for name, c := range map[string]struct {
		ask    rollout.Ask
		want   rollout.Version
		leases rollout.Leases
		back   rollout.Version // what a, which was updated, is updated to
	}{
		"Hold takes back what it did":             {asking(late), older, rollout.LeasesOpen, older},
		"Proceed publishes with enough":           {asking(func(a *rollout.Ask) { late(a); a.OnFailure = rollout.Proceed }), newer, rollout.LeasesStopped, ""},
		"Proceed takes back what is not enough":   {asking(func(a *rollout.Ask) { late(a); a.OnFailure, a.MinReadyPercent = rollout.Proceed, 51 }), older, rollout.LeasesOpen, older},
		"the trainer's push cannot be taken back": {asking(func(a *rollout.Ask) { external(a); late(a) }), older, rollout.LeasesOpen, ""},
	} {
		t.Run(name, func(t *testing.T) {
			p := rollout.Decide(c.ask, []rollout.Backend{updated("a", nil), failing}, noon)
			if p.Published != c.want || p.Leases != c.leases || p.Backends[0].Step.Version != c.back {
				t.Errorf("published %s, leases %q, a: %+v", p.Published, p.Leases, p.Backends[0].Step)
			}
			if p.Published == older && (p.Reason != rollout.DeadlineExceeded || !strings.Contains(p.Message, "the deadline has passed")) {
				t.Errorf("the reason is %s: %s", p.Reason, p.Message)
			}
		})
	}
}

func TestAFailingBackendIsExcludedAndNamedWithTheEnginesWords(t *testing.T) {
	retry := noon.Add(7 * time.Second)
	failing := serving("b", func(b *rollout.Backend) {
		b.Failure = rollout.Failure{Version: newer, Count: 3, Message: "no such file", RetryAt: retry}
	})
	for name, strategy := range map[string]rollout.Strategy{"all at once": rollout.AllAtOnce, "rolling": rollout.Rolling, "in place": rollout.InPlace} {
		t.Run(name, func(t *testing.T) {
			ask := asking(func(a *rollout.Ask) { a.Strategy, a.Told = strategy, rollout.LeasesStopped })
			p := rollout.Decide(ask, []rollout.Backend{updated("a", nil), failing}, noon)
			b := p.Backends[1]
			if b.Excluded != rollout.ExcludedFailed || b.Activity != rollout.Failed || b.Message != "no such file" || b.Step.Kind != rollout.NoStep {
				t.Errorf("b is planned as %+v", b)
			}
			if p.Reason != rollout.BackendsFailing || !strings.Contains(p.Message, "b: no such file") || p.Again != retry || p.Published != older {
				t.Errorf("reason %s (%s), published %s, again at %v", p.Reason, p.Message, p.Published, p.Again)
			}
		})
	}
}

func TestAPoolOpensWithAllOfItsEnginesAtOnce(t *testing.T) {
	open := updated("a", func(b *rollout.Backend) { b.Door = rollout.DoorOpen })
	behind := updated("b", func(b *rollout.Backend) { b.Door = rollout.DoorClosed })
	held := updated("b", func(b *rollout.Backend) { b.Pause, b.Door = rollout.PausedByOthers, rollout.DoorClosed })
	for name, c := range map[string]struct {
		all  []rollout.Backend
		told rollout.Leases
		ago  time.Duration
		want rollout.Leases
	}{
		"it waits for one that is coming back": {[]rollout.Backend{open, behind}, rollout.LeasesStopped, time.Second, rollout.LeasesStopped},
		"not for long":                         {[]rollout.Backend{open, behind}, rollout.LeasesStopped, 5 * time.Second, rollout.LeasesOpen},
		"not for one that others paused":       {[]rollout.Backend{open, held}, rollout.LeasesStopped, time.Second, rollout.LeasesOpen},
		"and never shuts again":                {[]rollout.Backend{open, behind}, rollout.LeasesOpen, time.Second, rollout.LeasesOpen},
	} {
		t.Run(name, func(t *testing.T) {
			ask := asking(func(a *rollout.Ask) { a.Published, a.Told, a.PublishedAt = newer, c.told, noon.Add(-c.ago) })
			if p := rollout.Decide(ask, c.all, noon); p.Leases != c.want {
				t.Errorf("leases are %q, want %q", p.Leases, c.want)
			}
		})
	}
}

func TestWhatOnlyNeedsToBeToldIsLookedAtAgainAtOnce(t *testing.T) {
	p := rollout.Decide(asking(nil), []rollout.Backend{serving("a", nil)}, noon)
	if p.Again != noon || p.Leases != rollout.LeasesStopped || p.Backends[0].Step.Kind != rollout.NoStep {
		t.Errorf("again at %v, leases %q, step %+v", p.Again, p.Leases, p.Backends[0].Step)
	}
	p = rollout.Decide(asking(nil), []rollout.Backend{serving("a", func(b *rollout.Backend) { b.Counted = 1 })}, noon)
	if !p.Again.IsZero() {
		t.Errorf("again at %v, and only the end of an execution changes anything", p.Again)
	}
}

func TestEventsSayWhatChangedSinceTheLastStatus(t *testing.T) {
	ask := asking(func(a *rollout.Ask) { a.Told = rollout.LeasesStopped })
	all := []rollout.Backend{
		serving("a", nil), serving("b", func(b *rollout.Backend) { b.Was = rollout.Updating }),
		serving("c", func(b *rollout.Backend) { b.Counted, b.Was = 1, rollout.Serving }),
	}
	want := []rollout.Event{
		{Backend: "a", Kind: "BackendUpdating", Message: "Updating"},
		{Backend: "c", Kind: "BackendDraining", Message: "Draining: something is counted there, or may run"},
	}
	if diff := cmp.Diff(want, rollout.Decide(ask, all, noon).Events); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestProgressCountsBackendsOnTheTarget(t *testing.T) {
	all := []rollout.Backend{updated("a", nil), serving("b", nil), updated("c", func(b *rollout.Backend) { b.Begun = newer })}
	if p := rollout.Decide(asking(nil), all, noon); p.Ready != 1 || p.Total != 3 {
		t.Errorf("%d/%d, want 1/3", p.Ready, p.Total)
	}
	ask := asking(func(a *rollout.Ask) { a.Published = newer })
	if p := rollout.Decide(ask, all[:1], noon); p.Reason != rollout.Converged || p.Message != "" {
		t.Errorf("reason %s: %s", p.Reason, p.Message)
	}
}

package rollout_test

import (
	"fmt"
	"time"

	"github.com/berthmaster/berthmaster/internal/rollout"
)

// laws are the numbered invariants of the package's comment, and a few that every plan must keep to
// make sense. They are written from the comment, not from the code.
var laws = []func(c *plannedCase) error{
	lawClearBeforeUpdate, lawFlushOnlyIdle, lawPublishOnlyWithEnough, lawContinueOnlyOurs, lawPublishBeforeContinue,
	lawMaxUnavailable, lawTwoVersions, lawOneCall, lawBackoff, lawExternalTouchesNothing, lawRouterIsTold,
}

type plannedCase struct {
	ask  rollout.Ask
	all  []rollout.Backend
	now  time.Time
	plan rollout.Plan
}

// broken is the first law that a plan breaks.
func (c *plannedCase) broken() error {
	if len(c.plan.Backends) != len(c.all) {
		return fmt.Errorf("%d backends are planned, of %d", len(c.plan.Backends), len(c.all))
	}
	for _, law := range laws {
		if err := law(c); err != nil {
			return err
		}
	}
	return nil
}

func has(c *plannedCase, b *rollout.Backend, v rollout.Version) bool {
	if half(c, b) || b.Call == rollout.StepUpdate {
		return false
	}
	if c.ask.Source == rollout.External && c.ask.Verification == rollout.VerifyDeclared && b.Declared == v {
		return true
	}
	return b.Call != rollout.StepStamp && b.Report.Freshness == rollout.Fresh && b.Report.Version == v
}

// half reports whether an update of ours may still change the weights.
func half(c *plannedCase, b *rollout.Backend) bool {
	return b.Begun != "" && c.ask.Source == rollout.Disk
}

func quiet(c *plannedCase, b *rollout.Backend) bool {
	return b.Counted == 0 && b.Load == rollout.LoadKnown && (b.Door == rollout.DoorShut || c.ask.Told == rollout.LeasesStopped)
}

func ours(b *rollout.Backend) bool {
	return b.Pause == rollout.PauseBegun || b.Pause == rollout.PausedByUs
}

func empties(ask *rollout.Ask) bool {
	switch ask.Strategy {
	case rollout.Rolling:
		return true
	case rollout.InPlace:
		return false
	default:
		return ask.Clearing != rollout.ClearRetract && ask.Clearing != rollout.ClearFreeze
	}
}

func lawClearBeforeUpdate(c *plannedCase) error {
	for i := range c.all {
		b, step := &c.all[i], c.plan.Backends[i].Step
		if step.Kind != rollout.StepUpdate || quiet(c, b) {
			continue
		}
		frozen := !empties(&c.ask) && b.Pause == rollout.PausedByUs
		if (!half(c, b) || b.Pause == rollout.PausedByOthers) && !frozen {
			return fmt.Errorf("1: %s is updated while something may run there", b.Name)
		}
	}
	return nil
}

func lawFlushOnlyIdle(c *plannedCase) error {
	for i := range c.all {
		b, step := &c.all[i], c.plan.Backends[i].Step
		if step.Flush != rollout.FlushIdle {
			continue
		}
		frozen := ours(b) && (b.Pause != rollout.PausedByUs || b.PausedHow != rollout.PauseAbort) || b.Pause == rollout.PausedByOthers
		waits := b.Pause == rollout.NotPaused && half(c, b) // for what runs to end, by itself
		if !quiet(c, b) && !waits || frozen {
			return fmt.Errorf("2: %s is flushed and not known idle", b.Name)
		}
	}
	return nil
}

func lawPublishOnlyWithEnough(c *plannedCase) error {
	if c.plan.Published == c.ask.Published {
		return nil
	}
	if c.plan.Published != c.ask.Target {
		return fmt.Errorf("3: %q is published", c.plan.Published)
	}
	asked, on, awaited := 0, 0, 0
	for i := range c.all {
		b := &c.all[i]
		if b.Station == rollout.OutOfService {
			continue
		}
		asked++
		failed := b.Failure.Count > 0 && b.Failure.Version == c.ask.Target
		switch {
		case has(c, b, c.ask.Target):
			on++
			barrier := c.ask.Strategy == rollout.AllAtOnce || c.ask.Published == "" || c.ask.Source == rollout.External
			if barrier && (c.ask.Source == rollout.External || empties(&c.ask)) && !quiet(c, b) {
				return fmt.Errorf("3: published while %s has something from before", b.Name)
			}
		case failed || b.Contact == rollout.Unreachable || c.ask.Source == rollout.Disk && b.Pause == rollout.PausedByOthers:
		default:
			awaited++
		}
	}
	late := c.ask.Deadline > 0 && !c.now.Before(c.ask.Start.Add(c.ask.Deadline))
	switch {
	case on == 0:
		return fmt.Errorf("3: published on nobody's word")
	case on == asked:
	case c.ask.OnFailure != rollout.Proceed:
		return fmt.Errorf("3: Hold published with %d of %d", on, asked)
	case on*100 < asked*c.ask.MinReadyPercent:
		return fmt.Errorf("3: Proceed published with %d of %d", on, asked)
	case awaited > 0 && !late:
		return fmt.Errorf("3: Proceed did not wait for %d", awaited)
	}
	return nil
}

func lawContinueOnlyOurs(c *plannedCase) error {
	for i := range c.all {
		b, step := &c.all[i], c.plan.Backends[i].Step
		switch {
		case step.Kind == rollout.StepRepause && (b.Pause != rollout.PausedByUs || half(c, b)),
			step.Kind == rollout.StepContinue && (!ours(b) || half(c, b) || b.Report.Freshness != rollout.Fresh):
			return fmt.Errorf("4: %s is continued", b.Name)
		case (step.Kind == rollout.StepContinue || step.Kind == rollout.StepPause) && c.ask.Engines == rollout.EnginesPaused:
			return fmt.Errorf("4: %s has its pause changed against spec.engineMode", b.Name)
		}
	}
	return nil
}

// barrier reports whether nobody is to be served before the target is published.
func barrier(c *plannedCase) bool {
	late := c.ask.Deadline > 0 && !c.now.Before(c.ask.Start.Add(c.ask.Deadline))
	return c.ask.Target != c.ask.Published && !late && (c.ask.Strategy == rollout.AllAtOnce || c.ask.Source == rollout.External || c.ask.Published == "")
}

func lawPublishBeforeContinue(c *plannedCase) error {
	if !barrier(c) {
		return nil
	}
	for i := range c.all {
		b := &c.all[i]
		if c.plan.Backends[i].Step.Kind != rollout.StepContinue || !has(c, b, c.ask.Target) {
			continue
		}
		if quiet(c, b) || !empties(&c.ask) && c.ask.Source == rollout.Disk {
			return fmt.Errorf("5: %s is continued before the publication", b.Name)
		}
	}
	return nil
}

// lawMaxUnavailable counts what serves now and is taken by the plan.
func lawMaxUnavailable(c *plannedCase) error {
	if c.ask.Strategy != rollout.Rolling || c.ask.Source != rollout.Disk || c.ask.Published == "" || c.ask.Target == c.ask.Published {
		return nil
	}
	goal := c.ask.Target
	if c.plan.Reason == rollout.DeadlineExceeded {
		goal = c.ask.Published
	}
	taken, in, asked := 0, 0, 0
	for i := range c.all {
		b, bp := &c.all[i], &c.plan.Backends[i]
		if b.Station == rollout.OutOfService {
			continue
		}
		asked++
		if b.Door != rollout.DoorOpen || b.Contact != rollout.Reachable || b.Call != rollout.NoStep || b.Pause != rollout.NotPaused ||
			b.Failure.Count > 0 && b.Failure.Version == goal {
			continue
		}
		if !has(c, b, c.ask.Target) && !has(c, b, c.ask.Published) {
			continue
		}
		in++
		if bp.Drain != rollout.NotDraining || bp.Engine != rollout.EngineRunning || bp.Excluded != "" {
			taken++
		}
	}
	allowed := max(1, c.ask.MaxUnavailable)
	if c.ask.OnFailure == rollout.Proceed {
		allowed += asked - (asked*c.ask.MinReadyPercent+99)/100
	}
	if taken > 0 && asked-in+taken > allowed {
		return fmt.Errorf("6: %d of %d that serve are taken, with %d out already", taken, in, asked-in)
	}
	return nil
}

func lawTwoVersions(c *plannedCase) error {
	rolls := c.ask.Strategy == rollout.Rolling && c.ask.Source == rollout.Disk
	if c.plan.Second == "" || rolls && c.plan.Second == c.ask.Target && c.ask.Published != "" {
		return nil
	}
	return fmt.Errorf("7: %q is admissible beside %q", c.plan.Second, c.plan.Published)
}

func lawOneCall(c *plannedCase) error {
	for i := range c.all {
		if c.all[i].Call != rollout.NoStep && c.plan.Backends[i].Step.Kind != rollout.NoStep {
			return fmt.Errorf("8: %s has two calls", c.all[i].Name)
		}
	}
	return nil
}

func lawBackoff(c *plannedCase) error {
	for i := range c.all {
		b, step := &c.all[i], c.plan.Backends[i].Step
		if step.Kind == rollout.NoStep || b.Failure.Count == 0 || !c.now.Before(b.Failure.RetryAt) {
			continue
		}
		if step.Version == b.Failure.Version {
			return fmt.Errorf("9: %s is asked again too early", b.Name)
		}
	}
	return nil
}

func lawExternalTouchesNothing(c *plannedCase) error {
	for i := range c.plan.Backends {
		switch step := c.plan.Backends[i].Step; step.Kind {
		case rollout.StepUpdate, rollout.StepPause, rollout.StepRepause:
			if c.ask.Source == rollout.External {
				return fmt.Errorf("10: External does %s", step.Kind)
			}
		case rollout.StepStamp:
			if c.ask.Source != rollout.External || c.all[i].Declared != step.Version || c.ask.Stamping != rollout.StampEnabled {
				return fmt.Errorf("10: %s is stamped on nobody's word", c.all[i].Name)
			}
		case rollout.NoStep, rollout.StepVerify, rollout.StepContinue:
		}
	}
	return nil
}

// lawRouterIsTold: what is done to an engine is told to the router, and weights change to nothing but
// what is asked or was promised.
func lawRouterIsTold(c *plannedCase) error {
	for i := range c.plan.Backends {
		bp := &c.plan.Backends[i]
		switch bp.Step.Kind {
		case rollout.StepUpdate:
			if bp.Engine != rollout.EngineUpdating {
				return fmt.Errorf("the router is not told that %s is updated", bp.Name)
			}
			if v := bp.Step.Version; v != c.ask.Target && v != c.ask.Published || v == "" {
				return fmt.Errorf("%s is updated to %q", bp.Name, v)
			}
		case rollout.StepPause, rollout.StepRepause:
			if bp.Engine == rollout.EngineRunning {
				return fmt.Errorf("the router is not told that %s is paused", bp.Name)
			}
		case rollout.NoStep, rollout.StepVerify, rollout.StepContinue, rollout.StepStamp:
		}
	}
	return nil
}

package rollout_test

import (
	"fmt"
	"strings"
	"time"

	"github.com/berthmaster/berthmaster/internal/rollout"
)

// serve lets an engine handle the first call in its queue. It reports whether it could.
func (w *world) serve(i int) bool {
	e := w.engines[i]
	if len(e.queue) == 0 {
		return false
	}
	c := e.queue[0]
	if c.step.Kind == rollout.StepUpdate && e.paused == "" && w.running(i) > 0 {
		return false // it waits for what runs
	}
	e.queue = e.queue[1:]
	var a rollout.Answer
	if e.dead {
		a.Problem = "connection refused"
	} else {
		a = w.handle(i, c.step)
	}
	if c.answer != nil {
		c.answer(a)
	}
	return true
}

func (w *world) handle(i int, step rollout.Step) rollout.Answer {
	e := w.engines[i]
	switch step.Kind {
	case rollout.StepPause:
		w.halt(i, step.Pause)
	case rollout.StepRepause:
		e.paused, e.by = "", ""
		w.halt(i, step.Pause)
	case rollout.StepContinue:
		if e.by == "others" {
			w.failf("an engine that others paused is continued")
		}
		e.paused, e.by = "", ""
	case rollout.StepUpdate:
		return w.load(i, step)
	case rollout.StepStamp:
		e.version = step.Version
	case rollout.StepVerify:
		return rollout.Answer{Reported: e.version}
	case rollout.NoStep:
	}
	return rollout.Answer{}
}

// halt pauses. What is aborted ends for its client; a pause that finds the engine paused changes nothing.
func (w *world) halt(i int, mode rollout.PauseMode) {
	e := w.engines[i]
	if e.paused != "" {
		return
	}
	e.paused, e.by = mode, "us"
	if mode == rollout.PauseAbort {
		w.endRuns(i)
		w.router.unknown[i] = false
	}
}

func (w *world) endRuns(i int) {
	kept := w.router.runs[:0]
	for _, r := range w.router.runs {
		if r.at != i {
			kept = append(kept, r)
		}
	}
	w.router.runs = kept
}

// load changes the weights, as the engine would: a flush that finds something kills it.
func (w *world) load(i int, step rollout.Step) rollout.Answer {
	e := w.engines[i]
	if w.running(i) > 0 {
		if step.Flush == rollout.FlushIdle {
			w.failf("the cache of %c is flushed under a request", 'a'+i)
		}
		if w.spec.Strategy == rollout.Rolling || w.spec.Strategy == rollout.AllAtOnce && (w.spec.Clearing == rollout.ClearDrain || w.spec.Clearing == rollout.ClearAbort) {
			w.failf("%c is updated under a request", 'a'+i)
		}
	}
	if e.refuse > 0 {
		e.refuse--
		return rollout.Answer{Problem: "out of memory"}
	}
	e.version = step.Version
	if e.misread > 0 {
		e.misread--
		e.version = alien
	}
	for _, r := range w.router.runs {
		if r.at == i && r.granted != e.version {
			r.mixed = true
		}
	}
	return rollout.Answer{}
}

// confirm is the prober: it reads engines that it may probe.
func (w *world) confirm() {
	for i, e := range w.engines {
		switch {
		case e.dead, e.by == "others":
			w.router.confirmed[i] = ""
		case w.router.told[i].Engine == rollout.EngineRunning && e.paused == "":
			w.router.confirmed[i] = e.version
		}
	}
}

// grant gives a lease at every backend that the router admits, up to two.
func (w *world) grant() {
	if w.router.leases == rollout.LeasesStopped {
		return
	}
	versions := map[rollout.Version]bool{}
	for i, e := range w.engines {
		if w.door(i) != rollout.DoorOpen || e.dead {
			continue
		}
		said := w.router.confirmed[i]
		versions[said] = true
		if e.version != said && w.spec.Source == rollout.Disk {
			w.failf("%c has %s, and a lease there says %s", 'a'+i, e.version, said)
		}
		if w.running(i) < 2 {
			w.router.runs = append(w.router.runs, &run{at: i, granted: said, turns: 2})
		}
	}
	if len(versions) > 2 {
		w.failf("%d versions are granted at once", len(versions))
	}
}

// work lets what runs go on: it ends after two turns, on engines that generate.
func (w *world) work() {
	kept := w.router.runs[:0]
	for _, r := range w.router.runs {
		e := w.engines[r.at]
		if e.paused == "" && !e.dead {
			if e.version != r.granted && !r.mixed {
				w.failf("a request of %s ends on %s and does not say so", r.granted, e.version)
			}
			r.turns--
		}
		if r.turns > 0 {
			kept = append(kept, r)
		}
	}
	w.router.runs = kept
	for i := range w.router.unknown {
		if w.engines[i].paused == "" && w.running(i) == 0 {
			w.router.unknown[i] = false // the engine was seen quiet
		}
	}
}

// pass lets everybody but the process do something, and time pass.
func (w *world) pass() {
	w.confirm()
	w.grant()
	w.work()
	w.now = w.now.Add(200 * time.Millisecond)
}

// finish runs the process until there is nothing left to do, or limit rounds have passed. After the
// act of number crashAt it crashes once.
func (w *world) finish(crashAt, limit int) int {
	acts := 0
	for range limit {
		if w.broken != nil || w.settled() {
			return acts
		}
		for w.act() {
			if acts++; acts == crashAt {
				w.crash()
			}
			if len(w.todo) == 0 {
				break
			}
		}
		for i := range w.engines {
			w.serve(i)
		}
		w.pass()
	}
	if w.broken == nil {
		w.failf("not done after %d rounds: %s", limit, w.state())
	}
	return acts
}

// settled: the pool is on its version, or has given it up, everything that can serve does, and
// nothing is under way.
func (w *world) settled() bool {
	if w.status.target != w.spec.Target || len(w.todo) > 0 {
		return false
	}
	plan := rollout.Decide(w.ask(), w.backends(), w.now)
	switch plan.Reason {
	case rollout.Converged, rollout.CatchingUp, rollout.DeadlineExceeded:
	default:
		return false
	}
	if plan.Published != w.status.published || w.differs(plan) || w.router.leases != rollout.LeasesOpen {
		return false
	}
	for i, e := range w.engines {
		if e.dead || e.refuse > hopeless {
			continue
		}
		busy := len(e.queue) > 0 || w.memory.records[i].Call != rollout.NoStep || plan.Backends[i].Step.Kind != rollout.NoStep
		if busy || e.version != w.status.published || w.door(i) != rollout.DoorOpen || e.paused != "" || w.status.begun[i] != "" || w.status.pause[i] != rollout.NotPaused {
			return false
		}
	}
	return true
}

// hopeless: an engine that declines so often always will.
const hopeless = 100

// state is what must be the same whoever finishes. What becomes of an engine that never does as it is
// told depends on when one looks.
func (w *world) state() string {
	var b strings.Builder
	fmt.Fprintf(&b, "published %s, leases %q, second %q;", w.status.published, w.router.leases, w.router.second)
	for i, e := range w.engines {
		if e.dead || e.refuse > hopeless {
			fmt.Fprintf(&b, " %c: lost;", 'a'+i)
			continue
		}
		fmt.Fprintf(&b, " %c: %s paused %q;", 'a'+i, e.version, e.paused)
	}
	return b.String()
}

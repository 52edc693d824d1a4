package rollout_test

import (
	"fmt"
	"time"

	"github.com/berthmaster/berthmaster/internal/rollout"
)

// world is a pool of engines, a router and a status, with a process that carries plans out. What the
// process remembers is in memory; a crash leaves all but that. Every act is one small step, so that
// a test can end the process after each.
type world struct {
	now     time.Time
	spec    rollout.Ask // what the spec asks; facts are in status
	status  status
	router  routerState
	engines []*engine
	memory  memory
	// goal is what the latest plan brings the engines to.
	goal rollout.Version
	// todo is what the process is about to do, in order.
	todo []func()
	// broken is the first thing that went wrong.
	broken             error
	crashes, published int
	log                []string
}

type status struct {
	published   rollout.Version
	publishedAt time.Time
	target      rollout.Version
	start       time.Time
	begun       []rollout.Version
	pause       []rollout.Pause
	how         []rollout.PauseMode
}

// routerState is what the router was told and what it counts.
type routerState struct {
	leases    rollout.Leases
	published rollout.Version
	second    rollout.Version
	told      []rollout.BackendPlan
	// confirmed is the version that the router believes; empty: none.
	confirmed []rollout.Version
	unknown   []bool
	runs      []*run
}

// run is one execution: where, and on which version it was granted.
type run struct {
	at      int
	granted rollout.Version
	mixed   bool
	turns   int
}

// engine is the truth about one engine.
type engine struct {
	version rollout.Version
	paused  rollout.PauseMode
	by      string
	queue   []call
	dead    bool
	// refuse is how many updates it declines; misread how many end in another version.
	refuse, misread int
}

// call is one request on its way. answer is nil once its sender is dead.
type call struct {
	step   rollout.Step
	answer func(rollout.Answer)
}

type memory struct {
	records  []rollout.Record
	pausedBy []rollout.Pause
}

func newWorld(spec rollout.Ask, size int) *world {
	w := &world{now: noon, spec: spec}
	w.status = status{published: older, publishedAt: noon.Add(-time.Hour), begun: make([]rollout.Version, size), pause: make([]rollout.Pause, size), how: make([]rollout.PauseMode, size)}
	w.router = routerState{published: older, told: make([]rollout.BackendPlan, size), confirmed: make([]rollout.Version, size), unknown: make([]bool, size)}
	for range size {
		w.engines = append(w.engines, &engine{version: older})
	}
	w.memory = newMemory(size)
	w.confirm()
	return w
}

func newMemory(size int) memory {
	return memory{records: make([]rollout.Record, size), pausedBy: make([]rollout.Pause, size)}
}

func (w *world) failf(format string, args ...any) {
	if w.broken == nil {
		w.broken = fmt.Errorf(format, args...)
	}
}

// crash ends the process. Calls that are on their way go on; their answers are lost. The router
// begins anew: it grants nothing before it is told, and what runs is unknown to it.
func (w *world) crash() {
	w.crashes++
	w.todo = nil
	w.memory = newMemory(len(w.engines))
	for i, e := range w.engines {
		for k := range e.queue {
			e.queue[k].answer = nil
		}
		w.router.unknown[i] = w.running(i) > 0
		w.router.confirmed[i] = ""
		w.router.told[i] = rollout.BackendPlan{}
		if p := w.status.pause[i]; p != rollout.NotPaused {
			w.router.told[i].Engine = rollout.EnginePaused
		}
		if w.status.begun[i] != "" {
			w.router.told[i].Engine = rollout.EngineUpdating
		}
	}
	w.router.leases, w.router.published, w.router.second = rollout.LeasesOpen, w.status.published, ""
	w.log = append(w.log, "-- crash --")
}

func (w *world) running(i int) int {
	n := 0
	for _, r := range w.router.runs {
		if r.at == i {
			n++
		}
	}
	return n
}

// ask is the spec with the facts.
func (w *world) ask() rollout.Ask {
	a := w.spec
	a.Published, a.PublishedAt, a.Start, a.Told = w.status.published, w.status.publishedAt, w.status.start, w.router.leases
	return a
}

func (w *world) backends() []rollout.Backend {
	out := make([]rollout.Backend, len(w.engines))
	for i, e := range w.engines {
		rec := w.memory.records[i]
		b := rollout.Backend{
			Name: string(rune('a' + i)), Incarnation: string(rune('a'+i)) + "/1", Contact: rollout.Reachable,
			Report: rec.Report, Begun: w.status.begun[i], Pause: w.status.pause[i], PausedHow: w.status.how[i],
			PausedAt: rec.PausedAt, Counted: int64(w.running(i)), Door: w.door(i), Told: w.router.told[i].Drain,
			Call: rec.Call, Failure: rec.Failure, Was: w.router.told[i].Activity,
		}
		if b.Pause == rollout.PauseBegun {
			b.Pause = max(b.Pause, w.memory.pausedBy[i])
		}
		if v := w.router.confirmed[i]; v != "" {
			b.Report = rollout.Report{Version: v, Freshness: rollout.Fresh, At: w.now}
		}
		if w.router.unknown[i] {
			b.Load, b.Counted = rollout.LoadUnknown, 0
		}
		if e.dead {
			b.Contact = rollout.Unreachable
		}
		if e.by == "others" {
			b.Pause = rollout.PausedByOthers
		}
		out[i] = b
	}
	return out
}

func (w *world) door(i int) rollout.Door {
	told := w.router.told[i]
	switch {
	case told.Engine != rollout.EngineRunning, told.Drain == rollout.DrainMove, told.Excluded != "":
		return rollout.DoorShut
	case told.Drain == rollout.NotDraining && w.fits(i):
		return rollout.DoorOpen
	default:
		return rollout.DoorClosed
	}
}

func (w *world) fits(i int) bool {
	v := w.router.confirmed[i]
	return v != "" && (w.router.published == "" || v == w.router.published || v == w.router.second)
}

// act does the next small step. It reports whether there was anything to do but wait.
func (w *world) act() bool {
	if len(w.todo) == 0 {
		w.look()
	}
	if len(w.todo) == 0 {
		return false
	}
	next := w.todo[0]
	w.todo = w.todo[1:]
	next()
	return true
}

// look makes a plan and queues what it asks.
func (w *world) look() {
	if w.spec.Target != w.status.target {
		w.todo = append(w.todo, func() { w.status.target, w.status.start = w.spec.Target, w.now })
		return
	}
	ask, all := w.ask(), w.backends()
	plan := rollout.Decide(ask, all, w.now)
	w.goal = plan.Goal
	c := plannedCase{ask: ask, all: all, now: w.now, plan: plan}
	if err := c.broken(); err != nil {
		w.failf("%w", err)
	}
	if plan.Published != ask.Published {
		w.todo = append(w.todo, func() { w.publish(plan.Published) })
	}
	if w.differs(plan) {
		w.todo = append(w.todo, func() { w.tell(plan) })
	}
	for i := range plan.Backends {
		if step := plan.Backends[i].Step; step.Kind != rollout.NoStep {
			w.queueStep(i, step)
		}
	}
}

func (w *world) publish(v rollout.Version) {
	w.published++
	w.status.published, w.status.publishedAt = v, w.now
	w.log = append(w.log, "publish "+string(v))
}

func (w *world) differs(p rollout.Plan) bool {
	if p.Leases != w.router.leases || p.Published != w.router.published || p.Second != w.router.second {
		return true
	}
	for i := range p.Backends {
		was, is := w.router.told[i], p.Backends[i]
		if was.Engine != is.Engine || was.Drain != is.Drain || was.Excluded != is.Excluded {
			return true
		}
	}
	return false
}

// tell hands a plan to the router. An engine that was paused or updated is believed on what it says
// now, and no more on what it said before.
func (w *world) tell(p rollout.Plan) {
	w.router.leases, w.router.published, w.router.second = p.Leases, p.Published, p.Second
	for i := range p.Backends {
		if p.Backends[i].Engine != rollout.EngineRunning || w.router.told[i].Engine != rollout.EngineRunning {
			w.router.confirmed[i] = ""
		}
	}
	w.router.told = p.Backends
}

// queueStep queues the fact before a call, and the call.
func (w *world) queueStep(i int, step rollout.Step) {
	switch step.Kind {
	case rollout.StepPause, rollout.StepRepause:
		if w.status.pause[i] != rollout.PauseBegun || w.status.how[i] != step.Pause {
			w.todo = append(w.todo, func() { w.status.pause[i], w.status.how[i] = rollout.PauseBegun, step.Pause })
		}
	case rollout.StepUpdate:
		w.todo = append(w.todo, func() { w.status.begun[i] = step.Version })
	case rollout.NoStep, rollout.StepVerify, rollout.StepContinue, rollout.StepStamp:
	}
	w.todo = append(w.todo, func() { w.send(i, step) })
}

func (w *world) send(i int, step rollout.Step) {
	w.memory.records[i] = w.memory.records[i].Began(step)
	w.log = append(w.log, fmt.Sprintf("%c: %s %s", 'a'+i, step.Kind, step.Version))
	goal := w.goal
	w.engines[i].queue = append(w.engines[i].queue, call{step: step, answer: func(a rollout.Answer) {
		w.memory.records[i] = w.memory.records[i].Ended(step, a, goal, w.now)
		if a.Problem == "" {
			w.answered(i, step)
		} else if step.Kind == rollout.StepUpdate {
			w.status.begun[i] = ""
		}
	}})
}

// answered takes the facts back that an answer settles.
func (w *world) answered(i int, step rollout.Step) {
	switch step.Kind {
	case rollout.StepPause, rollout.StepRepause:
		w.memory.pausedBy[i] = rollout.PausedByUs
	case rollout.StepUpdate:
		w.status.begun[i] = ""
	case rollout.StepContinue:
		w.status.pause[i], w.memory.pausedBy[i] = rollout.NotPaused, rollout.NotPaused
	case rollout.NoStep, rollout.StepVerify, rollout.StepStamp:
	}
}

package controller

import (
	"time"

	"github.com/berthmaster/berthmaster/api/v1alpha1"
	"github.com/berthmaster/berthmaster/internal/prober"
	"github.com/berthmaster/berthmaster/internal/rollout"
	"github.com/berthmaster/berthmaster/internal/router"
)

// weightsPlan is what a plan does about the pool's weights; the zero value: versions are not looked at.
type weightsPlan struct {
	// facts go to the status before the plan is carried out.
	facts *v1alpha1.WeightsStatus
	// rollout is the plan of the whole pool.
	rollout rollout.Plan
	// quiet says whether the spec lets no sender at all have leases.
	quiet bool
	// version is what the spec names; empty: nothing.
	version string
	// doubtful are incarnations of which what they said of their weights does not hold any more.
	doubtful []router.Incarnation
}

// toldRollout is what the router was last told by a rollout, of which this process alone knows.
type toldRollout struct {
	leases rollout.Leases
	drains map[router.Incarnation]rollout.Drain
}

// planWeights has the rollout planned and merges what it asks with what spec.engineMode does.
func (p *plan) planWeights(w *world, now time.Time) {
	p.weights.facts, p.weights.quiet = w.pool.Status.Weights.DeepCopy(), asksQuiet(&w.pool.Spec)
	if w.pool.Spec.Weights == nil {
		return
	}
	p.weights.version = string(w.pool.Spec.Weights.Version)
	facts := weightFacts(w, now)
	p.weights.facts = facts
	var members []*berth
	for i := range p.berths {
		if b := &p.berths[i]; b.usable() {
			members = append(members, b)
		}
	}
	ask := askOf(&w.pool.Spec, facts, w.told.leases, len(members))
	views, known := make([]rollout.Backend, 0, len(members)), w.snapshotByLife()
	about := make([]engineFacts, 0, len(members))
	for _, b := range members {
		f := factsAbout(w, b)
		f.declared = p.declaredFor(w, b, f)
		about = append(about, f)
		views = append(views, viewOf(w, b, f, known[b.incarnation], w.told.drains[b.incarnation]))
		p.doubt(w, b, f)
	}
	p.weights.rollout = rollout.Decide(ask, views, now)
	p.publish(w, now)
	path := func(v rollout.Version) string { return pathOf(v, w.pool.Spec.Weights, facts) }
	for i, b := range members {
		asked := &p.weights.rollout.Backends[i]
		step := orderOf(asked.Step, p.weights.rollout.Goal, path)
		b.engine = p.merge(w, b, about[i], asked, step, now)
		verdict := w.verdicts[string(b.incarnation)]
		b.engine.vouched, b.engine.vouchedAt = vouchedFor(&ask, about[i], &views[i], verdict), verdict.Seq
		b.declared = about[i].declared
		p.lookAgain(b.engine.retryAt, now)
	}
	if again := p.weights.rollout.Again; !again.IsZero() && p.course != courseFollow { // who follows changes nothing by it
		p.lookAgain(later(again, now.Add(time.Millisecond)), now)
	}
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// weightFacts are the facts about the pool's weights before anything is published: which version is
// asked for, and since when.
func weightFacts(w *world, now time.Time) *v1alpha1.WeightsStatus {
	facts := w.pool.Status.Weights.DeepCopy()
	if facts == nil {
		facts = &v1alpha1.WeightsStatus{}
	}
	if version := string(w.pool.Spec.Weights.Version); facts.Target != version {
		at := toTheSecond(now)
		facts.Target, facts.StartTime = version, &at
	}
	return facts
}

// publish takes over what the rollout publishes, as facts.
func (p *plan) publish(w *world, now time.Time) {
	facts, version := p.weights.facts, string(p.weights.rollout.Published)
	if version == facts.Published {
		return
	}
	at := toTheSecond(now)
	facts.Published, facts.PublishedTime, facts.PublishedPath = version, &at, w.pool.Spec.Weights.Path
}

// merge is what is done about one member's engine: what the rollout asks comes first, and where it asks
// nothing, spec.engineMode may pause. That a pause ends is for the rollout to say.
func (p *plan) merge(w *world, b *berth, f engineFacts, asked *rollout.BackendPlan, step order, now time.Time) engineWork {
	work := engineWork{
		paused: f.paused, updating: f.updating, mode: engineModes[asked.Engine], drain: drainModes[asked.Drain],
		excluded: asked.Excluded, activity: asked.Activity, message: asked.Message,
	}
	memory := w.engines[b.incarnation]
	if memory.busy() {
		return work
	}
	if step.kind != orderNone {
		return work.take(step, w.verdicts[string(b.incarnation)].Verdict)
	}
	sight := sightOf(w, b)
	if sight.recorded = f.paused; !sight.wanted.asked() || f.updating != "" {
		return work
	}
	if f.paused.by == v1alpha1.PausedByWeights {
		sight.wanted.mode = f.paused.mode // as good as any, until the rollout has done with it
	}
	return work.join(workOn(sight, now))
}

// take adds an order of the rollout, and the facts that precede it.
func (e engineWork) take(o order, verdict prober.Verdict) engineWork {
	switch o.kind {
	case orderPause:
		if verdict == prober.Healthy && !e.paused.asked() {
			o.first = first
		}
		e.paused = pause{v1alpha1.PausedByWeights, o.mode}
	case orderRepause:
		o.first = first // it generates until the pause
		e.paused = pause{v1alpha1.PausedByWeights, o.mode}
	case orderUpdate:
		e.updating = o.version
	case orderNone, orderContinue, orderStamp, orderVerify:
	}
	e.order = o
	return e
}

// join adds what spec.engineMode does.
func (e engineWork) join(mode engineWork) engineWork {
	e.paused, e.order, e.state, e.delay, e.fault, e.retryAt = mode.paused, mode.order, mode.state, mode.delay, mode.fault, mode.retryAt
	if e.mode == router.EngineRunning {
		e.mode = mode.mode
	}
	return e
}

// vouchedFor is the version that the router may believe an engine to have without the prober's word: the
// trainer's, or what was read since the last change, as long as the prober has not read it itself.
func vouchedFor(ask *rollout.Ask, f engineFacts, view *rollout.Backend, verdict prober.Observation) router.Version {
	switch {
	case f.updating != "" || verdict.Verdict != prober.Healthy:
		return ""
	case ask.Source == rollout.External && ask.Verification == rollout.VerifyDeclared && f.declared != "":
		return router.Version(f.declared)
	case !verdict.VersionConfirmed && view.Report.Freshness == rollout.Fresh:
		return router.Version(view.Report.Version)
	default:
		return ""
	}
}

// doubt takes note of an engine that was out of reach, so that what it said before is asked again.
func (p *plan) doubt(w *world, b *berth, f engineFacts) {
	verdict := w.verdicts[string(b.incarnation)].Verdict
	if !f.paused.asked() && f.updating == "" && verdict != prober.Healthy && w.engines[b.incarnation].record.Report.Freshness == rollout.Fresh {
		p.weights.doubtful = append(p.weights.doubtful, b.incarnation)
	}
}

// snapshotByLife indexes what the router says.
func (w *world) snapshotByLife() map[router.Incarnation]*router.BackendSnapshot {
	known := make(map[router.Incarnation]*router.BackendSnapshot, len(w.snapshot.Backends))
	for i := range w.snapshot.Backends {
		known[w.snapshot.Backends[i].Incarnation] = &w.snapshot.Backends[i]
	}
	return known
}

// A rollout's words in the router's.
var (
	engineModes = map[rollout.Engine]router.EngineMode{
		rollout.EngineRunning: router.EngineRunning, rollout.EnginePaused: router.EnginePaused, rollout.EngineUpdating: router.EngineUpdating,
	}
	drainModes = map[rollout.Drain]router.Drain{
		rollout.NotDraining: router.NotDraining, rollout.DrainPinned: router.DrainPinned, rollout.DrainMove: router.DrainMove,
	}
)

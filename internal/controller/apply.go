package controller

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"

	"github.com/berthmaster/berthmaster/internal/prober"
	"github.com/berthmaster/berthmaster/internal/router"
)

// step is one act of a plan. Each is idempotent: a plan that stopped half-way is made anew.
type step struct {
	name string
	do   func(context.Context) error
}

// apply carries a plan out, step by step, and stops at the first that fails.
func (r *Reconciler) apply(ctx context.Context, w *world, p *plan, now time.Time) error {
	for _, s := range r.steps(w, p, now) {
		w.lines(ctx, p.term).Debug("step", "step", s.name)
		if err := s.do(ctx); err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
	}
	return nil
}

func (r *Reconciler) steps(w *world, p *plan, now time.Time) []step {
	switch p.course {
	case courseFollow:
		return []step{
			{"set the probes", func(context.Context) error { r.setProbes(w, p); return nil }},
			{"forget what nobody counts on", func(context.Context) error { w.tenure.settle(w.nobodys()); return nil }},
		}
	case courseResume:
		resume := step{"see the term stand", func(ctx context.Context) error { return r.assume(ctx, w) }}
		return append([]step{resume}, r.serving(w, p, now)...)
	case courseWait:
		return nil
	case courseLeave:
		return []step{{"leave the pool", func(ctx context.Context) error { r.leave(ctx, w); return nil }}}
	case courseFinish:
		return r.finishing(w, p, now)
	case courseYield:
		return []step{{"yield to a higher term", func(ctx context.Context) error { r.yield(ctx, w, now); return nil }}}
	case courseLead:
		return []step{
			{"hold the pool's end", func(ctx context.Context) error { return r.holdEnd(ctx, w, p) }},
			{"record facts", func(ctx context.Context) error { return r.recordFacts(ctx, w, p, now) }},
			{"begin the term", func(ctx context.Context) error { return r.begin(ctx, w, p, now) }},
			{"have probes begin anew", func(context.Context) error { r.probeAgain(w); return nil }},
			{"hand over the fleet, and what the probes know of it", func(context.Context) error { return r.handOver(w, p, now, w.health()...) }},
			{"tell what they have found", func(context.Context) error { r.tellFound(w, now); return nil }},
			{"set the probes", func(context.Context) error { r.setProbes(w, p); return nil }},
			{"tell the engines", func(ctx context.Context) error { r.tellEngines(ctx, w, p); return nil }},
			{"let the pool go", func(ctx context.Context) error { return r.letGo(ctx, w, p) }},
		}
	case courseServe:
		return r.serving(w, p, now)
	}
	return nil
}

// serving are the steps that keep the router in step.
func (r *Reconciler) serving(w *world, p *plan, now time.Time) []step {
	return []step{
		{"hold the pool's end", func(ctx context.Context) error { return r.holdEnd(ctx, w, p) }},
		{"record facts", func(ctx context.Context) error { return r.recordFacts(ctx, w, p, now) }},
		{"hand over the fleet", func(context.Context) error { return r.handOver(w, p, now) }},
		{"set the probes", func(context.Context) error { r.setProbes(w, p); return nil }},
		{"tell the engines", func(ctx context.Context) error { r.tellEngines(ctx, w, p); return nil }},
		{"let the pool go", func(ctx context.Context) error { return r.letGo(ctx, w, p) }},
	}
}

// assume lets the table grant for the rest of the reign in which the term was written or read. A
// term for which that comes too late is given up: another may have granted meanwhile, and what this
// table proves would be wrong.
func (r *Reconciler) assume(ctx context.Context, w *world) error {
	now := r.clock.Now()
	err := r.leadership.assume(w.tenure, w.reign, now)
	if err != nil && w.standing == standingNew {
		r.tenures.again(ctx, w.tenure, now)
	}
	return err
}

// health is what the probes have learnt before the router knew the backends.
func (w *world) health() []router.Observation {
	known := make([]router.Observation, 0, len(w.verdicts))
	for _, o := range w.verdicts {
		known = append(known, observationOf(o))
	}
	return known
}

// probeAgain has the probes of a follower begin anew once it leads, where they may be out of date. The
// router hears nothing of before: a session whose home looks well, but not its version, would leave it.
func (r *Reconciler) probeAgain(w *world) {
	if !w.doubtsVersions() {
		return
	}
	for life := range w.verdicts {
		key := prober.Key{Pool: string(w.pool.UID), Incarnation: life}
		// A target that is not there any more has nothing to be told.
		_ = r.prober.Pause(key)
		_ = r.prober.Resume(key)
	}
	w.verdicts = nil
}

// tellFound hands the router what such probes found before it knew the backends. Of one that read no
// version it hears at the next.
func (r *Reconciler) tellFound(w *world, now time.Time) {
	if !w.doubtsVersions() {
		return
	}
	for _, o := range r.prober.Latest(string(w.pool.UID)) {
		if o.VersionConfirmed {
			w.tenure.table.Observe(observationOf(o), now)
		}
	}
}

// leave forgets a pool that is not there any more.
func (r *Reconciler) leave(ctx context.Context, w *world) {
	if t := r.tenures.leave(w.key); t != nil {
		r.prober.Forget(string(t.uid))
		if w.leaving == nil || w.leaving.UID != t.uid {
			r.dismiss(t.uid)
		}
	}
	for _, other := range r.claims.withdraw(w.key) {
		r.wake(ctx, other)
	}
}

// dismiss ends what goes on for a pool beside its tenure.
func (r *Reconciler) dismiss(pool types.UID) {
	r.prober.Forget(string(pool))
	r.keyring.forget(pool)
	r.desk.drop(pool)
}

// yield stops granting for good: another process has written a higher term. What ran for the tenure
// ends with it: leases renewed with the other would look lost here, and be aborted.
func (r *Reconciler) yield(ctx context.Context, w *world, now time.Time) {
	if w.tenure.standing == standingDeposed {
		return
	}
	r.desk.drop(w.tenure.uid)
	if w.election == ElectionAwaited {
		r.tenures.again(ctx, w.tenure, now) // it follows from now on, with a table that knows nothing
		w.lines(ctx, w.term).Info("follows: the status has a higher term", "theirs", pastOf(w.pool).Term)
		return
	}
	w.tenure.standing = standingDeposed
	w.tenure.table.LeadUntil(now, now)
	w.tenure.end()
	r.prober.Forget(string(w.tenure.uid))
	w.lines(ctx, w.term).Warn("yielded: the status has a higher term", "theirs", pastOf(w.pool).Term)
}

// recordFacts writes what must be in the status before the next steps.
func (r *Reconciler) recordFacts(ctx context.Context, w *world, p *plan, now time.Time) error {
	status := withFacts(&w.pool.Status, p, now)
	if !w.setBack && equality.Semantic.DeepEqual(status, &w.pool.Status) {
		return nil
	}
	return r.writeStatus(ctx, w, status)
}

// begin lets the table grant under the term that is in the status now. It precedes the hand-over: the
// table must know how long earlier start windows last before it meets a backend.
func (r *Reconciler) begin(ctx context.Context, w *world, p *plan, now time.Time) error {
	if err := r.assume(ctx, w); err != nil {
		return err
	}
	t := w.tenure
	past := router.Takeover{Failure: pastFailure(w, now)}
	t.origin = originOf(w.pool)
	if t.origin == originTakenOver {
		past.Windows = seconds(pastOf(w.pool).StartSeconds)
	}
	t.table.Lead(router.Term(p.term), past, now)
	t.standing, t.term = standingLeads, p.term
	w.lines(ctx, p.term).Info("leads")
	return nil
}

// pastFailure is the failure that an earlier term left in the status; nil: none in this epoch.
// Of one that was wiped with the status only the epoch is left.
func pastFailure(w *world, now time.Time) *router.Failure {
	failure := w.pool.Status.Failure
	switch {
	case pastOf(w.pool).FailedEpoch < int64(epochOf(&w.pool.Spec)):
		return nil
	case failure == nil:
		return &router.Failure{Time: now}
	}
	return &router.Failure{
		Request: router.RequestID(failure.RequestID), Session: router.SessionID(failure.SessionID),
		Backend: router.BackendName(failure.Backend), Incarnation: router.Incarnation(failure.Incarnation),
		Time: failure.Time.Time,
	}
}

// handOver tells the router what has ended, what its fleet is now, and what is known of that.
func (r *Reconciler) handOver(w *world, p *plan, now time.Time, known ...router.Observation) error {
	w.tenure.proxies(w.pool.Spec.Proxy)
	table := w.tenure.table
	if len(p.introduced) > 0 {
		first := p.fleet
		first.Members = append(append([]router.Member(nil), p.fleet.Members...), p.introduced...)
		if err := table.Apply(first, now); err != nil {
			return err
		}
	}
	table.Gone(p.gone, now)
	if err := table.Apply(p.fleet, now, known...); err != nil {
		return err
	}
	for i := range p.berths {
		if b := &p.berths[i]; b.usable() && b.engineKey != "" {
			r.origins.serve(b.engineKey, w.pool.UID)
			r.origins.serve(engineAt(b.url), w.pool.UID) // by which a static endpoint knows it
		}
	}
	w.tenure.settle(w.ended)
	w.tenure.told = p.told()
	return nil
}

// setProbes has the backends of the fleet probed. It follows the hand-over, so that the router
// knows what it hears of. A pause is told to the prober before the engine is, so that no probe sent
// before it counts, and its end after the engine has answered. Who follows pauses nothing, and would not
// hear when the leader has: its probes go on.
func (r *Reconciler) setProbes(w *world, p *plan) {
	pool := string(w.pool.UID)
	r.prober.Set(pool, p.targets)
	var paused map[router.Incarnation]struct{}
	if p.course != courseFollow {
		paused = p.pausedLives()
	}
	for i := range p.targets {
		key := prober.Key{Pool: pool, Incarnation: p.targets[i].Incarnation}
		tell := r.prober.Resume
		if _, rests := paused[router.Incarnation(key.Incarnation)]; rests {
			tell = r.prober.Pause
		}
		// A target that is not there any more has nothing to be told.
		_ = tell(key)
	}
}

package controller

import (
	"context"
	"time"

	"github.com/berthmaster/berthmaster/api/v1alpha1"
	"github.com/berthmaster/berthmaster/internal/router"
	"github.com/berthmaster/berthmaster/internal/sglang"
)

// pausedLives are the incarnations whose engines this operator has paused, is about to, or has not
// been told yet that they go on, or whose weights it changes.
func (p *plan) pausedLives() map[router.Incarnation]struct{} {
	lives := map[router.Incarnation]struct{}{}
	for i := range p.berths {
		if b := &p.berths[i]; b.engine.bears() {
			lives[b.incarnation] = struct{}{}
		}
	}
	return lives
}

// tellEngines gives the plan's orders. It follows the hand-over, so that no lease is granted after an
// engine was told to pause, and the record of facts, so that whoever comes next knows that the pause is
// ours.
func (r *Reconciler) tellEngines(ctx context.Context, w *world, p *plan) {
	lines := w.lines(ctx, w.tenure.term)
	r.desk.outdate(w.pool.UID, p.weights.doubtful)
	known := map[router.Incarnation]struct{}{}
	for i := range p.berths {
		b := &p.berths[i]
		known[b.incarnation] = struct{}{}
		if b.engine.order.kind == orderNone {
			continue
		}
		base, err := sglang.ParseBaseURL(b.url)
		if err != nil {
			continue // an engine without an address was never told anything
		}
		r.desk.give(w.pool.UID, errand{
			incarnation: b.incarnation, url: base, keys: w.keys, order: b.engine.order,
			proven: r.proofOf(w.tenure.table, b.incarnation, b.engine.order),
			tells:  orderLines(lines, router.BackendName(b.name), b.incarnation, b.engine.order),
			ended:  func(ctx context.Context) { r.wake(ctx, w.key) },
		})
	}
	r.desk.forget(w.pool.UID, func(life router.Incarnation) bool { _, here := known[life]; return here })
}

// proofOf is what follows for the router from an order that was done: a pause that aborts is answered
// only once nothing is in flight. Of one that was given again that is not known to be so, since an
// engine that is paused already answers at once, with requests waiting in front of it.
func (r *Reconciler) proofOf(table *router.Table, life router.Incarnation, o order) func(time.Time) {
	if o.kind != orderPause && o.kind != orderRepause || o.mode != v1alpha1.PauseAbort || o.first != first {
		return nil
	}
	return func(begun time.Time) { table.PauseAborted(life, begun, r.clock.Now()) }
}

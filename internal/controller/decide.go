package controller

import (
	"time"

	"github.com/berthmaster/berthmaster/api/v1alpha1"
	"github.com/berthmaster/berthmaster/internal/prober"
	"github.com/berthmaster/berthmaster/internal/router"
)

// course is what a plan does with a pool as a whole.
type course int

const (
	// courseServe keeps the router in step.
	courseServe course = iota
	// courseLead raises the term first.
	courseLead
	// courseLeave forgets a pool that is not there any more.
	courseLeave
	// courseFinish does the same for a pool that is being deleted, and continues what it paused.
	courseFinish
	// courseYield stops granting, because a higher term has been written.
	courseYield
	// courseFollow keeps the probes warm for the day when this process leads.
	courseFollow
	// courseWait does nothing: authority has lapsed, and the term may yet stand when it is back.
	courseWait
	// courseResume is to serve on under a term that stood while authority was away.
	courseResume
)

// plan is all that a reconcile will do.
type plan struct {
	course course
	// term is the tenure's once the plan has been carried out.
	term int64
	// router is who leads then.
	router v1alpha1.RouterStatus
	// lives and startSeconds are facts of the status.
	lives        int64
	startSeconds int32
	// gone are lives known to have ended.
	gone []router.Incarnation
	// introduced are members that the router must have met, in this form, before fleet makes them
	// retired.
	introduced []router.Member
	fleet      router.Fleet
	targets    []prober.Target
	// berths are the backends, those that a drain names in vain, and the strays.
	berths []berth
	// weights is what is done about the pool's weights as a whole.
	weights weightsPlan
	// farewells are orders to the engines of a pool that is being deleted, and over is that it may go.
	farewells []farewell
	over      bool
	// deadline is when to look again although nothing happens. Zero: never.
	deadline time.Time
	// nodes says whether cordons are seen.
	nodes nodeSight
}

// decide makes the plan for a pool. It is a pure function of the world and the time, and reads no
// condition that this controller wrote.
func decide(w world, now time.Time) plan {
	if w.leaving != nil {
		return planFarewell(w, now)
	}
	if w.pool == nil {
		return plan{course: courseLeave}
	}
	past := pastOf(w.pool)
	p := plan{term: w.term, router: w.self, course: courseOf(w)}
	switch p.course {
	case courseYield, courseWait:
		return p
	case courseLead:
		p.term = past.Term + 1
		w.origin = originOf(w.pool)
		if w.doubtsVersions() {
			w.verdicts = nil
		}
	case courseServe, courseFollow, courseResume, courseLeave, courseFinish:
	}
	p.startSeconds = max(past.StartSeconds, startSecondsOf(&w.pool.Spec))
	sightings := w.pods
	var endpoints []sighting
	endpoints, p.lives = sightEndpoints(w.pool, past.Lives, w.admits)
	sightings = append(sightings, endpoints...)
	p.planBerths(w, sightings, now)
	p.planGone(w)
	p.planEngines(w, now)
	p.planFleet(w)
	p.planDeadline(w.rereadAt, now)
	if p.nodes = w.nodes; p.nodes == nodesAwaited {
		p.deadline = earlier(p.deadline, now.Add(nodesPause))
	}
	return p
}

// courseOf is what is to be done with a pool as a whole.
func courseOf(w world) course {
	fresh, leads := w.standing == standingNew, w.authority == authorityHeld
	switch {
	case w.standing == standingDeposed, !fresh && pastOf(w.pool).Term > w.term:
		return courseYield
	case fresh && leads:
		return courseLead
	case fresh:
		return courseFollow
	case !leads:
		return courseWait
	case w.reign != w.seenIn:
		return courseResume
	default:
		return courseServe
	}
}

// doubtsVersions reports whether what was read before a term began may be older than what the leader
// before did to the weights: only a change from disk makes an engine that served serve others.
func (w *world) doubtsVersions() bool {
	return w.pool.Spec.Weights != nil && w.pool.Spec.Weights.Source == v1alpha1.WeightsDisk
}

// originOf says whether an earlier term granted leases of the pool.
func originOf(pool *v1alpha1.InferencePool) origin {
	if pastOf(pool).Term == 0 {
		return originFirst
	}
	return originTakenOver
}

// planGone lists the lives that are known to have ended.
func (p *plan) planGone(w world) {
	for life := range w.ended {
		p.gone = append(p.gone, life)
	}
	for _, s := range w.strays {
		if s.fate == fateEnded {
			p.gone = append(p.gone, s.incarnation)
		}
	}
	for _, life := range w.pool.Spec.ConfirmedGone {
		p.gone = append(p.gone, router.Incarnation(life))
	}
}

// planDeadline finds when to look again: at the next drain that will be late, or for keys that may have
// been rotated.
func (p *plan) planDeadline(reread, now time.Time) {
	if p.deadline.IsZero() || !reread.IsZero() && reread.Before(p.deadline) {
		p.deadline = reread
	}
	for i := range p.berths {
		p.lookAgain(p.berths[i].drain.deadline, now)
	}
}

// earlier is the earlier of two times, of which a may be zero: never.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || b.Before(a) {
		return b
	}
	return a
}

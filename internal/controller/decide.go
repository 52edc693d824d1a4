package controller

import (
	"slices"
	"time"

	"github.com/berthmaster/berthmaster/api/v1alpha1"
	"github.com/berthmaster/berthmaster/internal/prober"
	"github.com/berthmaster/berthmaster/internal/rollout"
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

// place is what a berth is to the pool.
type place int

const (
	// placeMember is a backend that the spec selects.
	placeMember place = iota
	// placeStray is an incarnation that the world does not show as a backend any more.
	placeStray
	// placeNobody is a name in spec.drain that no backend has.
	placeNobody
)

// berth is one line of the plan, and of the status.
type berth struct {
	sighting
	place    place
	drain    drain
	isolated time.Time // when the status says that it was isolated; zero: it does not
	load     router.Load
	engine   engineWork
	// forgotten: the router counts nothing on this stray and need not meet it again.
	forgotten bool
	// declared is a fact: the version for which the trainer's word stands.
	declared rollout.Version
	// interrupted: it is a static endpoint that was out of reach, or that nobody watched. Another process
	// may stand behind it by now.
	interrupted bool
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

// planBerths joins what is seen, what is asked and what the status remembers.
func (p *plan) planBerths(w world, sightings []sighting, now time.Time) {
	drains := drainsByName(&w.pool.Spec)
	ended := confirmedGone(&w.pool.Spec)
	for life := range w.ended {
		ended[life] = struct{}{}
	}
	taken := map[string]struct{}{}
	for _, s := range sightings {
		if _, over := ended[s.incarnation]; over {
			s.process = processEnded
		}
		contest(&s, w.lost, taken)
		if s.process == processEnded {
			s.ends()
		}
		p.addBerth(w, berth{sighting: s, place: placeMember, load: loadOf(w, s, ended)}, drains[s.name], now)
	}
	known := ended
	for i := range p.berths {
		known[p.berths[i].incarnation] = struct{}{}
	}
	p.planStrays(w, known, drains, now)
	for i := range w.pool.Spec.Drain {
		if asked := &w.pool.Spec.Drain[i]; !p.names(asked.Backend) {
			p.addBerth(w, berth{sighting: sighting{name: asked.Backend}, place: placeNobody}, asked, now)
		}
	}
}

// contest leaves an engine to the older pool that claims it, or to the backend of this pool that came
// first under another name for it.
func contest(s *sighting, lost, taken map[string]struct{}) {
	engine := engineAt(s.url)
	if engine == "" || s.process != processLives {
		return
	}
	_, older := lost[engine]
	_, twice := taken[engine]
	taken[engine] = struct{}{}
	if older || twice {
		s.unusable, s.message = v1alpha1.ReasonBackendConflict, "the engine belongs to an older pool, or to another backend of this one"
	}
}

// usable reports whether the router is told of the berth as a member. A backend that is contested is
// none, so that it is met anew, with what may run there unknown, when it is won.
func (b *berth) usable() bool {
	return b.place == placeMember && b.incarnation != "" && b.process == processLives && b.unusable != v1alpha1.ReasonBackendConflict
}

// planStrays adds the strays of which nothing better is known: not that they have ended, nor that
// they are members.
func (p *plan) planStrays(w world, known map[router.Incarnation]struct{}, drains map[string]*v1alpha1.DrainSpec, now time.Time) {
	for _, s := range w.strays {
		if _, better := known[s.incarnation]; better || s.fate == fateEnded {
			continue
		}
		p.addBerth(w, strayBerth(s, p.names(s.name)), drains[s.name], now)
	}
}

// names reports whether a backend of that name is in the plan.
func (p *plan) names(name string) bool {
	return slices.ContainsFunc(p.berths, func(b berth) bool { return b.name == name })
}

// addBerth completes a berth with its drain and its isolation.
func (p *plan) addBerth(w world, b berth, asked *v1alpha1.DrainSpec, now time.Time) {
	entries := w.pool.Status.Backends
	began := drainStart(entries, b.name, string(b.incarnation), asked)
	own, unasked := b.sighting.drain, began
	if asked != nil {
		unasked = time.Time{} // that a drain of the spec began says nothing of the node
	}
	if own.reason == "" {
		own = cordonCause(&w, &b.sighting, unasked)
	}
	b.drain = planDrain(own, asked, began, now)
	b.interrupted = b.isEndpoint() && w.lostSight(b.incarnation)
	for i := range entries {
		if entries[i].IsolationStartTime != nil && entries[i].Incarnation == string(b.incarnation) {
			b.isolated = entries[i].IsolationStartTime.Time
		}
	}
	p.berths = append(p.berths, b)
}

// lostSight reports whether the process behind an endpoint may have been replaced since the last look: it
// does not answer, or an earlier term watched it. One that is paused answers.
func (w *world) lostSight(life router.Incarnation) bool {
	switch w.verdicts[string(life)].Verdict {
	case prober.Refused, prober.Unhealthy:
		return true
	case prober.Unknown:
		return w.standing == standingNew && w.origin == originTakenOver
	case prober.Healthy, prober.SuspectedPaused:
	}
	return false
}

// strayBerth says what became of a stray, and of its address: behind that of a missing pod another
// engine may answer by now.
func strayBerth(s stray, replaced bool) berth {
	b := berth{place: placeStray, load: router.LoadUnknown, forgotten: s.forgotten}
	b.sighting = sighting{name: s.name, incarnation: s.incarnation, url: s.url, process: processLives}
	switch {
	case s.fate == fateMissing:
		b.url, b.unusable = "", v1alpha1.ReasonPodMissing
		b.message = "the pod is gone and nothing was heard of its container's end; if it has ended, name the incarnation in spec.confirmedGone"
	case replaced:
		b.unusable, b.message = v1alpha1.ReasonReplaced, "a later incarnation has taken its place"
	default:
		b.unusable, b.message = v1alpha1.ReasonNotSelected, "the spec does not select it any more"
	}
	return b
}

// loadOf says whether executions that this tenure did not grant may run on a backend that the
// router meets. ended are lives that are known to be over.
func loadOf(w world, s sighting, ended map[router.Incarnation]struct{}) router.Load {
	switch {
	case w.sharesEngine(&s, ended):
		return router.LoadUnknown
	case s.engineKey != "" && w.servedOther(s.engineKey):
		return router.LoadUnknown
	case w.origin == originFirst:
		return router.LoadNone
	case w.standing == standingNew || w.old(s.incarnation):
		return router.LoadUnknown
	default:
		return router.LoadNone
	}
}

// sharesEngine reports whether the engine that a backend stands for was met under another name, or in
// another life of an endpoint: what was granted there runs here. A pod's engine is the pod's alone.
func (w *world) sharesEngine(s *sighting, ended map[router.Incarnation]struct{}) bool {
	_, isPod := podOf(s.incarnation)
	return slices.ContainsFunc(w.strays, func(other stray) bool {
		_, over := ended[other.incarnation]
		if _, otherPod := podOf(other.incarnation); isPod && otherPod || over || other.forgotten || other.fate == fateEnded || other.incarnation == s.incarnation {
			return false
		}
		return s.url != "" && engineAt(other.url) == engineAt(s.url)
	})
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

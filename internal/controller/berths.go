package controller

import (
	"slices"
	"time"

	"github.com/berthmaster/berthmaster/api/v1alpha1"
	"github.com/berthmaster/berthmaster/internal/prober"
	"github.com/berthmaster/berthmaster/internal/rollout"
	"github.com/berthmaster/berthmaster/internal/router"
)

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

// pausable reports whether the berth's engine is one that spec.engineMode speaks of: a member's, until its pod is deleted.
func (b *berth) pausable() bool {
	return b.usable() && b.sighting.drain.reason != v1alpha1.ReasonPodDeleted
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

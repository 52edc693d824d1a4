package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/berthmaster/berthmaster/internal/router"
)

// weather is what happens to the backends of a site while clients use it.
type weather struct {
	site   *site
	chance *rand.Rand
	lives  int
	clock  float64
}

// run brings a change every so often, and tends the engines, until ctx is done; then everything
// gets well.
func (w *weather) run(ctx context.Context, every time.Duration) error {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return w.clear()
		case <-tick.C:
			if err := w.change(); err != nil {
				return err
			}
			w.tend()
		}
	}
}

func (w *weather) tend() {
	w.clock++
	w.site.tend(w.clock)
}

// change is one piece of bad luck, or of repair.
func (w *weather) change() error {
	i := w.chance.IntN(len(w.site.fleet.Members))
	w.site.fleet.Members = slices.Clone(w.site.fleet.Members)
	m := &w.site.fleet.Members[i]
	switch w.chance.IntN(12) {
	case 0, 1:
		w.site.observe(m.Incarnation, choice(w.chance, router.Unhealthy, router.Refused, router.SuspectedPaused))
		return nil
	case 2:
		w.site.table.ConnectionRefused(m.Incarnation, time.Now())
		return nil
	case 3:
		m.Drain = choice(w.chance, router.DrainMove, router.DrainKeep, router.DrainAbort)
	case 4:
		w.replace(m)
	case 5:
		m.Engine = router.EnginePaused
	default:
		m.Drain, m.Engine = router.NotDraining, router.EngineRunning
		w.site.observe(m.Incarnation, router.Healthy)
	}
	return w.site.apply()
}

// replace ends an engine process; another of the same name takes its place.
func (w *weather) replace(m *router.Member) {
	ended := m.Incarnation
	w.lives++
	m.Incarnation = router.Incarnation(fmt.Sprint(m.Name, "/later-", w.lives))
	m.Drain, m.Engine = router.NotDraining, router.EngineRunning
	if err := w.site.apply(); err != nil {
		panic(err) // the fleet was taken a moment ago, and only this name is new
	}
	w.site.table.Gone([]router.Incarnation{ended}, time.Now())
	delete(w.site.seqs, ended)
	w.site.observe(m.Incarnation, router.Healthy)
}

func choice[T any](chance *rand.Rand, from ...T) T { return from[chance.IntN(len(from))] }

// clear makes every backend run, drained so that whatever is held has to be proven gone.
func (w *weather) clear() error {
	w.site.fleet.Members = slices.Clone(w.site.fleet.Members)
	for i := range w.site.fleet.Members {
		m := &w.site.fleet.Members[i]
		m.Drain, m.Engine = router.DrainMove, router.EngineRunning
		w.site.observe(m.Incarnation, router.Healthy)
	}
	return w.site.apply()
}

package rollout_test

import (
	"fmt"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/berthmaster/berthmaster/internal/rollout"
)

const (
	older rollout.Version = "v1"
	newer rollout.Version = "v2"
	alien rollout.Version = "default"
)

var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

// everyAsk is every combination of what can be asked that decides differently.
func everyAsk(yield func(rollout.Ask) bool) {
	for _, published := range []rollout.Version{"", older, newer} {
		for _, way := range ways() {
			for _, failure := range []rollout.OnFailure{rollout.Hold, rollout.Proceed} {
				for _, deadline := range []time.Duration{0, time.Minute} {
					for _, told := range []rollout.Leases{rollout.LeasesOpen, rollout.LeasesStopped} {
						ask := way
						ask.Published, ask.OnFailure, ask.Deadline, ask.Told = published, failure, deadline, told
						ask.Target, ask.Start, ask.PublishedAt = newer, noon.Add(-time.Minute), noon.Add(-time.Second)
						ask.MaxUnavailable, ask.MinReadyPercent, ask.PinDeadline = 1, 50, 2*time.Minute
						if !yield(ask) {
							return
						}
					}
				}
			}
		}
	}
}

// ways are the strategies with their variants.
func ways() []rollout.Ask {
	out := []rollout.Ask{
		{Source: rollout.External, Verification: rollout.VerifyEngine, Stamping: rollout.StampEnabled},
		{Source: rollout.External, Verification: rollout.VerifyDeclared},
		{Source: rollout.Disk, Strategy: rollout.Rolling},
		{Source: rollout.Disk, Strategy: rollout.InPlace},
		{Source: rollout.Disk, Strategy: rollout.AllAtOnce, Clearing: rollout.ClearAbort, Engines: rollout.EnginesPaused},
	}
	for _, clearing := range []rollout.Clearing{rollout.ClearDrain, rollout.ClearAbort, rollout.ClearRetract, rollout.ClearFreeze} {
		out = append(out, rollout.Ask{Source: rollout.Disk, Strategy: rollout.AllAtOnce, Clearing: clearing})
	}
	return out
}

// everyBackend is every state of one backend.
func everyBackend(yield func(rollout.Backend) bool) {
	failures := []rollout.Failure{
		{}, {Version: newer, Count: 1, RetryAt: noon.Add(time.Second), Message: "no"}, {Version: newer, Count: 1, RetryAt: noon},
	}
	reports := []rollout.Report{
		{}, {Version: older, Freshness: rollout.Fresh}, {Version: newer, Freshness: rollout.Fresh},
		{Version: alien, Freshness: rollout.Fresh, At: noon},
	}
	pauses := []rollout.Backend{
		{Pause: rollout.NotPaused}, {Pause: rollout.PauseBegun, PausedHow: rollout.PauseAbort}, {Pause: rollout.PausedByOthers},
		{Pause: rollout.PausedByUs, PausedHow: rollout.PauseAbort, PausedAt: noon},
		{Pause: rollout.PausedByUs, PausedHow: rollout.PauseAbort, PausedAt: noon.Add(-time.Hour)},
		{Pause: rollout.PausedByUs, PausedHow: rollout.PauseInPlace},
	}
	for _, b := range pauses {
		for _, b.Report = range reports {
			for _, b.Failure = range failures {
				for _, b.Begun = range []rollout.Version{"", newer} {
					if !everyUse(b, yield) {
						return
					}
				}
			}
		}
	}
}

// everyUse varies what runs on a backend, what it is asked and whether it is there.
func everyUse(b rollout.Backend, yield func(rollout.Backend) bool) bool {
	b.Name, b.Incarnation = "a", "a/1"
	calls := []rollout.StepKind{rollout.NoStep, rollout.StepUpdate}
	for _, b.Door = range []rollout.Door{rollout.DoorOpen, rollout.DoorClosed, rollout.DoorShut} {
		for _, use := range []rollout.Backend{{}, {Counted: 1}, {Load: rollout.LoadUnknown}, {Pinned: 1}} {
			b.Counted, b.Load, b.Pinned = use.Counted, use.Load, use.Pinned
			for _, b.Call = range calls {
				for _, b.Declared = range []rollout.Version{"", newer} {
					for _, b.Contact = range []rollout.Contact{rollout.Reachable, rollout.Unreachable} {
						if !yield(b) {
							return false
						}
					}
				}
			}
		}
	}
	return true
}

func TestPlanKeepsItsLawsInEveryStateOfOneBackend(t *testing.T) {
	var states []rollout.Backend
	everyBackend(func(b rollout.Backend) bool { states = append(states, b); return true })
	plans := 0
	for ask := range everyAsk {
		for i := range states {
			if states[i].Declared != "" && ask.Source == rollout.Disk {
				continue // nobody looks at it
			}
			check(t, ask, states[i:i+1])
			plans++
		}
	}
	t.Logf("%d states of one backend, %d plans", len(states), plans)
}

// kinds are states of a backend that differ in what they mean to the others of its pool.
func kinds() []rollout.Backend {
	fresh := func(v rollout.Version) rollout.Report { return rollout.Report{Version: v, Freshness: rollout.Fresh} }
	return []rollout.Backend{
		{Contact: rollout.Reachable, Report: fresh(older), Door: rollout.DoorOpen, Counted: 2},
		{Contact: rollout.Reachable, Report: fresh(older), Door: rollout.DoorOpen},
		{Contact: rollout.Reachable, Report: fresh(older), Door: rollout.DoorOpen, Counted: 1, Pinned: 1},
		{Contact: rollout.Reachable, Report: fresh(older), Door: rollout.DoorShut, Counted: 1, Told: rollout.DrainMove},
		{Contact: rollout.Reachable, Report: fresh(older), Door: rollout.DoorShut, Told: rollout.DrainMove},
		{Contact: rollout.Reachable, Report: fresh(older), Door: rollout.DoorShut, Pause: rollout.PausedByUs, PausedHow: rollout.PauseAbort},
		{Contact: rollout.Reachable, Report: rollout.Report{Version: older}, Door: rollout.DoorShut, Call: rollout.StepUpdate, Begun: newer},
		{Contact: rollout.Reachable, Report: rollout.Report{Version: older}, Door: rollout.DoorShut},
		{Contact: rollout.Reachable, Report: fresh(newer), Door: rollout.DoorOpen, Counted: 1, Declared: newer},
		{Contact: rollout.Reachable, Report: fresh(newer), Door: rollout.DoorClosed},
		{Contact: rollout.Reachable, Report: fresh(newer), Door: rollout.DoorShut, Pause: rollout.PausedByUs, PausedHow: rollout.PauseAbort},
		{Contact: rollout.Reachable, Report: fresh(alien), Door: rollout.DoorClosed, Declared: newer},
		{Contact: rollout.Reachable, Report: fresh(older), Door: rollout.DoorShut, Failure: rollout.Failure{Version: newer, Count: 2, RetryAt: noon.Add(time.Second)}},
		{Contact: rollout.Unreachable, Report: rollout.Report{Version: older}, Counted: 1},
		{Contact: rollout.Reachable, Report: fresh(older), Door: rollout.DoorClosed, Pause: rollout.PausedByOthers},
		{Contact: rollout.Reachable, Report: fresh(older), Door: rollout.DoorShut, Station: rollout.OutOfService, Counted: 1},
	}
}

func TestPlanKeepsItsLawsInEveryPoolOfUpToFourBackends(t *testing.T) {
	all := kinds()
	plans := 0
	for ask := range everyAsk {
		for size := range 5 {
			everyPool(all, size, func(pool []rollout.Backend) {
				check(t, ask, pool)
				plans++
			})
		}
	}
	t.Logf("%d kinds of backends, %d plans", len(all), plans)
}

// everyPool calls visit with every choice of size kinds, repetitions included.
func everyPool(all []rollout.Backend, size int, visit func([]rollout.Backend)) {
	pool := make([]rollout.Backend, size)
	var fill func(place, from int)
	fill = func(place, from int) {
		if place == size {
			visit(pool)
			return
		}
		for k := from; k < len(all); k++ {
			pool[place] = all[k]
			pool[place].Name = string(rune('a' + place))
			fill(place+1, k)
		}
	}
	fill(0, 0)
}

func check(t *testing.T, ask rollout.Ask, all []rollout.Backend) {
	t.Helper()
	c := plannedCase{ask: ask, all: all, now: noon, plan: rollout.Decide(ask, all, noon)}
	if err := c.broken(); err != nil {
		t.Fatalf("%v\nask:  %+v\npool: %+v\nplan: %+v", err, ask, all, c.plan)
	}
}

func TestPlanIsAFunctionOfWhatItIsGiven(t *testing.T) {
	for ask := range everyAsk {
		pool := kinds()
		for i := range pool {
			pool[i].Name = fmt.Sprintf("b%02d", i)
		}
		given := slices.Clone(pool)
		first := rollout.Decide(ask, pool, noon)
		if second := rollout.Decide(ask, pool, noon); !reflect.DeepEqual(first, second) {
			t.Fatalf("two plans differ for %+v:\n%+v\n%+v", ask, first, second)
		}
		if !reflect.DeepEqual(pool, given) {
			t.Fatalf("the plan changed what it was given: %+v", pool)
		}
	}
}

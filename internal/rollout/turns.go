package rollout

import (
	"cmp"
	"slices"
)

// takeTurns chooses which of the backends that serve Rolling takes now: as many as maxUnavailable
// leaves beside those that are out of service already. One that fails, or cannot be spoken to, stays
// in the reckoning unless Proceed can do without it: weights that engines cannot load, or that kill
// them, must not go through a whole pool.
func (v *view) takeTurns() {
	if v.other == "" {
		return
	}
	var serving []int
	asked, out, lost := 0, 0, 0
	for i := range v.all {
		b := &v.all[i]
		if b.Station == OutOfService {
			continue
		}
		asked++
		switch {
		case v.lost(b):
			lost++
		case v.serves(b):
			serving = append(serving, i)
		case !v.on(b, v.goal) || b.Door != DoorOpen:
			out++
		}
	}
	places := max(1, v.ask.MaxUnavailable) - out - max(0, lost-(asked-v.needed(asked)))
	slices.SortFunc(serving, func(i, k int) int { return v.compareTurns(&v.all[i], &v.all[k]) })
	for _, i := range serving[:max(0, min(places, len(serving)))] {
		v.turn[i] = true
	}
}

// serves reports whether a backend serves on the version that the pool leaves.
func (v *view) serves(b *Backend) bool {
	return v.on(b, v.other) && !v.lost(b) && b.Call == NoStep && b.Pause == NotPaused && b.Station == InService
}

// compareTurns: what has been begun goes on, then what no session pins, then what is soonest empty.
func (v *view) compareTurns(a, b *Backend) int {
	return cmp.Or(
		cmp.Compare(rank(a.Told == NotDraining), rank(b.Told == NotDraining)),
		cmp.Compare(rank(a.Pinned > 0), rank(b.Pinned > 0)),
		cmp.Compare(a.Counted, b.Counted),
		cmp.Compare(a.Name, b.Name),
		cmp.Compare(a.Incarnation, b.Incarnation))
}

func rank(last bool) int {
	if last {
		return 1
	}
	return 0
}

package rollouts

import (
	"maps"
	"slices"
	"time"

	"github.com/berthmaster/berthmaster/test/local"
)

// Span is a time in which a backend's state and version stayed what they were, by the status.
type Span struct {
	From, To time.Time
	State    string
	Version  string
}

// Lane is one backend's spans, in order and without gaps.
type Lane struct {
	Backend string
	Spans   []Span
}

// Timeline is what a pool's backends did between two moments.
type Timeline struct {
	From, To time.Time
	Lanes    []Lane
	// Marks are the changes that were asked for.
	Marks []Done
	// Starts are when an execution began, on whatever backend.
	Starts []time.Time
}

// slices divides the timeline into n parts and counts the starts in each.
func (t Timeline) slices(n int) []int {
	counts := make([]int, n)
	for _, at := range t.Starts {
		i := int(int64(n) * int64(at.Sub(t.From)) / int64(t.To.Sub(t.From)))
		if i >= 0 && i < n {
			counts[i]++
		}
	}
	return counts
}

// Read makes a timeline of what was heard of a pool. The state that a backend was in before the first
// moment reaches into it.
func Read(heard []local.Seen, from, to time.Time, marks []Done) Timeline {
	lanes := map[string][]Span{}
	for _, seen := range heard {
		at := seen.At
		if at.After(to) {
			break
		}
		if at.Before(from) {
			at = from
		}
		for i := range seen.Pool.Status.Backends {
			b := &seen.Pool.Status.Backends[i]
			lanes[b.Name] = enter(lanes[b.Name], Span{at, to, string(b.State), b.WeightVersion})
		}
	}
	out := Timeline{From: from, To: to, Marks: marks}
	for _, name := range slices.Sorted(maps.Keys(lanes)) {
		out.Lanes = append(out.Lanes, Lane{name, lanes[name]})
	}
	return out
}

// enter ends the last span where the next begins, unless nothing has changed.
func enter(spans []Span, next Span) []Span {
	if len(spans) == 0 {
		return append(spans, next)
	}
	last := &spans[len(spans)-1]
	switch {
	case last.State == next.State && last.Version == next.Version:
		return spans
	case !next.From.After(last.From):
		*last = next // both are from before the first moment
		return spans
	}
	last.To = next.From
	return append(spans, next)
}

// at is the span of a lane at a moment.
func (l Lane) at(moment time.Time) Span {
	i, found := slices.BinarySearchFunc(l.Spans, moment, func(s Span, t time.Time) int { return s.From.Compare(t) })
	if !found {
		i--
	}
	if i < 0 {
		return Span{}
	}
	return l.Spans[i]
}

// Longest is the longest time between two of the moments, of those that overlap from and to, and when
// it began.
func Longest(moments []time.Time, from, to time.Time) (gap time.Duration, begun time.Time) {
	moments = slices.Clone(moments)
	slices.SortFunc(moments, func(a, b time.Time) int { return a.Compare(b) })
	for i := 1; i < len(moments); i++ {
		if moments[i].Before(from) || moments[i-1].After(to) {
			continue
		}
		if d := moments[i].Sub(moments[i-1]); d > gap {
			gap, begun = d, moments[i-1]
		}
	}
	return gap, begun
}

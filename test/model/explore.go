package model

import (
	"fmt"
	"hash/maphash"
	"slices"
)

// Step is something that can happen in a state, and the state after it.
type Step[S comparable] struct {
	// Format and Of are what happens, as for fmt.Sprintf: few of the names are ever read.
	Format string
	Of     []any
	To     S
	// Broken is the property that the step itself breaks; empty: none.
	Broken string
}

// World is what can happen and what must hold.
type World[S comparable] struct {
	// Steps lists what can happen in a state.
	Steps func(S) []Step[S]
	// Check names a property that a state breaks, or nothing.
	Check func(S) string
	// Key gives states one number that differ only in what their parts are called; nil: no two
	// states are alike.
	Key func(maphash.Seed, S) uint64
}

// Found is what an exploration came to.
type Found struct {
	// States is how many different states were reached.
	States int
	// Broken is the first property found broken; empty: none is, in any state.
	Broken string
	// Trace is a shortest way there, one step a line.
	Trace []string
}

// String tells the way to what is broken.
func (f Found) String() string {
	out := fmt.Sprintf("%d states; broken: %q", f.States, f.Broken)
	for _, step := range f.Trace {
		out += "\n\t" + step
	}
	return out
}

// origin says how a state was first reached.
type origin struct {
	from   int
	format string
	of     []any
}

// Explore visits every state that can be reached from first, nearest first, and stops at the first
// broken property. States are known again by a hash of 64 bits: that two of ten million share one
// has a chance of less than one in eighty thousand, and another one in the next run.
func Explore[S comparable](first S, w World[S]) Found {
	seed := maphash.MakeSeed()
	if w.Key == nil {
		w.Key = maphash.Comparable[S]
	}
	seen := newHashes()
	seen.add(w.Key(seed, first))
	states, origins := []S{first}, []origin{{from: -1}}
	for at := 0; at < len(states); at++ {
		if broken := w.Check(states[at]); broken != "" {
			return Found{States: seen.n, Broken: broken, Trace: trace(origins, at)}
		}
		for _, step := range w.Steps(states[at]) {
			if step.Broken != "" {
				last := append(origins, origin{at, step.Format, step.Of})
				return Found{States: seen.n, Broken: step.Broken, Trace: trace(last, len(last)-1)}
			}
			if seen.add(w.Key(seed, step.To)) {
				states, origins = append(states, step.To), append(origins, origin{at, step.Format, step.Of})
			}
		}
	}
	return Found{States: seen.n}
}

func trace(origins []origin, at int) []string {
	var names []string
	for ; origins[at].from >= 0; at = origins[at].from {
		names = append(names, fmt.Sprintf(origins[at].format, origins[at].of...))
	}
	slices.Reverse(names)
	return names
}

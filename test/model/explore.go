package model

import (
	"fmt"
	"slices"
)

// Step is something that can happen in a state, and the state after it.
type Step[S comparable] struct {
	Name string
	To   S
	// Broken is the property that the step itself breaks; empty: none.
	Broken string
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
	from int
	step string
}

// Explore visits every state that can be reached from first, nearest first, and stops at the
// first broken property. steps lists what can happen; check names a property that a state
// breaks, or nothing.
func Explore[S comparable](first S, steps func(S) []Step[S], check func(S) string) Found {
	seen := map[S]struct{}{first: {}}
	states, origins := []S{first}, []origin{{from: -1}}
	for at := 0; at < len(states); at++ {
		if broken := check(states[at]); broken != "" {
			return Found{States: len(seen), Broken: broken, Trace: trace(origins, at, "")}
		}
		for _, step := range steps(states[at]) {
			if step.Broken != "" {
				return Found{States: len(seen), Broken: step.Broken, Trace: trace(origins, at, step.Name)}
			}
			if _, known := seen[step.To]; known {
				continue
			}
			seen[step.To] = struct{}{}
			states, origins = append(states, step.To), append(origins, origin{at, step.Name})
		}
	}
	return Found{States: len(seen)}
}

func trace(origins []origin, at int, last string) []string {
	var names []string
	if last != "" {
		names = append(names, last)
	}
	for ; origins[at].from >= 0; at = origins[at].from {
		names = append(names, origins[at].step)
	}
	slices.Reverse(names)
	return names
}

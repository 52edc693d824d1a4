package fakepool

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/berthmaster/berthmaster/clients/conformance"
)

// Judge says what the client did wrong, given its report of each step; nothing if it passed.
func (p *Pool) Judge(reports []conformance.Report) ([]string, error) {
	if len(reports) != len(p.scenario.Do) {
		return nil, fmt.Errorf("%d reports of %d steps", len(reports), len(p.scenario.Do))
	}
	var out []string
	for i, step := range p.scenario.Do {
		differences, err := step.Differences(reports[i])
		if err != nil {
			return nil, err
		}
		for _, d := range differences {
			out = append(out, fmt.Sprintf("step %d, %s: %s", i+1, step.Call, d))
		}
	}
	words := p.settled()
	out = append(out, counts(p.scenario.Wire.Count, words)...)
	out = append(out, order(p.scenario.Wire.Order, words)...)
	out = append(out, p.apart(p.scenario.Wire.Apart)...)
	out = append(out, p.seen.bodies(p.scenario.Wire.Bodies)...)
	out = append(out, p.seen.headers(p.scenario.Wire.Headers)...)
	out = append(out, p.seen.laws()...)
	return out, nil
}

// grace is how long what was demanded may take to be noticed. An engine sees a closed connection a
// little after the client has gone on.
const grace = 10 * time.Second

// settled is the trace once it shows the least that the scenario demands, or will not.
func (p *Pool) settled() []string {
	ctx, cancel := context.WithTimeout(p.life, grace)
	defer cancel()
	for word, bounds := range p.scenario.Wire.Count {
		if bounds[0] > 0 {
			_ = p.trace.await(ctx, fmt.Sprintf("%s*%d", word, bounds[0])) // what is missing is judged next
		}
	}
	return p.Trace()
}

func counts(demanded map[string][2]int, words []string) []string {
	var out []string
	for word, bounds := range demanded {
		if n := count(words, word); n < bounds[0] || bounds[1] >= 0 && n > bounds[1] {
			out = append(out, fmt.Sprintf("%d of %s, demanded are %v; seen: %v", n, word, bounds, words))
		}
	}
	slices.Sort(out)
	return out
}

func order(demanded, words []string) []string {
	left := demanded
	for _, w := range words {
		if len(left) > 0 && is(w, left[0]) {
			left = left[1:]
		}
	}
	if len(left) == 0 {
		return nil
	}
	return []string{fmt.Sprintf("in vain: %s, in the order %v; seen: %v", left[0], demanded, words)}
}

// apart looks for calls that came too soon. There is no upper bound, since machines may be slow.
func (p *Pool) apart(demanded map[string]float64) []string {
	var out []string
	for word, seconds := range demanded {
		if gap, ok := p.trace.gap(word); !ok || gap.Seconds() < seconds {
			out = append(out, fmt.Sprintf("the first two of %s are %v apart, demanded are %g s", word, gap, seconds))
		}
	}
	slices.Sort(out)
	return out
}

// headers compares the first call of a kind.
func (r *record) headers(demanded map[string]map[string]string) []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var out []string
	for kind, wanted := range demanded {
		for name, want := range wanted {
			if got := r.heads[kind].Get(name); got != want {
				out = append(out, fmt.Sprintf("%s had %s %q, demanded is %q", kind, name, got, want))
			}
		}
	}
	slices.Sort(out)
	return out
}

// bodies compares the first call of a kind. A member that must be absent is demanded as null.
func (r *record) bodies(demanded map[string]map[string]any) []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var out []string
	for kind, members := range demanded {
		for name, want := range members {
			if got := r.first[kind][name]; text(got) != text(want) {
				out = append(out, fmt.Sprintf("%s had %s %s, demanded is %s", kind, name, text(got), text(want)))
			}
		}
	}
	slices.Sort(out)
	return out
}

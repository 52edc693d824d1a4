package workload

import (
	"fmt"
	"time"
)

// Limits keeps the bundled workload as small as a demo needs it.
type Limits struct {
	// Sessions is the number of sessions, at least 1.
	Sessions int
	// Every is the mean time between two arrivals. 0: all at once.
	Every time.Duration
	// Turns is the most turns of one session; longer ones are cut. 0: not limited.
	Turns int
	// Output is the most tokens of one turn. 0: the 8,192 of the shape itself.
	Output int
}

// Bundled is the shape of the demo's workload: software-engineering agents. Published are
// the turns per session (5, 29, 56, 85 and 99 at minimum, median, 90th and 99th percentile
// and maximum) and two points of the tool gaps (86.5 % up to one second, 95.1 % up to ten).
// Our assumptions are the token counts, which are heavy-tailed, and the longest tool gap of
// two minutes.
func Bundled() Shape {
	return Shape{
		Tasks: 1, Samples: 1,
		Turns:        Quantiles{{0, 5}, {0.5, 29}, {0.9, 56}, {0.99, 85}, {1, 99}},
		ToolGaps:     AgentToolGaps(),
		Opening:      LogNormal{Median: 3000, Sigma: 0.6, Min: 200, Max: 16000},
		Result:       LogNormal{Median: 250, Sigma: 1.1, Min: 10, Max: 8000},
		Output:       LogNormal{Median: 180, Sigma: 1.0, Min: 8, Max: 8192},
		Verbosity:    0.5,
		ContextLimit: 131072,
	}
}

// AgentToolGaps is the distribution of the pauses in which an agent's tools run, in
// seconds: 86.5 % up to 1 and 95.1 % up to 10 are published, 120 as the longest is our
// assumption.
func AgentToolGaps() Quantiles {
	return Quantiles{{0, 0}, {0.865, 1}, {0.951, 10}, {1, 120}}
}

// Generate draws the bundled workload within the limits. It fails when a limit is negative
// or no session is asked for.
func (l Limits) Generate(seed uint64) ([]Session, error) {
	if l.Turns < 0 {
		return nil, fmt.Errorf("workload limits: Turns %d is negative", l.Turns)
	}
	shape := Bundled()
	shape.Tasks, shape.Every = l.Sessions, l.Every
	if l.Output != 0 {
		shape.Output.Max = l.Output
		shape.Output.Min = min(shape.Output.Min, l.Output)
	}
	sessions, err := shape.Generate(seed)
	if err != nil {
		return nil, err
	}
	if l.Turns > 0 {
		for i := range sessions {
			sessions[i].cut(l.Turns)
		}
	}
	return sessions, nil
}

// cut shortens the session to its first n turns.
func (s *Session) cut(n int) {
	if len(s.Turns) > n {
		s.Turns = s.Turns[:n:n]
		s.Turns[n-1].ToolGap = 0
	}
}

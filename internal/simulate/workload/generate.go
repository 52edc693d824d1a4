package workload

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"time"
)

// Shape says how the sessions of a generated workload look.
type Shape struct {
	// Tasks is the number of prompts; each is sampled Samples times. Samples above 1 give
	// the sessions of a task a common Group. Both must be at least 1.
	Tasks, Samples int
	// Every is the mean time between the arrivals of two tasks, exponentially distributed.
	// 0: all sessions arrive at once.
	Every time.Duration
	// Turns is the distribution of turns per session.
	Turns Quantiles
	// Opening is the first prompt in tokens; Result is what a tool call adds to the
	// context between two turns; Output is what one turn generates.
	Opening, Result, Output LogNormal
	// Verbosity is the standard deviation of the logarithm of a factor that all outputs of
	// one session share: some tasks make the model talk more than others.
	Verbosity float64
	// Correlation, from 0 to 1, is how alike siblings are: the correlation of the normal
	// scores behind their numbers of turns and their verbosity. At 1 siblings have equal
	// numbers of turns and equal verbosity.
	Correlation float64
	// ToolGaps is the distribution of the pauses between turns, in seconds.
	ToolGaps Quantiles
	// ContextLimit ends a session before the turn that would make its context longer,
	// in tokens, as engines do. 0: no limit.
	ContextLimit int
}

// Validate says which field is wrong.
func (s Shape) Validate() error {
	if s.Tasks < 1 || s.Samples < 1 {
		return errors.New("Tasks and Samples must be at least 1")
	}
	if s.Every < 0 || s.ContextLimit < 0 || !(s.Verbosity >= 0) || !(s.Correlation >= 0 && s.Correlation <= 1) {
		return errors.New("Every, ContextLimit and Verbosity must not be negative, and Correlation must be in 0..1")
	}
	return errors.Join(
		name("Turns", s.Turns.Validate()),
		name("ToolGaps", s.ToolGaps.Validate()),
		name("Opening", s.Opening.Validate()),
		name("Result", s.Result.Validate()),
		name("Output", s.Output.Validate()),
	)
}

func name(field string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", field, err)
}

// Generate draws the sessions, ordered by arrival; siblings are neighbours. Equal shapes
// and seeds give equal sessions, and a shape with more tasks begins with the same ones.
func (s Shape) Generate(seed uint64) ([]Session, error) {
	if err := s.Validate(); err != nil {
		return nil, fmt.Errorf("workload shape: %w", err)
	}
	sessions := make([]Session, 0, s.Tasks*s.Samples)
	arrivals := rand.New(rand.NewPCG(seed, math.MaxUint64))
	arrival := time.Duration(0)
	for task := range s.Tasks {
		// A stream of its own per task keeps earlier tasks unchanged when more are asked for.
		random := rand.New(rand.NewPCG(seed, uint64(task)))
		family := scores{turns: random.NormFloat64(), verbosity: random.NormFloat64()}
		for sample := range s.Samples {
			one := s.session(family, random)
			one.Arrival = arrival
			one.ID = fmt.Sprintf("t%04d", task)
			if s.Samples > 1 {
				one.Group = one.ID
				one.ID = fmt.Sprintf("t%04d-%d", task, sample)
			}
			sessions = append(sessions, one)
		}
		arrival += time.Duration(arrivals.ExpFloat64() * float64(s.Every))
	}
	return sessions, nil
}

// scores are the standard normal scores that decide how long a session is.
type scores struct{ turns, verbosity float64 }

func (s Shape) session(family scores, random *rand.Rand) Session {
	own := scores{turns: random.NormFloat64(), verbosity: random.NormFloat64()}
	common, apart := math.Sqrt(s.Correlation), math.Sqrt(1-s.Correlation)
	count := int(math.Round(s.Turns.Value(share(common*family.turns + apart*own.turns))))
	factor := math.Exp(s.Verbosity * (common*family.verbosity + apart*own.verbosity))

	turns := make([]Turn, 0, max(1, count))
	context, fresh := 0, s.Opening.value(random.NormFloat64(), 1)
	for len(turns) < max(1, count) {
		turn := Turn{
			Prompt:  context + fresh,
			Fresh:   fresh,
			Output:  s.Output.value(random.NormFloat64(), factor),
			ToolGap: time.Duration(s.ToolGaps.Value(random.Float64()) * float64(time.Second)),
		}
		context = turn.Prompt + turn.Output
		if s.ContextLimit > 0 && context > s.ContextLimit && len(turns) > 0 {
			break
		}
		turns = append(turns, turn)
		fresh = s.Result.value(random.NormFloat64(), 1)
	}
	turns[len(turns)-1].ToolGap = 0
	return Session{Turns: turns}
}

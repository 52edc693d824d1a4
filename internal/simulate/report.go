package simulate

import "slices"

// Report is the outcome of a Plan. Its JSON form is an interface: times are seconds, and
// shares and ratios plain numbers.
type Report struct {
	Seeds       int          `json:"seeds"`
	Comparisons []Comparison `json:"comparisons"`
}

// Comparison sets the arms of one scenario side by side.
type Comparison struct {
	Workload string `json:"workload"`
	// Floor is the time that no placement can beat, relative to today's practice.
	Floor Estimate `json:"floor"`
	// Rows are the arms in the order of the plan.
	Rows []Row `json:"arms"`
}

// Row is what one arm achieved, over all seeds.
type Row struct {
	Arm   string `json:"arm"`
	Title string `json:"title"`
	Kind  Kind   `json:"-"`
	// Variation is the coefficient of variation of output tokens per capacity.
	Variation Estimate `json:"variation"`
	// Duration is relative to today's practice of the same seed.
	Duration Estimate `json:"duration"`
	// Seconds is the duration itself.
	Seconds Estimate `json:"durationSeconds"`
	// P50, P90 and P99 are percentiles of session latency, in seconds.
	P50 Estimate `json:"latencyP50Seconds"`
	P90 Estimate `json:"latencyP90Seconds"`
	P99 Estimate `json:"latencyP99Seconds"`
	// HitRate is the share of prompt tokens found cached; WorstHitRate that of the replica
	// where it is least.
	HitRate      Estimate `json:"hitRate"`
	WorstHitRate Estimate `json:"worstHitRate"`
	// Moves is how often a turn ran on another replica than the one before.
	Moves Estimate `json:"moves"`
	// IdleSeconds is the time replicas were idle while another one queued.
	IdleSeconds Estimate `json:"idleWhileQueuedSeconds"`
	// Runs are the results of the single seeds.
	Runs []SeedResult `json:"runs"`
}

// SeedResult is the core of one seed's Result, for those who want to test for themselves.
type SeedResult struct {
	Seed      uint64  `json:"seed"`
	Variation float64 `json:"variation"`
	Duration  float64 `json:"duration"`
}

func compare(s Scenario, arms []Arm, seeds []draw) Comparison {
	out := Comparison{Workload: s.Name, Floor: over(seeds, func(d draw) float64 {
		return d.floor / d.results[0].Duration.Seconds()
	})}
	for i, a := range arms {
		figure := func(read func(Result) float64) Estimate {
			return over(seeds, func(d draw) float64 { return read(d.results[i]) })
		}
		row := Row{
			Arm: a.Name, Title: a.Title, Kind: a.Kind,
			Variation:    figure(func(r Result) float64 { return r.Variation }),
			Seconds:      figure(func(r Result) float64 { return r.Duration.Seconds() }),
			P50:          figure(func(r Result) float64 { return r.P50.Seconds() }),
			P90:          figure(func(r Result) float64 { return r.P90.Seconds() }),
			P99:          figure(func(r Result) float64 { return r.P99.Seconds() }),
			HitRate:      figure(func(r Result) float64 { return r.HitRate }),
			WorstHitRate: figure(func(r Result) float64 { return r.WorstHitRate }),
			Moves:        figure(func(r Result) float64 { return float64(r.Moves) }),
			IdleSeconds:  figure(func(r Result) float64 { return r.IdleWhileQueued.Seconds() }),
		}
		for _, d := range seeds {
			r := d.results[i]
			row.Runs = append(row.Runs, SeedResult{
				Seed: r.Seed, Variation: r.Variation, Duration: r.Duration.Seconds() / d.results[0].Duration.Seconds(),
			})
		}
		row.Duration = row.over(func(r SeedResult) float64 { return r.Duration })
		out.Rows = append(out.Rows, row)
	}
	return out
}

func over(seeds []draw, read func(draw) float64) Estimate {
	values := make([]float64, len(seeds))
	for i, d := range seeds {
		values[i] = read(d)
	}
	return estimate(values)
}

func (r Row) over(read func(SeedResult) float64) Estimate {
	values := make([]float64, len(r.Runs))
	for i, run := range r.Runs {
		values[i] = read(run)
	}
	return estimate(values)
}

// Row returns the row of an arm; false when the comparison has none.
func (c Comparison) Row(arm string) (Row, bool) {
	i := slices.IndexFunc(c.Rows, func(r Row) bool { return r.Arm == arm })
	if i < 0 {
		return Row{}, false
	}
	return c.Rows[i], true
}

// Comparison returns that of a workload; false when the report has none.
func (r Report) Comparison(workload string) (Comparison, bool) {
	i := slices.IndexFunc(r.Comparisons, func(c Comparison) bool { return c.Workload == workload })
	if i < 0 {
		return Comparison{}, false
	}
	return r.Comparisons[i], true
}

// Win says in what an arm is better than another.
type Win string

// The figures in which arms are compared.
const (
	InVariation Win = "variation"
	InDuration  Win = "duration"
)

// Wins returns in what row r is better than other by more than two standard errors of the
// difference, which is taken seed by seed.
func (r Row) Wins(other Row) []Win {
	var wins []Win
	for _, figure := range []struct {
		name Win
		read func(SeedResult) float64
	}{
		{InVariation, func(s SeedResult) float64 { return s.Variation }},
		{InDuration, func(s SeedResult) float64 { return s.Duration }},
	} {
		var differences []float64
		for i, run := range r.Runs {
			differences = append(differences, figure.read(run)-figure.read(other.Runs[i]))
		}
		if d := estimate(differences); d.Mean < 0 && -d.Mean > 2*d.StdErr {
			wins = append(wins, figure.name)
		}
	}
	return wins
}

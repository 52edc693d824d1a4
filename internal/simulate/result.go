package simulate

import "time"

// Result is what one run of one arm gave. Times are virtual.
type Result struct {
	Scenario string
	Arm      string
	Seed     uint64
	// Variation is the coefficient of variation, over the replicas, of output tokens per
	// capacity.
	Variation float64
	// Duration is from the start to the end of the last session.
	Duration time.Duration
	// P50, P90 and P99 are percentiles of session latency, from opening to last token.
	P50, P90, P99 time.Duration
	// HitRate is the share of all prompt tokens found in a replica's prefix cache, and
	// WorstHitRate that of the replica where it is least.
	HitRate, WorstHitRate float64
	// Moves is how often a turn ran on another replica than the one before.
	Moves int
	// IdleWhileQueued is the time that replicas spent without a request while another
	// replica had one waiting, summed over replicas.
	IdleWhileQueued time.Duration
	// Turns and OutputTokens are what was done; equal for all arms of a seed.
	Turns        int
	OutputTokens int64
}

func (r *run) result(s Scenario, a Arm, seed uint64) Result {
	out := Result{
		Scenario: s.Name, Arm: a.Name, Seed: seed, Duration: r.now,
		Moves: r.meter.moves, IdleWhileQueued: r.meter.wasted, WorstHitRate: 1,
		P50: seconds(percentile(r.meter.latencies, 0.5)),
		P90: seconds(percentile(r.meter.latencies, 0.9)),
		P99: seconds(percentile(r.meter.latencies, 0.99)),
	}
	var prompt, cached int64
	tokens := make([]float64, len(r.meter.replicas))
	for i, g := range r.meter.replicas {
		tokens[i] = float64(g.output)
		out.OutputTokens += g.output
		prompt, cached = prompt+g.prompt, cached+g.cached
		if g.prompt > 0 {
			out.WorstHitRate = min(out.WorstHitRate, float64(g.cached)/float64(g.prompt))
		}
	}
	for _, t := range r.trips {
		out.Turns += t.turn
	}
	out.Variation = perCapacity(tokens, s.Fleet)
	out.HitRate = float64(cached) / float64(prompt)
	return out
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

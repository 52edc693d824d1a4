package simulate

import (
	"math"
	"time"

	"github.com/berthmaster/berthmaster/internal/enginesim/model"
	"github.com/berthmaster/berthmaster/internal/simulate/workload"
)

// floor returns a time that no placement can beat: the longest session, alone on the
// fastest replica, or all work over the whole fleet, whichever is longer; with a barrier,
// the sum of that over the batches. It is optimistic, since it lets prefill and decode
// overlap and takes every prompt for cached but for its new tokens.
func floor(s Scenario, sessions []workload.Session) time.Duration {
	var total float64
	for _, n := range batches(sessions, s) {
		total += batchFloor(s, sessions[:n])
		sessions = sessions[n:]
	}
	return seconds(total)
}

// batchFloor is floor for sessions between two barriers, in seconds.
func batchFloor(s Scenario, sessions []workload.Session) float64 {
	fastest := fastestEngine(s.Fleet)
	var longest, sum, fresh, output float64
	for _, one := range sessions {
		alone := aloneFor(one, fastest, s.Opening)
		longest, sum = max(longest, alone), sum+alone
		for _, turn := range one.Turns {
			fresh += float64(turn.Fresh)
			output += float64(turn.Output - 1) // the first token comes with the prefill
		}
	}
	open := float64(len(sessions))
	slots := 0.0
	if s.Opening == KeepInFlight {
		open = float64(s.InFlight)
		slots = sum / open
	}
	prefill := 0.0
	for _, b := range s.Fleet {
		prefill += float64(b.Engine.WithDefaults().PrefillTokensPerSecond)
	}
	return max(longest, slots, fresh/prefill, output/decodeRate(s.Fleet, open))
}

// fastestEngine is the fleet's engine with the shortest decode step.
func fastestEngine(fleet []Backend) model.Params {
	best := fleet[0].Engine.WithDefaults()
	for _, b := range fleet[1:] {
		if e := b.Engine.WithDefaults(); e.DecodeBase+e.DecodePerRequest < best.DecodeBase+best.DecodePerRequest {
			best = e
		}
	}
	return best
}

// aloneFor is how long a session takes, in seconds, when nobody else is served; where it has
// an arrival of its own, when it ends.
func aloneFor(one workload.Session, e model.Params, opening Opening) float64 {
	step := (e.DecodeBase + e.DecodePerRequest).Seconds()
	now := 0.0
	if opening == ByArrival {
		now = one.Arrival.Seconds()
	}
	for _, turn := range one.Turns {
		if opening == ByArrival {
			now = max(now, (one.Arrival + turn.NotBefore).Seconds())
		}
		now += float64(turn.Fresh)/float64(e.PrefillTokensPerSecond) + float64(turn.Output-1)*step + turn.ToolGap.Seconds()
	}
	return now
}

// decodeRate is the most tokens per second that the fleet decodes with so many running
// requests, spread in the best way: where one more request adds equally much everywhere.
func decodeRate(fleet []Backend, running float64) float64 {
	low, high := 0.0, 0.0 // the gain of one more request, per second: between all for nothing and none
	for _, b := range fleet {
		high = max(high, 1/b.Engine.WithDefaults().DecodeBase.Seconds())
	}
	for range 100 {
		gain := (low + high) / 2
		if spread(fleet, gain, func(n, _, _ float64) float64 { return n }) > running {
			low = gain
		} else {
			high = gain
		}
	}
	return spread(fleet, low, func(n, base, per float64) float64 { return n / (base + n*per) })
}

// spread sums a figure over the replicas, given the number of requests n at which one more
// gains so many tokens per second there. A step lasts base + n*per seconds.
func spread(fleet []Backend, gain float64, figure func(n, base, per float64) float64) float64 {
	sum := 0.0
	for _, b := range fleet {
		e := b.Engine.WithDefaults()
		base, per := e.DecodeBase.Seconds(), e.DecodePerRequest.Seconds()
		n := max(0, (math.Sqrt(base/gain)-base)/per)
		sum += figure(n, base, per)
	}
	return sum
}

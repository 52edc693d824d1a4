package simulate

import (
	"fmt"

	"github.com/berthmaster/berthmaster/internal/enginesim/model"
	"github.com/berthmaster/berthmaster/internal/simulate/workload"
)

// The size of the reported run, which the scenarios keep unless they say otherwise.
const (
	replicas = 16
	inFlight = 64
	updates  = 9
)

// swe is an agent that repairs software: 5 to 100 turns, 65 on average, with tool calls
// between them. Turns are reported; the token counts are our assumption. Verbosity and the
// median output were fitted to the coefficient of variation that today's practice is
// reported to have, 0.1918, over many seeds.
func swe() workload.Shape {
	return workload.Shape{
		Tasks: inFlight * updates, Samples: 1,
		Turns:        workload.Quantiles{{At: 0, Value: 5}, {At: 0.1, Value: 28}, {At: 0.5, Value: 73}, {At: 0.9, Value: 95}, {At: 1, Value: 100}},
		Opening:      workload.LogNormal{Median: 4000, Sigma: 0.5, Min: 500, Max: 20000},
		Result:       workload.LogNormal{Median: 200, Sigma: 1.0, Min: 10, Max: 8000},
		Output:       workload.LogNormal{Median: 100, Sigma: 0.9, Min: 8, Max: 8192},
		Verbosity:    1.2,
		ToolGaps:     workload.AgentToolGaps(),
		ContextLimit: 131072,
	}
}

// largeCache is an engine with four times the KV cache of the published one, for the
// scenarios with eight times as many sessions per replica: with less, every arm measures
// little but evictions.
func largeCache() model.Params { return model.Params{KVTokens: 4 * 524288} }

// sweAsync is the reported run: 64 tasks in flight over 16 replicas, nine updates of work,
// asynchronous, one sample per task.
func sweAsync() Scenario {
	return Scenario{
		Name: "swe-async", Fleet: fleet(replicas, model.Params{}),
		Opening: KeepInFlight, InFlight: inFlight, Sessions: swe().Generate,
	}
}

// sweVerbose is swe-async with six times the output and no short context limit, so that
// sessions generate most of their time: 63 million tokens in all, where 62 are reported. It
// is not calibrated, and was added after the shipped policy had been seen, to tell what of
// the tables depends on how much of their time sessions spend in tools.
func sweVerbose() Scenario {
	shape := swe()
	shape.Output.Median *= 6
	shape.Output.Max = 32768
	shape.ContextLimit = 1_000_000
	return Scenario{
		Name: "swe-verbose", Fleet: fleet(replicas, largeCache()),
		Opening: KeepInFlight, InFlight: inFlight, Sessions: shape.Generate,
	}
}

// sweGroup has eight samples per task and a barrier after each update of 64 tasks. Group
// size, barrier and correlation are our assumptions: the report names none.
func sweGroup(correlation float64) Scenario {
	shape := swe()
	shape.Samples, shape.Correlation = 8, correlation
	return Scenario{
		Name: fmt.Sprintf("swe-group-%.1f", correlation), Family: "swe-group",
		Fleet: fleet(replicas, largeCache()), Opening: Barrier, InFlight: inFlight, Sessions: shape.Generate,
	}
}

// mixedFleet is swe-async on 12 replicas of full speed and 4 of half speed and capacity.
func mixedFleet() Scenario {
	s := sweAsync()
	s.Name = "mixed-fleet"
	for i := 12; i < replicas; i++ {
		s.Fleet[i].Engine = s.Fleet[i].Engine.Scaled(0.5)
		s.Fleet[i].Engine.MaxRunning /= 2
		s.Fleet[i].Capacity /= 2
	}
	return s
}

// burst opens 512 sessions at once.
func burst() Scenario {
	shape := swe()
	shape.Tasks = 512
	return Scenario{
		Name: "burst", Fleet: fleet(replicas, largeCache()), Opening: ByArrival, Sessions: shape.Generate,
	}
}

// longContext has contexts of 50,000 tokens and more from the first turn on, so that a
// session that moves costs its new home a prefill of seconds.
func longContext() Scenario {
	shape := swe()
	shape.Tasks = inFlight * 5
	shape.Turns = workload.Quantiles{{At: 0, Value: 5}, {At: 0.5, Value: 20}, {At: 0.9, Value: 35}, {At: 1, Value: 50}}
	shape.Opening = workload.LogNormal{Median: 71000, Sigma: 0.25, Min: 50000, Max: 100000}
	return Scenario{
		Name: "long-context", Fleet: fleet(replicas, model.Params{}),
		Opening: KeepInFlight, InFlight: inFlight, Sessions: shape.Generate,
	}
}

// FromTrace is a scenario that replays recorded sessions at their recorded times, on so many
// replicas. Seeds then only matter to arms that draw lots.
func FromTrace(name string, sessions []workload.Session, replicas int) Scenario {
	return Scenario{
		Name: name, Fleet: fleet(replicas, model.Params{}), Opening: ByArrival,
		Sessions: func(uint64) ([]workload.Session, error) { return sessions, nil },
	}
}

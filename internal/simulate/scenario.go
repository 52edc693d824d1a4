package simulate

import (
	"errors"
	"fmt"
	"strings"

	"github.com/berthmaster/berthmaster/internal/enginesim/model"
	"github.com/berthmaster/berthmaster/internal/simulate/workload"
)

// ErrUnknownScenario is returned for a name that is not in Names.
var ErrUnknownScenario = errors.New("unknown workload")

// Opening says when the sessions of a workload begin.
type Opening int

// The ways in which a rollout opens its sessions.
const (
	// ByArrival opens each session at its recorded arrival.
	ByArrival Opening = iota + 1
	// KeepInFlight opens the next task when one has ended: an asynchronous rollout, which
	// always has the same number of tasks in flight.
	KeepInFlight
	// Barrier opens the next InFlight tasks when all of the last ones have ended: a
	// synchronous rollout.
	Barrier
)

// Backend is one replica of the simulated fleet.
type Backend struct {
	// Name is unique in the fleet.
	Name string
	// Engine is the replica's timing.
	Engine model.Params
	// Capacity is how many executions it can run at once, as the router is told.
	Capacity int64
}

// Scenario is one experiment without its arm: who asks, in which rhythm, and who serves.
type Scenario struct {
	// Name is the scenario's name on the command line and in tables.
	Name string
	// Family is the name that scenarios share which differ in one number only.
	Family string
	// Fleet are the replicas.
	Fleet []Backend
	// Opening is the rhythm, and InFlight its number of tasks; ByArrival ignores it.
	Opening  Opening
	InFlight int
	// Sessions draws the sessions of one seed, siblings next to each other.
	Sessions func(seed uint64) ([]workload.Session, error)
}

// fleet makes n equal replicas.
func fleet(n int, engine model.Params) []Backend {
	out := make([]Backend, n)
	for i := range out {
		out[i] = Backend{
			Name:     fmt.Sprintf("replica-%02d", i),
			Engine:   engine,
			Capacity: int64(engine.WithDefaults().MaxRunning),
		}
	}
	return out
}

// Scenarios returns all built-in scenarios, in the order of the tables.
func Scenarios() []Scenario {
	all := []Scenario{sweAsync(), sweVerbose()}
	for _, correlation := range []float64{0.3, 0.5, 0.8, 1} {
		all = append(all, sweGroup(correlation))
	}
	return append(all, mixedFleet(), burst(), longContext())
}

// Find returns the built-in scenarios of that name: one, or all of a family when the name
// is what comes before their number, as swe-group is. It fails with ErrUnknownScenario.
func Find(name string) ([]Scenario, error) {
	var found []Scenario
	var names []string
	for _, s := range Scenarios() {
		if s.Name == name || s.Family == name {
			found = append(found, s)
		}
		names = append(names, s.Name)
	}
	if len(found) == 0 {
		return nil, fmt.Errorf("%w %q: it is none of %s", ErrUnknownScenario, name, strings.Join(names, ", "))
	}
	return found, nil
}

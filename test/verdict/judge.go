package verdict

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/berthmaster/berthmaster/internal/enginesim/execlog"
	"github.com/berthmaster/berthmaster/internal/simulate/workload"
)

// Run is what a run was meant to do and what its participants wrote down.
type Run struct {
	// Sessions is the workload.
	Sessions []workload.Session
	// Engines are the records that the engines kept, Clients those of the
	// clients.
	Engines []execlog.Record
	Clients []execlog.ClientRecord
	// Disturbed names the backends that were drained or killed, which is what
	// their sessions may leave them for.
	Disturbed []string
	// Senders gives the sender of each session by its id.
	Senders map[string]string
	// Quiet are promises of the status that something did not run.
	Quiet []Quiet
}

// Faults returns what is wrong with the run, one sentence each, in an order that
// does not change. None means that the run is good.
func (r Run) Faults() []string {
	report := execlog.Check(r.Engines, r.Clients)
	var faults []string
	for _, v := range report.Violations {
		faults = append(faults, v.String())
	}
	for _, e := range report.Unreported {
		faults = append(faults, fmt.Sprintf("session %s turn %s: the execution %s on %s was lost and nobody was told",
			e.Session, e.Turn, e.RID, e.Backend))
	}
	faults = append(faults, r.incomplete(report.Turns)...)
	for _, quiet := range r.Quiet {
		faults = append(faults, quiet.faults(report.Turns, r.Senders)...)
	}
	return append(faults, r.strays(report.Turns)...)
}

// incomplete finds the turns that did not run to their end exactly once.
func (r Run) incomplete(turns []execlog.Turn) []string {
	finished := make(map[turnKey]int, len(turns))
	for _, turn := range turns {
		for _, e := range turn.Executions {
			if e.Outcome == execlog.Finished {
				finished[turnKey{turn.Session, turn.Turn}]++
			}
		}
	}
	var faults []string
	for _, session := range r.Sessions {
		for i := range session.Turns {
			if n := finished[turnKey{session.ID, strconv.Itoa(i)}]; n != 1 {
				faults = append(faults, fmt.Sprintf("session %s turn %d ran to its end %d times", session.ID, i, n))
			}
		}
	}
	return faults
}

type turnKey struct{ session, turn string }

// strays finds the sessions that moved away from a backend which nobody had
// drained or killed.
func (r Run) strays(turns []execlog.Turn) []string {
	var faults []string
	for session, executions := range bySession(turns) {
		for i, next := range executions[min(1, len(executions)):] {
			from := executions[i]
			if from.Backend == next.Backend && from.Life == next.Life || slices.Contains(r.Disturbed, from.Backend) {
				continue
			}
			faults = append(faults, fmt.Sprintf("session %s left %s for %s at turn %s",
				session, from.Backend, next.Backend, next.Turn))
		}
	}
	slices.Sort(faults)
	return faults
}

// bySession returns the executions of each session in the order of their start.
func bySession(turns []execlog.Turn) map[string][]execlog.Execution {
	out := map[string][]execlog.Execution{}
	for _, turn := range turns {
		out[turn.Session] = append(out[turn.Session], turn.Executions...)
	}
	for _, executions := range out {
		slices.SortStableFunc(executions, func(a, b execlog.Execution) int { return a.Started.Compare(b.Started) })
	}
	return out
}

package verdict

import (
	"fmt"
	"time"

	"github.com/berthmaster/berthmaster/internal/enginesim/execlog"
)

// Quiet is a time in which something was promised not to run.
type Quiet struct {
	// What was promised, for messages.
	What string
	// Backend, if set, was promised to run nothing.
	Backend string
	// Sender, if set, was promised to run nothing anywhere.
	Sender string
	// From and To bound the time, by the clock of the engines' records.
	From, To time.Time
}

// faults finds the executions that ran nevertheless. One without an end was
// killed with its engine and is judged elsewhere.
func (q Quiet) faults(turns []execlog.Turn, senders map[string]string) []string {
	var faults []string
	for _, turn := range turns {
		if q.Sender != "" && senders[turn.Session] != q.Sender {
			continue
		}
		for _, e := range turn.Executions {
			if q.Backend != "" && e.Backend != q.Backend || e.Ended.IsZero() {
				continue
			}
			if e.Started.Before(q.To) && e.Ended.After(q.From) {
				faults = append(faults, fmt.Sprintf("session %s turn %s ran on %s from %s to %s although the status said %s",
					e.Session, e.Turn, e.Backend, e.Started.Format(time.RFC3339Nano), e.Ended.Format(time.RFC3339Nano), q.What))
			}
		}
	}
	return faults
}

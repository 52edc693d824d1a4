package execlog

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// Execution is one sequence that an engine generated, or began to.
type Execution struct {
	Session, Turn, RID string
	Sample             int
	Backend, Life      string
	Started            time.Time
	// Ended is zero for an Unfinished one.
	Ended        time.Time
	Outcome      Outcome
	OutputTokens int
}

// Turn is everything that was executed for one turn of one session.
type Turn struct {
	Session, Turn string
	// Executions are in order of their start.
	Executions []Execution
}

// Violation is a start that nothing allowed.
type Violation struct {
	// Second is the execution that should not have started, Earlier the one that stood in its way.
	Second, Earlier Execution
	Reason          Reason
}

// Reason is why an earlier execution forbids another.
type Reason string

// The reasons of a Violation.
const (
	// NotDead: no client was told Dead about the earlier rid before the second start.
	NotDead Reason = "the earlier rid was not answered Dead before"
	// NotAborted: the earlier execution came to its end, whatever a client was told.
	NotAborted Reason = "the earlier execution finished"
)

// String describes the violation in one line.
func (v Violation) String() string {
	return fmt.Sprintf("session %s turn %s sample %d: rid %s started on %s at %s, after rid %s on %s at %s: %s",
		v.Second.Session, v.Second.Turn, v.Second.Sample,
		v.Second.RID, v.Second.Backend, v.Second.Started.Format(time.RFC3339Nano),
		v.Earlier.RID, v.Earlier.Backend, v.Earlier.Started.Format(time.RFC3339Nano), v.Reason)
}

// Report is what the logs say.
type Report struct {
	// Turns is sorted by session and turn.
	Turns      []Turn
	Violations []Violation
	// Unreported are executions that did not finish and of whose rid no client log says more than that it was
	// sent. Empty without a client log.
	Unreported []Execution
}

// Count returns the executions that ended with the outcome.
func (r Report) Count(o Outcome) int {
	n := 0
	for _, t := range r.Turns {
		for _, e := range t.Executions {
			if e.Outcome == o {
				n++
			}
		}
	}
	return n
}

// Check pairs starts and finishes and judges every start after the first of a (session, turn, sample): it
// passes only if each earlier rid was answered Dead before it, by the client's log, and ended at most as
// aborted. A missing finish counts as not finished. Turns without a session are counted but not judged: equal
// prompts of nobody in particular are no repetition.
func Check(records []Record, clients []ClientRecord) Report {
	told := learn(clients)
	report := Report{Turns: turns(executions(records))}
	for _, t := range report.Turns {
		report.Violations = append(report.Violations, told.judge(t)...)
		for _, e := range t.Executions {
			if len(clients) > 0 && e.Outcome != Finished && !told.reported[e.RID] {
				report.Unreported = append(report.Unreported, e)
			}
		}
	}
	return report
}

// executions joins each start to the finish of the same life, rid and sample.
func executions(records []Record) []Execution {
	type key struct {
		backend, life, rid string
		sample             int
	}
	var out []Execution
	open := map[key]int{}
	for _, r := range records {
		k := key{r.Backend, r.Life, r.RID, r.Sample}
		switch r.Event {
		case Start:
			open[k] = len(out)
			out = append(out, Execution{
				Session: r.Session, Turn: r.Turn, RID: r.RID, Sample: r.Sample,
				Backend: r.Backend, Life: r.Life, Started: r.Time,
			})
		case Finish:
			if i, ok := open[k]; ok {
				out[i].Ended, out[i].Outcome, out[i].OutputTokens = r.Time, r.Outcome, r.OutputTokens
				delete(open, k)
			}
		case Boot:
		}
	}
	return out
}

func turns(all []Execution) []Turn {
	type key struct{ session, turn string }
	byTurn := map[key][]Execution{}
	for _, e := range all {
		k := key{e.Session, e.Turn}
		byTurn[k] = append(byTurn[k], e)
	}
	out := make([]Turn, 0, len(byTurn))
	for k, es := range byTurn {
		slices.SortStableFunc(es, func(a, b Execution) int { return a.Started.Compare(b.Started) })
		out = append(out, Turn{Session: k.session, Turn: k.turn, Executions: es})
	}
	slices.SortFunc(out, func(a, b Turn) int {
		return cmp.Or(cmp.Compare(a.Session, b.Session), cmp.Compare(a.Turn, b.Turn))
	})
	return out
}

// knowledge is what the clients' logs say about rids.
type knowledge struct {
	dead     map[string]time.Time // the first time that Dead was answered
	reported map[string]bool      // anything but Sent
}

func learn(clients []ClientRecord) knowledge {
	k := knowledge{dead: map[string]time.Time{}, reported: map[string]bool{}}
	for _, c := range clients {
		if c.Event != Sent {
			k.reported[c.RID] = true
		}
		if at, known := k.dead[c.RID]; c.Event == Dead && (!known || c.Time.Before(at)) {
			k.dead[c.RID] = c.Time
		}
	}
	return k
}

func (k knowledge) judge(t Turn) []Violation {
	var out []Violation
	if t.Session == "" {
		return nil
	}
	for i, second := range t.Executions {
		for _, earlier := range t.Executions[:i] {
			if earlier.Sample != second.Sample {
				continue
			}
			if reason := k.forbids(earlier, second.Started); reason != "" {
				out = append(out, Violation{Second: second, Earlier: earlier, Reason: reason})
			}
		}
	}
	return out
}

// forbids says why an earlier execution does not allow a start at the given time, or nothing.
func (k knowledge) forbids(earlier Execution, start time.Time) Reason {
	if earlier.Outcome == Finished {
		return NotAborted
	}
	if dead, ok := k.dead[earlier.RID]; !ok || dead.After(start) {
		return NotDead
	}
	return ""
}

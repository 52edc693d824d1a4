package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"

	"github.com/berthmaster/berthmaster/clients/conformance"
	"github.com/berthmaster/berthmaster/internal/enginesim/execlog"
)

// change merges into the pool's spec.
func (r *run) change(ctx context.Context, spec map[string]any) error {
	patch, err := json.Marshal(map[string]any{"spec": spec})
	if err != nil {
		return err
	}
	return r.stage.patch(ctx, string(patch))
}

// Judge says what the client did wrong: by its reports, by the engines' own records, and by what is still
// counted once its sessions have ended.
func (r *run) Judge(reports []conformance.Report) ([]string, error) {
	steps := r.steps()
	if len(reports) != len(steps) {
		return nil, fmt.Errorf("%d reports of %d steps", len(reports), len(steps))
	}
	var out []string
	engines, rids := map[string]string{}, map[string]string{}
	for i, step := range steps {
		report := reports[i]
		report.Backend = letter(engines, report.Backend)
		differences, err := step.Differences(report)
		if err != nil {
			return nil, err
		}
		for _, d := range differences {
			out = append(out, fmt.Sprintf("step %d, %s: %s", i+1, r.scenario.Do[i].Call, d))
		}
		if id := step.RequestID; id != "" && report.RID != "" {
			if rids[id] != "" && rids[id] != report.RID {
				out = append(out, fmt.Sprintf("the request %s had the rids %s and %s", id, rids[id], report.RID))
			}
			rids[id] = report.RID
		}
	}
	executed, err := r.executions(steps, reports)
	if err != nil {
		return nil, err
	}
	return append(append(out, executed...), r.left(steps)...), nil
}

// steps are those of the scenario, each with its turn. Of a step that goes on and of the one that waits for
// it, the one that waits stands for both.
func (r *run) steps() []conformance.Step {
	steps, begun := make([]conformance.Step, len(r.scenario.Do)), map[string]conformance.Step{}
	for i, step := range r.scenario.Do {
		if step.Turn == "" {
			step.Turn = strconv.Itoa(i)
		}
		if step.Call == conformance.Join {
			report := step.Report
			step = begun[step.Of]
			step.Report = report
		}
		if step.As != "" {
			begun[step.As] = step
		}
		steps[i] = step
	}
	return steps
}

// letter names engines as scenarios do: a is the one that the client was on first.
func letter(known map[string]string, name string) string {
	if name != "" && known[name] == "" {
		known[name] = string(rune('a' + len(known)))
	}
	return known[name]
}

// executions judges what the engines wrote down, and what the client had been told by then.
func (r *run) executions(steps []conformance.Step, reports []conformance.Report) ([]string, error) {
	records, err := r.records()
	if err != nil {
		return nil, err
	}
	var told []execlog.ClientRecord
	for i, report := range reports {
		told = append(told, clientRecords(steps[i], report)...)
	}
	begun := 0
	for _, record := range records {
		if record.Event == execlog.Start {
			begun++
		}
	}
	var out []string
	if want := r.scenario.Main.Executions; begun != want {
		out = append(out, fmt.Sprintf("the engines began %d executions, demanded are %d", begun, want))
	}
	judged := execlog.Check(records, told)
	for _, v := range judged.Violations {
		out = append(out, v.String())
	}
	for _, e := range judged.Unreported {
		out = append(out, fmt.Sprintf("the execution %s of turn %s was lost and nobody was told", e.RID, e.Turn))
	}
	return out, nil
}

// clientRecords is the client's own log of one step.
func clientRecords(step conformance.Step, report conformance.Report) []execlog.ClientRecord {
	if report.RID == "" || step.Call != conformance.Generate && step.Call != conformance.Stream {
		return nil
	}
	record := execlog.ClientRecord{Time: report.At, Session: sessionOf(step), Turn: step.Turn, RID: report.RID}
	events := map[string]execlog.ClientEvent{
		"Succeeded": execlog.Succeeded, "Aborted": execlog.GotAbort, "NotSent": execlog.NotSent, "Rejected": execlog.Rejected,
		"Cancelled": execlog.Cancelled, "Ambiguous": execlog.Ambiguous,
	}
	record.Event = events[report.Result]
	out := []execlog.ClientRecord{record}
	if report.Fate == "Dead" {
		record.Event = execlog.Dead
		out = append(out, record)
	}
	return out
}

// left ends the sessions that the scenario has not ended, and says what is counted nevertheless. In a pool
// that is spoiled an execution may stay for good.
func (r *run) left(steps []conformance.Step) []string {
	ctx, cancel := context.WithTimeout(context.Background(), runPatience)
	defer cancel()
	sessions := map[string]bool{}
	for _, step := range steps {
		sessions[sessionOf(step)] = step.Call != conformance.EndSession
	}
	for session, open := range sessions {
		if !open || r.scenario.Main.Leaves == conformance.Spoiled {
			continue
		}
		url := r.stage.system.PoolURL() + "/sessions/" + session + "?sender=" + conformance.Sender
		req, err := http.NewRequestWithContext(ctx, http.MethodDelete, url, nil)
		if err == nil {
			err = r.stage.call(req, nil)
		}
		if err != nil {
			return []string{err.Error()}
		}
	}
	if r.scenario.Main.Leaves == conformance.Spoiled {
		return nil
	}
	// What was cut stays counted until somebody waits for it, as who fences its sender does.
	if n, err := r.count(ctx, "counted"); err != nil || n > 0 {
		if err := r.change(ctx, map[string]any{"senders": []any{map[string]any{"name": conformance.Sender, "access": "Fenced"}}}); err != nil {
			return []string{err.Error()}
		}
	}
	if err := r.stage.system.UntilNothingKnownCounted(ctx); err != nil {
		return []string{err.Error()}
	}
	return nil
}

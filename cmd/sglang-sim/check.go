package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/berthmaster/berthmaster/internal/enginesim/execlog"
)

// The exit statuses of check.
const (
	exitViolation  = 1
	exitUnreported = 3
)

// checkOptions is what the flags of check say.
type checkOptions struct {
	logs, clientLogs []string
	output           string
	strict           bool
}

func newCheckCommand(stdout io.Writer, code *int) *cobra.Command {
	var o checkOptions
	cmd := &cobra.Command{
		Use:   "check --log DIR|FILE... [--client-log FILE...]",
		Short: "Report executions per (session, turn) and fail on one that should not have started",
		Long: `Reads the execution logs of engines, and what clients were told, and reports how often each turn of each
session was executed. A second start passes only if every earlier rid of that turn was answered Dead
before it, by the clients' logs, and ended at most as aborted; a missing finish counts as not finished.

Exit status: 0 all starts allowed; 1 a start that is not; 2 the logs cannot be read; 3, with --strict,
an execution that did not finish and of which no client log says so.`,
		Args:          cobra.NoArgs,
		SilenceUsage:  true,
		SilenceErrors: true,
		RunE: func(*cobra.Command, []string) error {
			var err error
			*code, err = o.check(stdout)
			return err
		},
	}
	f := cmd.Flags()
	f.StringSliceVar(&o.logs, "log", nil, "execution log, or directory of files that end in "+execlog.Suffix+"; repeatable")
	f.StringSliceVar(&o.clientLogs, "client-log", nil, "log of a client; repeatable")
	f.StringVarP(&o.output, "output", "o", "summary", "summary, turns (a line for each turn) or json")
	f.BoolVar(&o.strict, "strict", false, "also fail on executions that ended without a finish and that nobody reported")
	cmd.SetUsageFunc(func(c *cobra.Command) error {
		_, err := fmt.Fprintf(c.OutOrStdout(), "Usage:\n  sglang-sim %s\n\n%s", c.Use, f.FlagUsages())
		return err
	})
	return cmd
}

func (o checkOptions) validate() error {
	if len(o.logs) == 0 {
		return errors.New("--log is required")
	}
	if o.output != "summary" && o.output != "turns" && o.output != "json" {
		return fmt.Errorf("--output is %q, it must be summary, turns or json", o.output)
	}
	return nil
}

func (o checkOptions) check(out io.Writer) (int, error) {
	if err := o.validate(); err != nil {
		return 0, err
	}
	records, err := execlog.ReadFiles(o.logs...)
	if err != nil {
		return 0, err
	}
	clients, err := execlog.ReadClientFiles(o.clientLogs...)
	if err != nil {
		return 0, err
	}
	report := execlog.Check(records, clients)
	if err := o.print(out, report); err != nil {
		return 0, fmt.Errorf("print the report: %w", err)
	}
	switch {
	case len(report.Violations) > 0:
		return exitViolation, nil
	case o.strict && len(report.Unreported) > 0:
		return exitUnreported, nil
	}
	return 0, nil
}

func (o checkOptions) print(out io.Writer, r execlog.Report) error {
	switch o.output {
	case "json":
		return json.NewEncoder(out).Encode(r)
	case "turns":
		for _, t := range r.Turns {
			if _, err := fmt.Fprintf(out, "session %s turn %s: %d executions\n", t.Session, t.Turn, len(t.Executions)); err != nil {
				return err
			}
		}
	}
	return printSummary(out, r)
}

func printSummary(out io.Writer, r execlog.Report) error {
	executions, unjudged := 0, 0
	for _, t := range r.Turns {
		executions += len(t.Executions)
		if t.Session == "" {
			unjudged += len(t.Executions)
		}
	}
	for _, v := range r.Violations {
		if _, err := fmt.Fprintln(out, "NOT ALLOWED", v); err != nil {
			return err
		}
	}
	for _, e := range r.Unreported {
		if _, err := fmt.Fprintf(out, "not reported: session %s turn %s rid %s on %s\n", e.Session, e.Turn, e.RID, e.Backend); err != nil {
			return err
		}
	}
	_, err := fmt.Fprintf(out, "%d turns, %d executions: %d finished, %d aborted, %d without a finish, %d without a session (not judged); %d starts not allowed\n",
		len(r.Turns), executions, r.Count(execlog.Finished), r.Count(execlog.Aborted), r.Count(execlog.Unfinished), unjudged, len(r.Violations))
	return err
}

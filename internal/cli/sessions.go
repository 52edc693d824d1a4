package cli

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/berthmaster/berthmaster/internal/cli/live"
)

// sessionFlags are those of sessions alone.
type sessionFlags struct {
	filter live.Filter
	output string
}

func newSessions(e *env) *cobra.Command {
	var f sessionFlags
	cmd := &cobra.Command{
		Use:   "sessions",
		Short: "List the sessions that the router knows, and where they live",
		Example: `  kubectl berth sessions --backend sglang-3
  kubectl berth sessions --sender eval --limit 0 -o json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return e.sessions(cmd.Context(), &f) },
	}
	e.bindPool(cmd)
	e.bindRouter(cmd)
	flags := cmd.Flags()
	flags.StringVar(&f.filter.Backend, "backend", "", "only sessions at home on this backend")
	flags.StringVar(&f.filter.Sender, "sender", "", "only sessions of this sender")
	flags.IntVar(&f.filter.Limit, "limit", 500, "list so many at most; 0: all")
	flags.StringVarP(&f.output, "output", "o", "", "wide, json or yaml; empty: a table")
	e.complete(cmd, "backend", e.backendNames)
	e.complete(cmd, "sender", e.senderNames)
	_ = cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(tableFormats, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

func (e *env) sessions(ctx context.Context, f *sessionFlags) error {
	if err := validFormat(f.output); err != nil {
		return err
	}
	if f.filter.Limit < 0 {
		return errors.New("--limit: below 0")
	}
	t, err := e.find(ctx)
	if err != nil {
		return err
	}
	router, closing, err := e.live(ctx, t)
	if err != nil {
		return err
	}
	defer closing()
	found, more, err := router.Sessions(ctx, f.filter)
	if err != nil {
		return e.explainRefusal(t, err)
	}
	if f.output == "json" || f.output == "yaml" {
		return printValue(e.streams.Out, f.output, live.SessionPage{Sessions: found})
	}
	if len(found) == 0 {
		e.notef("No sessions found in pool %s.", t.pool.Name)
		return nil
	}
	s := screenOf(e.streams.Out)
	(&lines{out: e.streams.Out, width: s.width}).table(sessionRows(found, f.output == "wide"), painter(s.colour))
	if more {
		e.notef("There are more than these %d: raise --limit, or narrow them by --backend and --sender.", len(found))
	}
	return nil
}

func sessionRows(found []live.SessionEntry, wide bool) [][]cell {
	head := []cell{{"SESSION", bold}, {"SENDER", bold}, {"BACKEND", bold}, {"ACTIVE", bold}, {"IDLE", bold}, {"CHOSEN", bold}}
	if wide {
		head = append(head, cell{"INCARNATION", bold})
	}
	rows := [][]cell{head}
	for _, s := range found {
		home, life := "-", "-"
		if s.Backend != nil {
			home, life = s.Backend.Name, s.Backend.Incarnation
		}
		idle := cell{text: (time.Duration(s.IdleSeconds) * time.Second).String(), colour: grey}
		if s.ActiveLeases > 0 {
			idle.text = "-"
		}
		row := []cell{{text: s.SessionID}, {text: s.Sender}, {text: home}, {text: strconv.FormatInt(s.ActiveLeases, 10)}, idle, {text: s.Why}}
		if wide {
			row = append(row, cell{text: life})
		}
		rows = append(rows, row)
	}
	return rows
}

// sessionsOf are the ids of a pool's sessions, as far as they can be had.
func sessionsOf(ctx context.Context, router *live.Client) []string {
	found, _, err := router.Sessions(ctx, live.Filter{Limit: completedSessions})
	if err != nil {
		return nil
	}
	ids := make([]string, 0, len(found))
	for _, s := range found {
		ids = append(ids, s.SessionID)
	}
	return ids
}

func newExplain(e *env) *cobra.Command {
	var output string
	cmd := &cobra.Command{
		Use:               "explain SESSION",
		Short:             "Say where a session lives, and why there",
		Example:           `  kubectl berth explain task-17-sample-3`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: firstArgument(e.sessionNames),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := validObject(output); err != nil {
				return err
			}
			return e.explain(cmd.Context(), args[0], output)
		},
	}
	e.bindPool(cmd)
	e.bindRouter(cmd)
	cmd.Flags().StringVarP(&output, "output", "o", "", "json or yaml; empty: words")
	_ = cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions([]string{"json", "yaml"}, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

func validObject(format string) error {
	if format != "" && format != "json" && format != "yaml" {
		return fmt.Errorf("--output: %q is none of json and yaml", format)
	}
	return nil
}

func (e *env) explain(ctx context.Context, id, output string) error {
	t, err := e.find(ctx)
	if err != nil {
		return err
	}
	router, closing, err := e.live(ctx, t)
	if err != nil {
		return err
	}
	defer closing()
	session, err := router.Session(ctx, id)
	if err != nil {
		return e.explainRefusal(t, err)
	}
	if output != "" {
		return printValue(e.streams.Out, output, session)
	}
	pool, err := router.Pool(ctx)
	if err != nil {
		return e.explainRefusal(t, err)
	}
	for _, line := range explanation(session, pool) {
		fmt.Fprintln(e.streams.Out, line)
	}
	return nil
}

package cli

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"github.com/berthmaster/berthmaster/internal/simulate"
	"github.com/berthmaster/berthmaster/internal/simulate/workload"
)

// allWorkloads is the name that stands for every built-in workload.
const allWorkloads = "all"

// simulateFlags are the flags of `simulate`, as the user gave them.
type simulateFlags struct {
	workloads []string
	trace     string
	limit     int
	replicas  int
	policies  []string
	seeds     int
	output    string
	plot      string
}

func newSimulate() *cobra.Command {
	var f simulateFlags
	cmd := &cobra.Command{
		Use:   "simulate (--workload NAME | --trace FILE)",
		Short: "Compare routing policies in virtual time, without a GPU or a cluster",
		Long: `Play a workload against modelled engines in virtual time, once per policy and seed, and
compare how evenly output tokens spread over the replicas, how long it takes, and what it
costs in cache hits and moved sessions. The policies named r1 and rebalance are decided by
the real router. Equal arguments give equal numbers.`,
		Example: `  kubectl berth simulate --workload swe-async
  kubectl berth simulate --workload mixed-fleet --policy r1,power-of-two --seeds 20 -o markdown
  kubectl berth simulate --trace conversations.csv --replicas 8 --limit 5000 --plot out.svg`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return f.run(cmd) },
	}
	flags := cmd.Flags()
	flags.StringSliceVar(&f.workloads, "workload", nil, "built-in workloads by name, or "+allWorkloads)
	flags.StringVar(&f.trace, "trace", "", "a trace to replay: .csv (arrival_ms,session,turn,input_tokens,output_tokens) or .jsonl (Mooncake)")
	flags.IntVar(&f.limit, "limit", 0, "read so many requests of the trace; 0: all")
	flags.IntVar(&f.replicas, "replicas", 8, "replicas that serve the trace")
	flags.StringSliceVar(&f.policies, "policy", nil, "policies to compare with today's practice; none: all")
	flags.IntVar(&f.seeds, "seeds", 10, "workloads drawn per policy")
	flags.StringVarP(&f.output, "output", "o", string(simulate.Table), "table, json, markdown or figures")
	flags.StringVar(&f.plot, "plot", "", "also write a picture, as SVG, to this file")
	cmd.MarkFlagsMutuallyExclusive("workload", "trace")
	cmd.MarkFlagsOneRequired("workload", "trace")
	return cmd
}

func (f simulateFlags) run(cmd *cobra.Command) error {
	format, err := simulate.ParseFormat(f.output)
	if err != nil {
		return fmt.Errorf("--output: %w", err)
	}
	if format == simulate.FigureLines {
		f = f.headlinesOnly()
	}
	arms, err := simulate.FindArms(f.policies)
	if err != nil {
		return fmt.Errorf("--policy: %w", err)
	}
	scenarios, err := f.scenarios()
	if err != nil {
		return err
	}
	plan := simulate.Plan{Scenarios: scenarios, Arms: arms, Seeds: f.seeds}
	report, err := plan.Compare(cmd.Context())
	if err != nil {
		return err
	}
	if err := f.writePlot(report); err != nil {
		return err
	}
	return report.Write(cmd.OutOrStdout(), format)
}

// headlinesOnly leaves out what no figure is read from, where the user left the choice open.
func (f simulateFlags) headlinesOnly() simulateFlags {
	workloads, arms := simulate.Headlines()
	if len(f.policies) == 0 {
		f.policies = arms
	}
	if slices.Contains(f.workloads, allWorkloads) {
		f.workloads = workloads
	}
	return f
}

func (f simulateFlags) scenarios() ([]simulate.Scenario, error) {
	if f.trace != "" {
		return f.traced()
	}
	var found []simulate.Scenario
	for _, name := range f.workloads {
		if name == allWorkloads {
			return simulate.Scenarios(), nil
		}
		some, err := simulate.Find(name)
		if err != nil {
			return nil, fmt.Errorf("--workload: %w", err)
		}
		found = append(found, some...)
	}
	return found, nil
}

func (f simulateFlags) traced() ([]simulate.Scenario, error) {
	if f.replicas < 1 {
		return nil, fmt.Errorf("--replicas: %d, at least 1 is needed", f.replicas)
	}
	sessions, err := workload.ReadFile(f.trace, f.limit)
	if err != nil {
		return nil, fmt.Errorf("--trace: %w", err)
	}
	return []simulate.Scenario{simulate.FromTrace(filepath.Base(f.trace), sessions, f.replicas)}, nil
}

func (f simulateFlags) writePlot(report simulate.Report) error {
	if f.plot == "" {
		return nil
	}
	file, err := os.Create(f.plot)
	if err != nil {
		return fmt.Errorf("--plot: %w", err)
	}
	if err := errors.Join(report.Plot(file), file.Close()); err != nil {
		return fmt.Errorf("--plot: %w", err)
	}
	return nil
}

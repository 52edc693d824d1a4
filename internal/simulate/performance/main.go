// Command performance rewrites the generated parts of docs/performance.md: the figures that
// it reads from standard input, as make bench prints them, the tables and plots of the
// simulation, and on which machine and at which commit they were made.
//
//	make bench | go run ./internal/simulate/performance
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"

	"github.com/berthmaster/berthmaster/internal/simulate"
	"github.com/berthmaster/berthmaster/internal/simulate/workload"
)

// settings are the command's flags.
type settings struct {
	docs  string
	seeds int
	// workloads are the built-in ones to run; empty: all.
	workloads string
	trace     string
	// replicas serve the trace.
	replicas int
}

func main() {
	var s settings
	flag.StringVar(&s.docs, "docs", "docs", "the directory of performance.md and its plots")
	flag.IntVar(&s.seeds, "seeds", 10, "workloads drawn per policy")
	flag.StringVar(&s.workloads, "workloads", "", "run only these, by name, separated by commas")
	flag.StringVar(&s.trace, "trace", "", "also replay this trace, .csv or .jsonl")
	flag.IntVar(&s.replicas, "replicas", 8, "replicas that serve the trace")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := s.run(ctx, os.Stdin)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "performance:", err)
		os.Exit(1)
	}
}

func (s settings) run(ctx context.Context, input io.Reader) error {
	page := filepath.Join(s.docs, "performance.md")
	text, err := os.ReadFile(page)
	if err != nil {
		return err
	}
	figures, err := readFigures(input)
	if err != nil {
		return err
	}
	shipped, err := s.shipped(ctx)
	if err != nil {
		return err
	}
	weighed, err := s.weighed(ctx)
	if err != nil {
		return err
	}
	for _, part := range []struct{ name, content string }{
		{"machine", machine(ctx)},
		{"figures", figureTable(figures)},
		{"simulation", markdown(shipped)},
		{"designs", markdown(weighed)},
	} {
		if text, err = replace(text, part.name, part.content); err != nil {
			return fmt.Errorf("%s: %w", page, err)
		}
	}
	return errors.Join(
		os.WriteFile(page, text, 0o644),
		writePlot(filepath.Join(s.docs, "performance.svg"), shipped),
		writePlot(filepath.Join(s.docs, "performance-designs.svg"), weighed),
	)
}

// shipped compares all arms on all workloads, and on the trace if there is one.
func (s settings) shipped(ctx context.Context) (simulate.Report, error) {
	plan := simulate.Plan{Arms: simulate.Arms(), Seeds: s.seeds}
	for _, scenario := range simulate.Scenarios() {
		if s.wants(scenario.Name) {
			plan.Scenarios = append(plan.Scenarios, scenario)
		}
	}
	if s.trace != "" {
		sessions, err := workload.ReadFile(s.trace, 0)
		if err != nil {
			return simulate.Report{}, err
		}
		plan.Scenarios = append(plan.Scenarios, simulate.FromTrace(filepath.Base(s.trace), sessions, s.replicas))
	}
	return plan.Compare(ctx)
}

func (s settings) wants(name string) bool {
	return s.workloads == "" || slices.Contains(strings.Split(s.workloads, ","), name)
}

// weighed compares the designs that are not shipped with those that are, on the workloads
// that tell them apart.
func (s settings) weighed(ctx context.Context) (simulate.Report, error) {
	names := []string{simulate.Promise, simulate.Rebalanced}
	for _, d := range simulate.Designs() {
		names = append(names, d.Name)
	}
	arms, err := simulate.FindArms(names)
	if err != nil {
		return simulate.Report{}, err
	}
	plan := simulate.Plan{Arms: arms, Seeds: s.seeds}
	for _, name := range []string{"swe-async", "swe-verbose", "mixed-fleet", "long-context", "swe-group-0.5"} {
		if !s.wants(name) {
			continue
		}
		found, err := simulate.Find(name)
		if err != nil {
			return simulate.Report{}, err
		}
		plan.Scenarios = append(plan.Scenarios, found...)
	}
	return plan.Compare(ctx)
}

func writePlot(path string, report simulate.Report) error {
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	return errors.Join(report.Plot(file), file.Close())
}

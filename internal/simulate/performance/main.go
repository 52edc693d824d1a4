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
	// parts are those to rewrite; empty: all.
	parts string
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
	flag.StringVar(&s.parts, "parts", "", "rewrite only these of machine, figures, simulation and designs, separated by commas")
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
	for _, p := range s.allParts(input) {
		if !wants(s.parts, p.name) {
			continue
		}
		content, err := p.make(ctx)
		if err != nil {
			return fmt.Errorf("%s: %w", p.name, err)
		}
		if text, err = replace(text, p.name, content); err != nil {
			return fmt.Errorf("%s: %w", page, err)
		}
	}
	return os.WriteFile(page, text, 0o644)
}

// part is a generated part of the page.
type part struct {
	name string
	make func(context.Context) (string, error)
}

func (s settings) allParts(input io.Reader) []part {
	return []part{
		{"machine", func(ctx context.Context) (string, error) { return machine(ctx), nil }},
		{"figures", func(context.Context) (string, error) { return figureTable(input) }},
		{"simulation", func(ctx context.Context) (string, error) {
			return s.compared(ctx, s.shipped, "performance.svg")
		}},
		{"designs", func(ctx context.Context) (string, error) {
			return s.compared(ctx, s.weighed, "performance-designs.svg")
		}},
	}
}

// compared carries out a plan, draws its plot and returns its tables.
func (s settings) compared(ctx context.Context, plan func() (simulate.Plan, error), plot string) (string, error) {
	planned, err := plan()
	if err != nil {
		return "", err
	}
	if len(planned.Scenarios) == 0 {
		return "None of the workloads was wanted.\n", nil
	}
	report, err := planned.Compare(ctx)
	if err != nil {
		return "", err
	}
	return markdown(report), writePlot(filepath.Join(s.docs, plot), report)
}

// wants reports whether the flag's list names it; an empty list names everything.
func wants(list, name string) bool {
	return list == "" || slices.Contains(strings.Split(list, ","), name)
}

// shipped compares all arms on all workloads, and on the trace if there is one.
func (s settings) shipped() (simulate.Plan, error) {
	plan := simulate.Plan{Arms: simulate.Arms(), Seeds: s.seeds}
	for _, scenario := range simulate.Scenarios() {
		if wants(s.workloads, scenario.Name) {
			plan.Scenarios = append(plan.Scenarios, scenario)
		}
	}
	if s.trace != "" {
		sessions, err := workload.ReadFile(s.trace, 0)
		if err != nil {
			return simulate.Plan{}, err
		}
		plan.Scenarios = append(plan.Scenarios, simulate.FromTrace(filepath.Base(s.trace), sessions, s.replicas))
	}
	return plan, nil
}

// weighed compares the designs that are not shipped with those that are, on the workloads
// that tell them apart.
func (s settings) weighed() (simulate.Plan, error) {
	names := []string{simulate.Promise, simulate.Rebalanced}
	for _, d := range simulate.Designs() {
		names = append(names, d.Name)
	}
	arms, err := simulate.FindArms(names)
	if err != nil {
		return simulate.Plan{}, err
	}
	plan := simulate.Plan{Arms: arms, Seeds: s.seeds}
	for _, name := range []string{"swe-async", "swe-verbose", "mixed-fleet", "long-context", "swe-group-0.5"} {
		if !wants(s.workloads, name) {
			continue
		}
		found, err := simulate.Find(name)
		if err != nil {
			return simulate.Plan{}, err
		}
		plan.Scenarios = append(plan.Scenarios, found...)
	}
	return plan, nil
}

func writePlot(path string, report simulate.Report) error {
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	return errors.Join(report.Plot(file), file.Close())
}

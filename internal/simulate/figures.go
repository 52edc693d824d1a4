package simulate

import (
	"fmt"
	"io"
	"slices"
)

// Figure is one headline number, printed as `figure NAME VALUE UNIT`.
type Figure struct {
	Name  string
	Value float64
	Unit  string
}

// headline says how a figure is read from a report.
type headline struct {
	name, workload, arm string
	read                func(Row) float64
	over                string // the arm that the value is relative to; empty: none
}

func variationOf(r Row) float64 { return r.Variation.Mean }
func durationOf(r Row) float64  { return r.Duration.Mean }
func secondsOf(r Row) float64   { return r.Seconds.Mean }

// headlines are the figures of the simulation, in the order in which they are printed.
func headlines() []headline {
	return []headline{
		{"sim_async_cv_today", "swe-async", Today, variationOf, ""},
		{"sim_async_cv", "swe-async", Promise, variationOf, ""},
		{"sim_async_duration", "swe-async", Promise, durationOf, ""},
		{"sim_group_cv", "swe-group-0.5", Promise, variationOf, ""},
		{"sim_mixed_duration", "mixed-fleet", Promise, durationOf, ""},
		{"sim_rebalance_async_cv", "swe-async", Rebalanced, variationOf, ""},
		{"sim_long_context_rebalance_duration", "long-context", Rebalanced, secondsOf, Promise},
	}
}

// Figures returns the headline figures whose workload and arms the report has.
func (r Report) Figures() []Figure {
	var out []Figure
	for _, h := range headlines() {
		c, _ := r.Comparison(h.workload)
		row, ok := c.Row(h.arm)
		if !ok {
			continue
		}
		value := h.read(row)
		if h.over != "" {
			base, ok := c.Row(h.over)
			if !ok {
				continue
			}
			value /= h.read(base)
		}
		out = append(out, Figure{Name: h.name, Value: value, Unit: "ratio"})
	}
	return out
}

// Headlines returns the names of the workloads and arms that the headline figures are read
// from, each once.
func Headlines() (workloads, arms []string) {
	for _, h := range headlines() {
		workloads, arms = appendNew(workloads, h.workload), appendNew(arms, h.arm)
		if h.over != "" {
			arms = appendNew(arms, h.over)
		}
	}
	return workloads, arms
}

func appendNew(names []string, name string) []string {
	if slices.Contains(names, name) {
		return names
	}
	return append(names, name)
}

func (r Report) writeFigures(w io.Writer) error {
	for _, f := range r.Figures() {
		if _, err := fmt.Fprintf(w, "figure %s %.4f %s\n", f.Name, f.Value, f.Unit); err != nil {
			return err
		}
	}
	return nil
}

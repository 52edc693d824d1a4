package main

import (
	"context"
	"strings"

	"github.com/berthmaster/berthmaster/internal/metrics"
)

func metricsPage(context.Context, string) (string, error) {
	var d document
	d.heading(1, "Metrics")
	d.paragraph("What the manager exports on `--metrics-bind-address`, besides the metrics of controller-runtime and of Go. " +
		"No label is chosen by clients: none carries a session, a request or a version.")
	d.paragraph("")
	var rows [][]string
	for _, f := range metrics.Families() {
		labels := make([]string, 0, len(f.Labels))
		for _, l := range f.Labels {
			labels = append(labels, code(l))
		}
		rows = append(rows, []string{code(f.Name), string(f.Kind), f.Unit, strings.Join(labels, ", "), f.Help})
	}
	d.table([]string{"name", "type", "unit", "labels", "meaning"}, rows)
	return d.String(), nil
}

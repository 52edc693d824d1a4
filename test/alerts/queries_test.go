package alerts

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"

	"github.com/berthmaster/berthmaster/internal/metrics"
)

// vocabulary is every series name with the labels that it has.
func vocabulary() map[string][]string {
	out := map[string][]string{}
	for _, f := range metrics.Families() {
		own := append([]string{labels.MetricName}, f.Labels...)
		out[f.Name] = own
		if f.Kind == metrics.Histogram {
			delete(out, f.Name)
			out[f.Name+"_bucket"], out[f.Name+"_sum"], out[f.Name+"_count"] = append(slices.Clone(own), "le"), own, own
		}
	}
	return out
}

// departures are the words of a query that are no series, and the labels that its series do not have.
func departures(t *testing.T, query string) []string {
	t.Helper()
	expression, err := parser.NewParser(parser.Options{}).ParseExpr(strings.ReplaceAll(query, "$__rate_interval", "5m"))
	if err != nil {
		return []string{err.Error()}
	}
	known := vocabulary()
	var out []string
	has := map[string]bool{}
	parser.Inspect(expression, func(node parser.Node, _ []parser.Node) error {
		selector, ok := node.(*parser.VectorSelector)
		if !ok {
			return nil
		}
		own, ok := known[selector.Name]
		if !ok {
			out = append(out, "no series "+selector.Name)
		}
		for _, l := range own {
			has[l] = true
		}
		for _, m := range selector.LabelMatchers {
			if ok && !slices.Contains(own, m.Name) {
				out = append(out, selector.Name+" has no label "+m.Name)
			}
		}
		return nil
	})
	parser.Inspect(expression, func(node parser.Node, _ []parser.Node) error {
		var by []string
		switch n := node.(type) {
		case *parser.AggregateExpr:
			by = n.Grouping
		case *parser.BinaryExpr:
			if n.VectorMatching != nil {
				by = n.VectorMatching.MatchingLabels
			}
		}
		for _, l := range by {
			if !has[l] {
				out = append(out, "nothing in it has the label "+l)
			}
		}
		return nil
	})
	return out
}

func TestRulesAskForSeriesThatThereAre(t *testing.T) {
	for name, rule := range rules(t) {
		for _, d := range departures(t, rule.Expr) {
			t.Errorf("%s: %s", name, d)
		}
	}
}

func TestTheDashboardAsksForSeriesThatThereAre(t *testing.T) {
	raw, err := os.ReadFile(filepath.Join(root, "config/prometheus/dashboard.json"))
	if err != nil {
		t.Fatal(err)
	}
	var board struct {
		Panels []struct {
			Title   string
			Targets []struct{ Expr string }
		}
	}
	if err := json.Unmarshal(raw, &board); err != nil {
		t.Fatal(err)
	}
	asked := 0
	for _, panel := range board.Panels {
		if len(panel.Targets) == 0 {
			t.Errorf("panel %q asks for nothing", panel.Title)
		}
		for _, target := range panel.Targets {
			asked++
			for _, d := range departures(t, target.Expr) {
				t.Errorf("panel %q: %s", panel.Title, d)
			}
		}
	}
	if asked < 30 {
		t.Errorf("%d queries, want those of the whole board", asked)
	}
}

// A check that accepts everything would let any board through.
func TestDeparturesAreNoticed(t *testing.T) {
	for _, query := range []string{
		"berthmaster_no_such_series", `berthmaster_pool_sessions{session="s"}`, "sum by (version) (berthmaster_pool_sessions)",
		"berthmaster_wait_duration_seconds", "berthmaster_pool_sessions +",
	} {
		if len(departures(t, query)) == 0 {
			t.Errorf("%s is let through", query)
		}
	}
}

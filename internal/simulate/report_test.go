package simulate

import (
	"bytes"
	"context"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/berthmaster/berthmaster/internal/simulate/workload"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// smallPlan is quick and has everything that a report shows.
func smallPlan(t *testing.T) Plan {
	t.Helper()
	arms, err := FindArms([]string{"session-round-robin", "power-of-two", Promise, Rebalanced, "longest-first"})
	if err != nil {
		t.Fatal(err)
	}
	plan := Plan{Scenarios: []Scenario{sweAsync(), longContext()}, Arms: arms, Seeds: 2}
	for i := range plan.Scenarios {
		shape := swe()
		shape.Tasks = 40
		plan.Scenarios[i].Fleet, plan.Scenarios[i].InFlight = plan.Scenarios[i].Fleet[:4], 16
		plan.Scenarios[i].Sessions = shape.Generate
	}
	return plan
}

func compareOrFail(t *testing.T, p Plan) Report {
	t.Helper()
	report, err := p.Compare(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return report
}

func TestCompareDependsOnThePlanAlone(t *testing.T) {
	first, again := compareOrFail(t, smallPlan(t)), compareOrFail(t, smallPlan(t))
	if diff := cmp.Diff(first, again); diff != "" {
		t.Error(diff)
	}
}

func TestCompareSummarisesTheRunsOfEachSeed(t *testing.T) {
	plan := smallPlan(t)
	report := compareOrFail(t, plan)
	for i, s := range plan.Scenarios {
		for j, a := range plan.Arms {
			row := report.Comparisons[i].Rows[j]
			var variation, duration []float64
			for seed := uint64(1); seed <= 2; seed++ {
				today, err := Run(s, plan.Arms[0], seed)
				if err != nil {
					t.Fatal(err)
				}
				r, err := Run(s, a, seed)
				if err != nil {
					t.Fatal(err)
				}
				variation = append(variation, r.Variation)
				duration = append(duration, r.Duration.Seconds()/today.Duration.Seconds())
			}
			if row.Arm != a.Name || row.Variation != estimate(variation) || row.Duration != estimate(duration) {
				t.Errorf("%s, %s: row %+v, want variation %v and duration %v", s.Name, a.Name, row, variation, duration)
			}
		}
	}
}

func TestCompareRefusesPlansThatCompareNothing(t *testing.T) {
	good := smallPlan(t)
	for name, p := range map[string]Plan{
		"no workload":              {Arms: good.Arms, Seeds: 1},
		"no arm":                   {Scenarios: good.Scenarios, Seeds: 1},
		"no seed":                  {Scenarios: good.Scenarios, Arms: good.Arms},
		"without today's practice": {Scenarios: good.Scenarios, Arms: good.Arms[1:], Seeds: 1},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := p.Compare(t.Context()); err == nil {
				t.Error("accepted")
			}
		})
	}
}

func TestCompareStopsWhenItsContextIsDone(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := smallPlan(t).Compare(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
}

func TestCompareReportsTheFirstErrorOfThePlan(t *testing.T) {
	plan := smallPlan(t)
	plan.Scenarios[1].Sessions = func(seed uint64) ([]workload.Session, error) {
		return nil, fmt.Errorf("no sessions for %d", seed)
	}
	_, err := plan.Compare(t.Context())
	if err == nil || !strings.Contains(err.Error(), "long-context, seed 1: no sessions for 1") {
		t.Errorf("error %v", err)
	}
}

// rows makes a row from variation and duration of each seed.
func row(arm string, runs ...[2]float64) Row {
	r := Row{Arm: arm}
	for i, v := range runs {
		r.Runs = append(r.Runs, SeedResult{Seed: uint64(i) + 1, Variation: v[0], Duration: v[1]})
	}
	return r
}

func TestWinsNeedTwoStandardErrorsOfTheDifference(t *testing.T) {
	base := row("base", [2]float64{0.5, 1}, [2]float64{0.7, 1.1}, [2]float64{0.9, 0.9})
	for name, c := range map[string]struct {
		row  Row
		want []Win
	}{
		"equal":                                 {base, nil},
		"worse":                                 {row("w", [2]float64{0.6, 1.1}, [2]float64{0.8, 1.2}, [2]float64{1, 1}), nil},
		"a little better in each seed":          {row("b", [2]float64{0.49, 1}, [2]float64{0.69, 1.1}, [2]float64{0.889, 0.9}), []Win{InVariation}},
		"much better on average, but by chance": {row("c", [2]float64{0.1, 1}, [2]float64{0.7, 1.1}, [2]float64{0.9, 0.9}), nil},
		"better in both":                        {row("d", [2]float64{0.4, 0.9}, [2]float64{0.6, 1}, [2]float64{0.8, 0.79}), []Win{InVariation, InDuration}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, c.row.Wins(base)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestFiguresAreNamedAndReadAsDocumented(t *testing.T) {
	at := func(arm string, variation, duration, seconds float64) Row {
		return Row{Arm: arm, Variation: Estimate{Mean: variation}, Duration: Estimate{Mean: duration}, Seconds: Estimate{Mean: seconds}}
	}
	rows := []Row{at(Today, 0.2, 1, 100), at(Promise, 0.06, 0.9, 80), at(Rebalanced, 0.03, 0.8, 76)}
	r := Report{Seeds: 1}
	for _, name := range []string{"swe-async", "swe-group-0.5", "mixed-fleet", "long-context"} {
		r.Comparisons = append(r.Comparisons, Comparison{Workload: name, Rows: rows})
	}
	var out strings.Builder
	if err := r.Write(&out, FigureLines); err != nil {
		t.Fatal(err)
	}
	want := `figure sim_async_cv_today 0.2000 ratio
figure sim_async_cv 0.0600 ratio
figure sim_async_duration 0.9000 ratio
figure sim_group_cv 0.0600 ratio
figure sim_mixed_duration 0.9000 ratio
figure sim_rebalance_async_cv 0.0300 ratio
figure sim_long_context_rebalance_duration 0.9500 ratio
`
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Error(diff)
	}
	r.Comparisons = r.Comparisons[:1]
	if got := len(r.Figures()); got != 4 {
		t.Errorf("%d figures of swe-async alone, want 4", got)
	}
}

func TestTablesShowEveryArmOnce(t *testing.T) {
	report := compareOrFail(t, smallPlan(t))
	for _, f := range []Format{Table, Markdown} {
		var out strings.Builder
		if err := report.Write(&out, f); err != nil {
			t.Fatal(err)
		}
		for _, row := range report.Comparisons[0].Rows {
			line := "\n" + row.Arm + " "
			if f == Markdown {
				line = "\n| " + row.Arm + " |"
			}
			if got := strings.Count(out.String(), line); got != len(report.Comparisons) {
				t.Errorf("%s: %d lines of %s, want %d:\n%s", f, got, row.Arm, len(report.Comparisons), out.String())
			}
		}
		if _, better, _ := strings.Cut(out.String(), "Better than r1 by more than two standard errors: "); !strings.Contains(better, "longest-first in variation") {
			t.Errorf("%s does not say who is better than r1:\n%s", f, out.String())
		}
	}
}

func TestMarkdownTablesHaveOneCellPerColumn(t *testing.T) {
	var out strings.Builder
	if err := compareOrFail(t, smallPlan(t)).Write(&out, Markdown); err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(out.String()) {
		if strings.HasPrefix(line, "|") && strings.Count(line, "|") != len(columns)+1 {
			t.Errorf("%d bars in %s", strings.Count(line, "|"), line)
		}
	}
}

func TestJSONCarriesTheReport(t *testing.T) {
	report := compareOrFail(t, smallPlan(t))
	var out bytes.Buffer
	if err := report.Write(&out, JSON); err != nil {
		t.Fatal(err)
	}
	var back Report
	if err := json.Unmarshal(out.Bytes(), &back); err != nil {
		t.Fatal(err)
	}
	for i := range report.Comparisons {
		for j := range report.Comparisons[i].Rows {
			report.Comparisons[i].Rows[j].Kind = 0 // not part of the form
		}
	}
	if diff := cmp.Diff(report, back); diff != "" {
		t.Error(diff)
	}
}

func TestPlotIsWellFormedAndShowsEveryArm(t *testing.T) {
	report := compareOrFail(t, smallPlan(t))
	report.Comparisons[0].Rows[0].Arm = "<script>&"
	var out bytes.Buffer
	if err := report.Plot(&out); err != nil {
		t.Fatal(err)
	}
	bars, names := 0, make(map[string]int)
	decoder := xml.NewDecoder(&out)
	for {
		token, err := decoder.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		switch v := token.(type) {
		case xml.StartElement:
			if v.Name.Local == "line" {
				bars++
			}
		case xml.CharData:
			names[string(v)]++
		}
	}
	if want := 2 * 2 * len(report.Comparisons[0].Rows); bars != want {
		t.Errorf("%d bars, want %d", bars, want)
	}
	for _, name := range []string{"<script>&", Today, "long-context"} {
		if names[name] != 1 {
			t.Errorf("%q is shown %d times", name, names[name])
		}
	}
}

// broken is a writer that fails.
type broken struct{ err error }

func (b broken) Write([]byte) (int, error) { return 0, b.err }

func TestWriteAndPlotPassOnTheErrorOfTheirWriter(t *testing.T) {
	report, full := compareOrFail(t, smallPlan(t)), errors.New("the disk is full")
	for _, f := range Formats() {
		if err := report.Write(broken{full}, f); !errors.Is(err, full) {
			t.Errorf("%s: %v", f, err)
		}
	}
	if err := report.Plot(broken{full}); !errors.Is(err, full) {
		t.Errorf("plot: %v", err)
	}
	if err := report.Write(io.Discard, "yaml"); !errors.Is(err, ErrUnknownFormat) {
		t.Errorf("yaml: %v", err)
	}
}

func TestParseFormatKnowsAllFormats(t *testing.T) {
	for _, f := range Formats() {
		if got, err := ParseFormat(string(f)); got != f || err != nil {
			t.Errorf("%s: %s, %v", f, got, err)
		}
	}
	if _, err := ParseFormat("yaml"); !errors.Is(err, ErrUnknownFormat) || !strings.Contains(err.Error(), "markdown") {
		t.Errorf("yaml: %v", err)
	}
}

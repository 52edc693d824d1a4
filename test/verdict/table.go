package verdict

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/berthmaster/berthmaster/internal/enginesim/execlog"
	"github.com/berthmaster/berthmaster/internal/simulate/workload"
)

// Backend is one of a pool's backends.
type Backend struct {
	Name string
	// Capacity is how many executions it runs at once, at least 1.
	Capacity int64
}

// Row is what one backend did.
type Row struct {
	Backend
	// Sessions is how many sessions had at least one execution there.
	Sessions int
	// Executions is how many began there.
	Executions int
	// OutputTokens is what those that ended generated.
	OutputTokens int
}

// Table is what each backend did, in the order of their names.
type Table []Row

// Measured counts what the engines wrote down.
func Measured(backends []Backend, records []execlog.Record) Table {
	t := newTable(backends)
	sessions := map[[2]string]bool{}
	for _, turn := range execlog.Check(records, nil).Turns {
		for _, e := range turn.Executions {
			row := t.row(e.Backend)
			if row == nil {
				continue
			}
			row.Executions++
			row.OutputTokens += e.OutputTokens
			if at := [2]string{turn.Session, e.Backend}; !sessions[at] {
				sessions[at] = true
				row.Sessions++
			}
		}
	}
	return t
}

// RoundRobin counts what the backends would do if whole sessions were dealt out
// to them one after the other, as they arrive.
func RoundRobin(backends []Backend, sessions []workload.Session) Table {
	t := newTable(backends)
	arriving := slices.Clone(sessions)
	slices.SortStableFunc(arriving, func(a, b workload.Session) int {
		return int(a.Arrival - b.Arrival)
	})
	for i, session := range arriving {
		row := &t[i%len(t)]
		row.Sessions++
		row.Executions += len(session.Turns)
		row.OutputTokens += session.OutputTokens()
	}
	return t
}

func newTable(backends []Backend) Table {
	t := make(Table, 0, len(backends))
	for _, b := range backends {
		t = append(t, Row{Backend: b})
	}
	slices.SortFunc(t, func(a, b Row) int { return strings.Compare(a.Name, b.Name) })
	return t
}

func (t Table) row(backend string) *Row {
	for i := range t {
		if t[i].Name == backend {
			return &t[i]
		}
	}
	return nil
}

// Share returns the row's output tokens per capacity, relative to the whole
// table's: 1 is a fair share.
func (t Table) Share(r Row) float64 {
	tokens, capacity := t.totals()
	if tokens == 0 {
		return 0
	}
	return (float64(r.OutputTokens) / float64(r.Capacity)) / (float64(tokens) / float64(capacity))
}

// Variation returns the coefficient of variation of the output tokens per
// capacity: the standard deviation over the mean, 0 when all have the same.
func (t Table) Variation() float64 {
	if len(t) == 0 {
		return 0
	}
	var sum, squares float64
	for _, r := range t {
		x := float64(r.OutputTokens) / float64(r.Capacity)
		sum += x
		squares += x * x
	}
	n := float64(len(t))
	mean := sum / n
	if mean == 0 {
		return 0
	}
	return math.Sqrt(max(0, squares/n-mean*mean)) / mean
}

// Without returns the table of the other backends.
func (t Table) Without(backends ...string) Table {
	return slices.DeleteFunc(slices.Clone(t), func(r Row) bool { return slices.Contains(backends, r.Name) })
}

func (t Table) totals() (tokens int, capacity int64) {
	for _, r := range t {
		tokens += r.OutputTokens
		capacity += r.Capacity
	}
	return tokens, capacity
}

// Print writes the measured table beside what round-robin would have done if
// nothing had happened to any backend. The disturbed are left out of a second
// variation, since what they missed says nothing about the choice of homes.
func Print(w io.Writer, measured, roundRobin Table, disturbed ...string) error {
	out := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(out, "\t\tmeasured\t\t\t\tround-robin\t\t\t")
	fmt.Fprintln(out, "backend\tcapacity\tsessions\texecutions\toutput tokens\tshare\tsessions\toutput tokens\tshare\t")
	for i, r := range measured {
		other := roundRobin[i]
		fmt.Fprintf(out, "%s\t%d\t%d\t%d\t%d\t%.2f\t%d\t%d\t%.2f\t\n",
			r.Name, r.Capacity, r.Sessions, r.Executions, r.OutputTokens, measured.Share(r),
			other.Sessions, other.OutputTokens, roundRobin.Share(other))
	}
	variation := "%s\t\t\t\t\t%.4f\t\t\t%.4f\t\n"
	fmt.Fprintf(out, variation, "variation", measured.Variation(), roundRobin.Variation())
	if len(disturbed) > 0 {
		fmt.Fprintf(out, variation, "of the undisturbed", measured.Without(disturbed...).Variation(), roundRobin.Without(disturbed...).Variation())
	}
	return out.Flush()
}

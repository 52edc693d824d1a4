package cli

import (
	"bytes"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/berthmaster/berthmaster/internal/simulate"
)

// call runs the command line and returns what it printed and how it ended.
func call(args ...string) (out string, err error) {
	var stdout bytes.Buffer
	root := New(genericiooptions.IOStreams{In: strings.NewReader(""), Out: &stdout, ErrOut: io.Discard})
	root.SetArgs(args)
	err = root.Execute()
	return stdout.String(), err
}

func writeTrace(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "small.csv")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

const smallTrace = `arrival_ms,session,turn,input_tokens,output_tokens
0,a,0,100,10
0,b,0,100,20
500,a,1,140,30
`

func TestSimulateReplaysATraceAndDrawsIt(t *testing.T) {
	plot := filepath.Join(t.TempDir(), "out.svg")
	out, err := call("simulate", "--trace", writeTrace(t, smallTrace), "--replicas", "2", "--policy", "r1",
		"--seeds", "1", "-o", "json", "--plot", plot)
	if err != nil {
		t.Fatal(err)
	}
	var report simulate.Report
	if err := json.Unmarshal([]byte(out), &report); err != nil {
		t.Fatal(err)
	}
	c, ok := report.Comparison("small.csv")
	if !ok || len(c.Rows) != 2 || c.Rows[1].Arm != "r1" || report.Seeds != 1 {
		t.Errorf("report %+v", report)
	}
	if svg, err := os.ReadFile(plot); err != nil || !strings.HasPrefix(string(svg), "<svg") {
		t.Errorf("plot %.20q, %v", svg, err)
	}
}

func TestSimulateReadsOnlyAsManyRequestsAsTheLimitSays(t *testing.T) {
	path := writeTrace(t, smallTrace+"broken\n")
	if _, err := call("simulate", "--trace", path, "--limit", "3", "--seeds", "1", "--policy", "random"); err != nil {
		t.Error(err)
	}
	if _, err := call("simulate", "--trace", path, "--seeds", "1"); err == nil || !strings.Contains(err.Error(), "line 5") {
		t.Errorf("without a limit: %v", err)
	}
}

func TestSimulateRunsBuiltInWorkloads(t *testing.T) {
	out, err := call("simulate", "--workload", "mixed-fleet,long-context", "--policy", "power-of-two", "--seeds", "1")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"mixed-fleet\n", "long-context\n", "\npower-of-two", "\ngroup-round-robin"} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
}

func TestSimulatePrintsEveryFigureOnce(t *testing.T) {
	out, err := call("simulate", "--workload", "all", "--seeds", "1", "-o", "figures")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{
		"sim_async_cv_today", "sim_async_cv", "sim_async_duration", "sim_group_cv", "sim_mixed_duration",
		"sim_rebalance_async_cv", "sim_long_context_rebalance_duration",
	} {
		if got := strings.Count(out, "figure "+name+" "); got != 1 {
			t.Errorf("%s is printed %d times:\n%s", name, got, out)
		}
	}
	if got := strings.Count(out, "\n"); got != 7 {
		t.Errorf("%d lines, want 7:\n%s", got, out)
	}
}

func TestSimulateNamesTheFlagThatIsWrong(t *testing.T) {
	trace := writeTrace(t, smallTrace)
	for name, c := range map[string]struct {
		args []string
		want string
	}{
		"neither workload nor trace": {nil, "workload trace"},
		"both":                       {[]string{"--workload", "burst", "--trace", trace}, "workload trace"},
		"an unknown workload":        {[]string{"--workload", "web"}, "--workload: unknown workload"},
		"an unknown policy":          {[]string{"--workload", "burst", "--policy", "best"}, "--policy: unknown policy"},
		"an unknown format":          {[]string{"--workload", "burst", "-o", "xml"}, "--output: unknown output format"},
		"no seeds":                   {[]string{"--workload", "burst", "--seeds", "0"}, "0 seeds"},
		"no replicas":                {[]string{"--trace", trace, "--replicas", "0"}, "--replicas: 0"},
		"a trace that is not there":  {[]string{"--trace", "none.csv"}, "--trace: "},
		"a trace of another form":    {[]string{"--trace", "none.txt"}, "unknown trace format"},
		"a plot that has no place":   {[]string{"--trace", trace, "--seeds", "1", "--plot", filepath.Join(trace, "x.svg")}, "--plot: "},
		"an argument":                {[]string{"--workload", "burst", "now"}, "unknown command"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := call(append([]string{"simulate"}, c.args...)...)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want one with %q", err, c.want)
			}
		})
	}
}

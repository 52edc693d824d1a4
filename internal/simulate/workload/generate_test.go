package workload

import (
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// drawShape draws a valid shape, small enough to generate often.
func drawShape(t *rapid.T) Shape {
	s := Bundled()
	s.Tasks = rapid.IntRange(1, 12).Draw(t, "tasks")
	s.Samples = rapid.IntRange(1, 4).Draw(t, "samples")
	s.Every = time.Duration(rapid.IntRange(0, 5).Draw(t, "every")) * time.Second
	s.Correlation = rapid.Float64Range(0, 1).Draw(t, "correlation")
	s.Verbosity = rapid.Float64Range(0, 2).Draw(t, "verbosity")
	s.ContextLimit = rapid.SampledFrom([]int{0, 1, 20000, 131072}).Draw(t, "context limit")
	return s
}

func TestGenerateGivesWellFormedSessions(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		shape := drawShape(t)
		sessions, err := shape.Generate(rapid.Uint64().Draw(t, "seed"))
		if err != nil {
			t.Fatal(err)
		}
		if got, want := len(sessions), shape.Tasks*shape.Samples; got != want {
			t.Fatalf("%d sessions, want %d", got, want)
		}
		checkWellFormed(t, sessions)
		for _, s := range sessions {
			if shape.ContextLimit > 0 && len(s.Turns) > 1 && s.Context() > shape.ContextLimit {
				t.Fatalf("session %s grows to %d tokens of at most %d", s.ID, s.Context(), shape.ContextLimit)
			}
		}
	})
}

// checkWellFormed fails when the sessions break what the package promises of every workload.
func checkWellFormed(t interface{ Fatalf(string, ...any) }, sessions []Session) {
	seen := make(map[string]bool)
	for i, s := range sessions {
		if seen[s.ID] || !sessionID.MatchString(s.ID) {
			t.Fatalf("session id %q is repeated or ill-formed", s.ID)
		}
		seen[s.ID] = true
		if i > 0 && s.Arrival < sessions[i-1].Arrival || len(s.Turns) == 0 {
			t.Fatalf("session %s is out of order or without turns", s.ID)
		}
		for n, turn := range s.Turns {
			if turn.Fresh < 1 || turn.Fresh > turn.Prompt || turn.Output < 1 || turn.ToolGap < 0 || turn.NotBefore < 0 {
				t.Fatalf("session %s turn %d: %+v", s.ID, n, turn)
			}
		}
		if s.Turns[0].Fresh != s.Turns[0].Prompt || s.Turns[len(s.Turns)-1].ToolGap != 0 {
			t.Fatalf("session %s: first prompt not fresh, or a tool gap after the end", s.ID)
		}
	}
}

func TestGenerateRepeatsItselfForEqualSeeds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		shape, seed := drawShape(t), rapid.Uint64().Draw(t, "seed")
		first, _ := shape.Generate(seed)
		again, _ := shape.Generate(seed)
		if diff := cmp.Diff(first, again); diff != "" {
			t.Fatal(diff)
		}
		other, _ := shape.Generate(seed + 1)
		if cmp.Equal(first, other) {
			t.Fatal("another seed gives the same sessions")
		}
	})
}

func TestGenerateBeginsLongerWorkloadsWithShorterOnes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		shape, seed := drawShape(t), rapid.Uint64().Draw(t, "seed")
		short, _ := shape.Generate(seed)
		shape.Tasks += 3
		long, _ := shape.Generate(seed)
		if diff := cmp.Diff(short, long[:len(short)]); diff != "" {
			t.Fatal(diff)
		}
	})
}

func TestBundledKeepsThePublishedQuantiles(t *testing.T) {
	sessions, err := Limits{Sessions: 4000}.Generate(1)
	if err != nil {
		t.Fatal(err)
	}
	var turns []int
	upTo1, upTo10, gaps := 0, 0, 0
	for _, s := range sessions {
		turns = append(turns, len(s.Turns))
		for _, turn := range s.Turns[:len(s.Turns)-1] {
			gaps++
			if turn.ToolGap <= time.Second {
				upTo1++
			}
			if turn.ToolGap <= 10*time.Second {
				upTo10++
			}
		}
	}
	slices.Sort(turns)
	for _, q := range []struct {
		at          float64
		want, slack int
	}{{0, 5, 1}, {0.5, 29, 2}, {0.9, 56, 3}, {0.99, 85, 4}, {0.9999, 99, 1}} {
		if got := turns[int(q.at*float64(len(turns)))]; got < q.want-q.slack || got > q.want+q.slack {
			t.Errorf("quantile %v of turns is %d, want %d±%d", q.at, got, q.want, q.slack)
		}
	}
	for want, got := range map[float64]int{0.865: upTo1, 0.951: upTo10} {
		if share := float64(got) / float64(gaps); math.Abs(share-want) > 0.01 {
			t.Errorf("share of gaps is %.3f, want %.3f", share, want)
		}
	}
}

func TestBundledOutputsAreHeavyTailed(t *testing.T) {
	sessions, err := Limits{Sessions: 500}.Generate(2)
	if err != nil {
		t.Fatal(err)
	}
	var outputs []int
	for _, s := range sessions {
		for _, turn := range s.Turns {
			outputs = append(outputs, turn.Output)
		}
	}
	slices.Sort(outputs)
	median, p99 := outputs[len(outputs)/2], outputs[len(outputs)*99/100]
	if p99 < 10*median {
		t.Errorf("p99 %d is not 10 times the median %d", p99, median)
	}
}

func TestLimitsAreKept(t *testing.T) {
	sessions, err := Limits{Sessions: 200, Turns: 7, Output: 50, Every: time.Second}.Generate(3)
	if err != nil {
		t.Fatal(err)
	}
	checkWellFormed(t, sessions)
	longest, largest := 0, 0
	for _, s := range sessions {
		longest = max(longest, len(s.Turns))
		for _, turn := range s.Turns {
			largest = max(largest, turn.Output)
		}
	}
	if longest != 7 || largest != 50 {
		t.Errorf("longest session has %d turns and largest output %d tokens, want 7 and 50", longest, largest)
	}
	if span := sessions[199].Arrival; span < 100*time.Second || span > 400*time.Second {
		t.Errorf("200 arrivals a second apart span %v", span)
	}
}

func TestSiblingsAreAsAlikeAsTheCorrelationSays(t *testing.T) {
	for _, want := range []float64{0, 0.5, 1} {
		shape := Bundled()
		shape.Tasks, shape.Samples, shape.Correlation = 3000, 2, want
		sessions, err := shape.Generate(4)
		if err != nil {
			t.Fatal(err)
		}
		var a, b []float64
		for i := 0; i < len(sessions); i += 2 {
			if sessions[i].Group == "" || sessions[i].Group != sessions[i+1].Group {
				t.Fatalf("sessions %d and %d are no siblings", i, i+1)
			}
			a = append(a, float64(len(sessions[i].Turns)))
			b = append(b, float64(len(sessions[i+1].Turns)))
		}
		if got := correlation(a, b); math.Abs(got-want) > 0.06 {
			t.Errorf("correlation of turns is %.3f, want %.1f", got, want)
		}
	}
}

func correlation(a, b []float64) float64 {
	var ma, mb, ab, aa, bb float64
	for i := range a {
		ma += a[i] / float64(len(a))
		mb += b[i] / float64(len(b))
	}
	for i := range a {
		ab += (a[i] - ma) * (b[i] - mb)
		aa += (a[i] - ma) * (a[i] - ma)
		bb += (b[i] - mb) * (b[i] - mb)
	}
	return ab / math.Sqrt(aa*bb)
}

func TestGenerateNamesTheFieldThatIsWrong(t *testing.T) {
	for name, broken := range map[string]struct {
		field string
		spoil func(*Shape)
	}{
		"no tasks":                        {"Tasks", func(s *Shape) { s.Tasks = 0 }},
		"no samples":                      {"Samples", func(s *Shape) { s.Samples = -1 }},
		"time runs backwards":             {"Every", func(s *Shape) { s.Every = -1 }},
		"a correlation above 1":           {"Correlation", func(s *Shape) { s.Correlation = 1.01 }},
		"a correlation that is no number": {"Correlation", func(s *Shape) { s.Correlation = math.NaN() }},
		"quantiles that end early":        {"Turns", func(s *Shape) { s.Turns = Quantiles{{0, 1}, {0.9, 2}} }},
		"quantiles that fall":             {"ToolGaps", func(s *Shape) { s.ToolGaps = Quantiles{{0, 3}, {1, 2}} }},
		"a median of 0":                   {"Output", func(s *Shape) { s.Output.Median = 0 }},
		"bounds the wrong way round":      {"Result", func(s *Shape) { s.Result.Max = 1 }},
		"an opening of no tokens":         {"Opening", func(s *Shape) { s.Opening.Min = 0 }},
	} {
		t.Run(name, func(t *testing.T) {
			shape := Bundled()
			broken.spoil(&shape)
			_, err := shape.Generate(1)
			if err == nil || !strings.Contains(err.Error(), broken.field) {
				t.Errorf("error %v does not name %s", err, broken.field)
			}
		})
	}
	for _, l := range []Limits{{}, {Sessions: 1, Turns: -1}, {Sessions: 1, Output: -1}, {Sessions: 1, Every: -1}} {
		if _, err := l.Generate(1); err == nil {
			t.Errorf("limits %+v are accepted", l)
		}
	}
}

func TestQuantilesAreMetExactlyAndMeanIsTheMeanOfDraws(t *testing.T) {
	q := Quantiles{{0, 5}, {0.5, 29}, {1, 99}}
	sum := 0.0
	const n = 100000
	for i := range n {
		sum += q.Value((float64(i) + 0.5) / n)
	}
	if got := sum / n; math.Abs(got-q.Mean()) > 0.01 {
		t.Errorf("mean of values %v, Mean %v", got, q.Mean())
	}
	for _, point := range append(q, Quantile{-1, 5}, Quantile{2, 99}) {
		if got := q.Value(point.At); got != point.Value {
			t.Errorf("Value(%v) is %v, want %v", point.At, got, point.Value)
		}
	}
}

package rollouts

import (
	"encoding/xml"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	v1alpha1 "github.com/berthmaster/berthmaster/api/v1alpha1"
	"github.com/berthmaster/berthmaster/test/local"
)

var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

func at(seconds int) time.Time { return noon.Add(time.Duration(seconds) * time.Second) }

// heard is a version of a pool with one backend.
func heard(seconds int, state v1alpha1.BackendState, version string) local.Seen {
	pool := &v1alpha1.InferencePool{}
	pool.Status.Backends = []v1alpha1.BackendStatus{{Name: "a", State: state, WeightVersion: version}}
	return local.Seen{At: at(seconds), Pool: pool}
}

func example() Timeline {
	return Read([]local.Seen{
		heard(-9, "Pending", ""), heard(-5, "Serving", "v1"), heard(-3, "Serving", "v1"), heard(2, "Draining", "v1"),
		heard(3, "Draining", "v1"), heard(4, "Updating", "v1"), heard(6, "Serving", "v2"), heard(30, "Pending", "v2"),
	}, at(0), at(10), []Done{{Change{Version: "v2", Strategy: "Rolling"}, at(1), at(6)}})
}

func TestATimelineHasEveryStateFromWhenItWasHeardOf(t *testing.T) {
	want := []Lane{{"a", []Span{
		{at(0), at(2), "Serving", "v1"}, {at(2), at(4), "Draining", "v1"},
		{at(4), at(6), "Updating", "v1"}, {at(6), at(10), "Serving", "v2"},
	}}}
	if diff := cmp.Diff(want, example().Lanes); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestATimelineInATerminalShowsVersionsAndWhatDoesNotServe(t *testing.T) {
	var out strings.Builder
	if err := example().Print(&out, 10); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(out.String(), "\n")
	if lines[0] != "           a  00ddUU1111" {
		t.Errorf("the lane is %q", lines[0])
	}
	if lines[1] != "               ^Rolling" {
		t.Errorf("the ruler is %q", lines[1])
	}
	if !strings.Contains(lines[2], "0=v1 1=v2") {
		t.Errorf("the legend is %q", lines[2])
	}
}

func TestAShortStateIsNotLostBetweenTwoColumns(t *testing.T) {
	line := example()
	line.Lanes[0].Spans[1].To = at(2).Add(time.Millisecond)
	line.Lanes[0].Spans[2].From = line.Lanes[0].Spans[1].To
	line.Lanes[0].Spans[2].State = "Serving"
	var out strings.Builder
	if err := line.Print(&out, 3); err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(out.String(), "           a  d") {
		t.Errorf("a millisecond of draining is not shown in\n%s", out.String())
	}
}

func TestADrawingIsWellFormedAndShowsEverySpan(t *testing.T) {
	line := example()
	line.Starts = []time.Time{at(1), at(1), at(9), at(99)}
	var out strings.Builder
	if err := line.Draw(&out, `a & b <c>`); err != nil {
		t.Fatal(err)
	}
	titles, in := 0, xml.NewDecoder(strings.NewReader(out.String()))
	for {
		token, err := in.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatalf("the drawing is not XML: %v", err)
		}
		if start, ok := token.(xml.StartElement); ok && start.Name.Local == "title" {
			titles++
		}
	}
	if titles != 4+2 {
		t.Errorf("%d spans and columns are drawn, of 4 and 2", titles)
	}
	for _, text := range []string{"a &amp; b &lt;c&gt;", "Rolling to v2, 5.0 s", "draining", "serves v2"} {
		if !strings.Contains(out.String(), text) {
			t.Errorf("%q is not in the drawing", text)
		}
	}
	if strings.Contains(out.String(), ">pausing<") {
		t.Error("a state that nobody was in is explained")
	}
}

func TestTheLongestGapMayReachIntoTheTimeThatIsLookedAt(t *testing.T) {
	moments := []time.Time{at(9), at(0), at(4), at(5)}
	for name, c := range map[string]struct {
		from, to int
		want     time.Duration
		begun    int
	}{
		"all of them":            {0, 9, 4 * time.Second, 0},
		"one that began before":  {3, 4, 4 * time.Second, 0},
		"one that ends later":    {5, 6, 4 * time.Second, 5},
		"only what lies between": {5, 9, 4 * time.Second, 5},
	} {
		t.Run(name, func(t *testing.T) {
			if gap, begun := Longest(moments, at(c.from), at(c.to)); gap != c.want || begun != at(c.begun) {
				t.Errorf("%v from %v, want %v from %v", gap, begun, c.want, at(c.begun))
			}
		})
	}
	if gap, _ := Longest(nil, at(0), at(1)); gap != 0 {
		t.Errorf("a gap of %v between nothing", gap)
	}
}

func TestAPoolHasConvergedOnceEveryBackendServesThePublishedVersion(t *testing.T) {
	pool := heard(0, v1alpha1.BackendServing, "v2").Pool
	pool.Status.Weights = &v1alpha1.WeightsStatus{Published: "v2"}
	if err := Converged("v2")(pool); err != nil {
		t.Error(err)
	}
	for name, spoil := range map[string]func(*v1alpha1.InferencePool){
		"nothing is published":   func(p *v1alpha1.InferencePool) { p.Status.Weights = nil },
		"another is published":   func(p *v1alpha1.InferencePool) { p.Status.Weights.Published = "v1" },
		"a backend has another":  func(p *v1alpha1.InferencePool) { p.Status.Backends[0].WeightVersion = "v1" },
		"a backend is not there": func(p *v1alpha1.InferencePool) { p.Status.Backends[0].State = v1alpha1.BackendUpdating },
	} {
		spoilt := pool.DeepCopy()
		spoil(spoilt)
		if Converged("v2")(spoilt) == nil {
			t.Errorf("%s: converged", name)
		}
	}
}

package enginesim

import (
	"os"
	"slices"
	"strings"
	"testing"
)

const manual = "../../docs/simulated-engine.md"

// firstCells are the first cells of the rows of a table of the manual, under its heading.
func firstCells(t *testing.T, heading string) []string {
	t.Helper()
	raw, err := os.ReadFile(manual)
	if err != nil {
		t.Fatal(err)
	}
	_, section, found := strings.Cut(string(raw), heading+"\n")
	if !found {
		t.Fatalf("%s has no %q", manual, heading)
	}
	section, _, _ = strings.Cut(section, "\n## ")
	var out []string
	for line := range strings.Lines(section) {
		if cells := strings.Split(line, "|"); len(cells) > 3 {
			out = append(out, cells[1])
		}
	}
	return out[2:] // without the head and the rule below it
}

// quoted are the words in backquotes, without what precedes a space in them.
func quoted(cells []string) []string {
	var out []string
	for _, cell := range cells {
		for i, part := range strings.Split(cell, "`") {
			if i%2 == 1 {
				out = append(out, part[strings.LastIndex(part, " ")+1:])
			}
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

func TestTheManualHasEveryEndpointAndNoOther(t *testing.T) {
	s := &Server{}
	var routes []string
	for _, r := range slices.Concat(s.openRoutes(), s.normalRoutes(), s.adminRoutes(), s.legacyRoutes()) {
		routes = append(routes, r.path)
	}
	absent := []string{"/begin_weight_update", "/end_weight_update", "/pull_weights", "x-override-*"}
	listed := quoted(firstCells(t, "## Endpoints"))
	for _, path := range routes {
		if !slices.Contains(listed, path) {
			t.Errorf("%s is not in the manual", path)
		}
	}
	for _, path := range listed {
		if !slices.Contains(routes, path) && !slices.Contains(absent, path) {
			t.Errorf("the manual lists %s, which is not served", path)
		}
	}
}

func TestTheManualHasEveryFaultAndNoOther(t *testing.T) {
	listed := quoted(firstCells(t, "## Faults"))
	for _, kind := range faultKinds {
		if !slices.Contains(listed, string(kind)) {
			t.Errorf("%s is not in the manual", kind)
		}
	}
	if len(listed) != len(faultKinds) {
		t.Errorf("the manual lists %v, the kinds are %v", listed, faultKinds)
	}
}

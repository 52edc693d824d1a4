package cli

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/berthmaster/berthmaster/internal/cli/live"
)

func aPicture() *picture {
	return &picture{
		pool: "policy", namespace: "rl", order: sortLoad, at: time.Date(2026, 5, 4, 12, 0, 5, 0, time.UTC),
		live: &live.Pool{
			Epoch: 1, Term: 3, Leasing: "Open", Sessions: 40, Waiting: 2, PublishedVersion: "step-41", TargetVersion: "step-42",
			Backends: []live.Backend{
				{Name: "sglang-0", Admissible: true, Capacity: 256, Outstanding: 64, Sessions: 12, WeightVersion: "step-41"},
				{Name: "sglang-1", Admissible: true, Capacity: 64, Outstanding: 60, Sessions: 20, WeightVersion: "step-42"},
				{Name: "sglang-2", Reason: "Draining", Drain: "Move", Capacity: 256, Outstanding: 3, Sessions: 8, WeightVersion: "step-40"},
				{Name: "sglang-3", Reason: "CapacityUnknown"},
			},
			Senders: []live.Sender{{Name: "eval", Access: "Fenced", Counted: 1}, {Name: "train", Access: "Open", Counted: 126, MinGeneration: 3}},
		},
	}
}

func drawn(p *picture, s screen) string {
	var out bytes.Buffer
	p.draw(&out, s)
	return out.String()
}

func TestThePictureOnPaper(t *testing.T) {
	want := `policy  rl  epoch 1  term 3  40 sessions  2 waiting  12:00:05
weights step-41, going to step-42

BACKEND    STATE             LOAD   OUT/CAP   SESSIONS   VERSION
sglang-1   Serving            94%   60/64     20         step-42
sglang-0   Serving            25%   64/256    12         step-41
sglang-2   Draining            1%   3/256     8          step-40
sglang-3   CapacityUnknown   -      0/?       0          -

SENDER   ACCESS    COUNTED   GENERATION
eval     Fencing   1         0
train    Open      126       3
`
	if diff := cmp.Diff(want, drawn(aPicture(), screen{})); diff != "" {
		t.Error(diff)
	}
}

func TestBackendsAreSortedAsAsked(t *testing.T) {
	for order, want := range map[sortOrder]string{
		sortLoad: "1 0 2 3", sortOutstanding: "0 1 2 3", sortSessions: "1 0 2 3", sortCapacity: "0 2 1 3", sortName: "0 1 2 3",
	} {
		p := aPicture()
		p.order = order
		var got []string
		for line := range strings.Lines(drawn(p, screen{})) {
			if name, ok := strings.CutPrefix(line, "sglang-"); ok {
				got = append(got, name[:1])
			}
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s: %v, want %s", order, got, want)
		}
	}
}

func TestColoursAreForThoseWhoWantThem(t *testing.T) {
	if plain := drawn(aPicture(), screen{terminal: true}); strings.Contains(plain, "\x1b") {
		t.Errorf("colours in %q", plain)
	}
	coloured := drawn(aPicture(), screen{terminal: true, colour: true})
	for _, want := range []string{"\x1b[31m", "\x1b[32m", "\x1b[33m"} {
		if !strings.Contains(coloured, want) {
			t.Errorf("no %q in %q", want, coloured)
		}
	}
}

func TestThePictureFitsTheTerminal(t *testing.T) {
	p := aPicture()
	for i := range 100 {
		p.live.Backends = append(p.live.Backends, live.Backend{Name: fmt.Sprintf("more-%d", i), URL: strings.Repeat("x", 80)})
	}
	for _, wide := range []bool{false, true} {
		p.wide = wide
		for _, size := range []screen{{terminal: true, width: 80, height: 24}, {terminal: true, width: 40, height: 14}, {terminal: true, width: 200, height: 50}} {
			text := strings.TrimSuffix(drawn(p, size), "\n")
			lines := strings.Split(text, "\n")
			if len(lines) > size.height {
				t.Errorf("%d lines on a terminal of %d", len(lines), size.height)
			}
			for _, l := range lines[3:] { // those of the table
				if n := utf8.RuneCountInString(l); n > size.width {
					t.Errorf("%d characters on a terminal of %d: %q", n, size.width, l)
				}
			}
			if !strings.Contains(text, " more") {
				t.Error("what is not shown is not counted")
			}
		}
	}
}

// settles has a backend settle that takes no leases for that reason.
func settles(b *live.Backend, why string) { b.Settling, b.Admissible, b.Reason = true, false, why }

func TestThePictureTellsWhatStopsThePool(t *testing.T) {
	for name, c := range map[string]struct {
		change func(p *picture)
		want   string
	}{
		"it failed":               {func(p *picture) { p.live.Failure = &live.Failure{RequestID: "r-7"} }, "request r-7"},
		"leasing is held":         {func(p *picture) { p.live.Leasing = "Held" }, "leasing is held"},
		"nobody leads":            {func(p *picture) { p.live.Term = 0 }, "may not grant"},
		"the router fell silent":  {func(p *picture) { p.trouble = "connection refused" }, "no news: connection refused"},
		"a backend is isolated":   {func(p *picture) { p.live.Backends[0].Isolated = true }, "Isolated"},
		"a backend is drained":    {func(p *picture) { p.live.Backends[2].Drained = true }, "Drained"},
		"an engine is paused":     {func(p *picture) { p.live.Backends[0].Engine = "Paused" }, "Paused"},
		"a backend settles":       {func(p *picture) { settles(&p.live.Backends[0], "Settling") }, "Settling"},
		"an ill backend settles":  {func(p *picture) { settles(&p.live.Backends[0], "Unhealthy") }, "Unhealthy"},
		"a backend left the pool": {func(p *picture) { p.live.Backends[0].Retired = true }, "Retired"},
	} {
		t.Run(name, func(t *testing.T) {
			p := aPicture()
			if before := drawn(p, screen{}); strings.Contains(before, c.want) {
				t.Fatalf("it is there already: %s", before)
			}
			c.change(p)
			if got := drawn(p, screen{}); !strings.Contains(got, c.want) {
				t.Errorf("no %q in\n%s", c.want, got)
			}
		})
	}
}

func TestABarShowsThatSomethingIsThere(t *testing.T) {
	for percent, full := range map[int]int{0: 0, 1: 1, 50: 10, 97: 19, 100: 20, 250: 20} {
		if got := strings.Count(bar(percent), "█"); got != full || utf8.RuneCountInString(bar(percent)) != barWidth {
			t.Errorf("%d%%: %q", percent, bar(percent))
		}
	}
}

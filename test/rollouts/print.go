package rollouts

import (
	"fmt"
	"io"
	"strings"
	"time"
)

// letters show a state in a terminal. Serving shows the version that is served.
var letters = map[string]rune{
	"Draining": 'd', "Drained": 'd', "Pausing": 'p', "Paused": 'P', "Updating": 'U', "Verifying": 'v',
	"Continuing": 'c', "Unhealthy": '!', "Settling": 's', "Isolated": 'i', "Pending": '.', "Retired": 'x',
}

// Print shows a timeline in a terminal, one line for each backend, columns wide.
func (t Timeline) Print(out io.Writer, columns int) error {
	var text strings.Builder
	versions := t.versions()
	step := t.To.Sub(t.From) / time.Duration(columns)
	for _, lane := range t.Lanes {
		fmt.Fprintf(&text, "%12s  ", lane.Backend)
		for c := range columns {
			text.WriteRune(t.letter(lane.busiest(t.From.Add(time.Duration(c)*step), step), versions))
		}
		text.WriteByte('\n')
	}
	fmt.Fprintf(&text, "%12s  %s\n", "", t.ruler(columns))
	fmt.Fprintf(&text, "%12s  %.1f s; a digit: serves the version", "", t.To.Sub(t.From).Seconds())
	for i, v := range versions {
		fmt.Fprintf(&text, " %d=%s", i, v)
	}
	text.WriteString("; d draining, p pausing, U updating, v verifying, c continuing\n")
	_, err := io.WriteString(out, text.String())
	return err
}

// busiest is the span that a column shows: what is not serving is shown however short it was.
func (l Lane) busiest(from time.Time, d time.Duration) Span {
	shown := l.at(from)
	for _, s := range l.Spans {
		inside := s.From.Before(from.Add(d)) && s.To.After(from)
		if inside && s.State != "Serving" && (shown.State == "Serving" || s.To.Sub(s.From) > shown.To.Sub(shown.From)) {
			shown = s
		}
	}
	return shown
}

func (t Timeline) letter(s Span, versions []string) rune {
	if s.State != "Serving" {
		if r, known := letters[s.State]; known {
			return r
		}
		return '?'
	}
	for i, v := range versions {
		if v == s.Version {
			return rune('0' + i%10)
		}
	}
	return ' '
}

// ruler marks where each change was asked for.
func (t Timeline) ruler(columns int) string {
	line := []rune(strings.Repeat(" ", columns))
	for _, m := range t.Marks {
		at := int(int64(columns) * int64(m.Begun.Sub(t.From)) / int64(t.To.Sub(t.From)))
		for i, r := range "^" + m.Strategy {
			if at+i >= 0 && at+i < columns {
				line[at+i] = r
			}
		}
	}
	return strings.TrimRight(string(line), " ")
}

// versions are those that were served, in the order in which they appeared.
func (t Timeline) versions() []string {
	var out []string
	met := map[string]bool{}
	add := func(v string) {
		if v != "" && !met[v] {
			met[v] = true
			out = append(out, v)
		}
	}
	for _, lane := range t.Lanes {
		if len(lane.Spans) > 0 {
			add(lane.Spans[0].Version)
		}
	}
	for _, m := range t.Marks {
		add(m.Version)
	}
	return out
}

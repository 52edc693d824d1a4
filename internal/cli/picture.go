package cli

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/berthmaster/berthmaster/internal/cli/live"
)

// sortOrder is how backends are sorted.
type sortOrder string

const (
	sortLoad        sortOrder = "load"
	sortOutstanding sortOrder = "outstanding"
	sortSessions    sortOrder = "sessions"
	sortCapacity    sortOrder = "capacity"
	sortName        sortOrder = "name"
)

func sortOrders() []string {
	return []string{string(sortLoad), string(sortOutstanding), string(sortSessions), string(sortCapacity), string(sortName)}
}

func parseSort(text string) (sortOrder, error) {
	if !slices.Contains(sortOrders(), text) {
		return "", fmt.Errorf("--sort: %q is none of %s", text, strings.Join(sortOrders(), ", "))
	}
	return sortOrder(text), nil
}

// compare sorts the largest first, and by name where that does not tell.
func (o sortOrder) compare(a, b *live.Backend) int {
	first := 0
	switch o {
	case sortLoad:
		first = cmp.Compare(b.Outstanding*max(1, a.Capacity), a.Outstanding*max(1, b.Capacity))
	case sortOutstanding:
		first = cmp.Compare(b.Outstanding, a.Outstanding)
	case sortSessions:
		first = cmp.Compare(b.Sessions, a.Sessions)
	case sortCapacity:
		first = cmp.Compare(b.Capacity, a.Capacity)
	case sortName:
	}
	return cmp.Or(first, cmp.Compare(a.Name, b.Name), cmp.Compare(a.Incarnation, b.Incarnation))
}

// picture is what top shows.
type picture struct {
	pool, namespace string
	order           sortOrder
	wide            bool
	live            *live.Pool
	at              time.Time
	// trouble is why it is not of this moment; empty: it is.
	trouble string
}

// draw writes the picture. On a screen with a height it shows the rows that fit and counts the rest.
func (p *picture) draw(out io.Writer, s screen) {
	w := &lines{out: out, width: s.width}
	paint := painter(s.colour)
	p.head(w, paint)
	backends := slices.Clone(p.live.Backends)
	slices.SortFunc(backends, func(a, b live.Backend) int { return p.order.compare(&a, &b) })
	rows := [][]cell{p.columns()}
	for i := range backends {
		rows = append(rows, p.row(&backends[i], s.terminal))
	}
	hidden := 0
	if room := s.height - w.count - 3 - len(p.live.Senders); s.height > 0 && len(rows) > max(2, room) {
		hidden = len(rows) - max(2, room)
		rows = rows[:len(rows)-hidden]
	}
	w.table(rows, paint)
	if hidden > 0 {
		w.line(fmt.Sprintf("... and %d more", hidden))
	}
	w.line("")
	w.table(p.senders(), paint)
}

func (p *picture) head(w *lines, paint paint) {
	v := p.live
	w.line(fmt.Sprintf("%s  %s  epoch %d  term %d  %d sessions  %d waiting  %s",
		paint(bold, p.pool), p.namespace, v.Epoch, v.Term, v.Sessions, v.Waiting, p.at.Format("15:04:05")))
	if v.PublishedVersion != "" || v.TargetVersion != "" {
		text := "weights " + orNone(v.PublishedVersion)
		if v.TargetVersion != "" && v.TargetVersion != v.PublishedVersion {
			text += ", going to " + v.TargetVersion
		}
		w.line(text)
	}
	if v.Term == 0 {
		w.line(paint(red, "this router may not grant leases: it does not lead"))
	}
	if v.Leasing == "Held" {
		w.line(paint(yellow, "leasing is held: no new lease is granted"))
	}
	if f := v.Failure; f != nil {
		w.line(paint(red, fmt.Sprintf("the pool has failed: request %s of session %s on %s; see kubectl berth raise-epoch", f.RequestID, f.SessionID, f.Backend)))
	}
	if p.trouble != "" {
		w.line(paint(red, "no news: "+p.trouble))
	}
	w.line("")
}

func (p *picture) columns() []cell {
	names := []string{"BACKEND", "STATE", "LOAD", "OUT/CAP", "SESSIONS"}
	if p.live.PublishedVersion != "" || p.live.TargetVersion != "" || p.wide {
		names = append(names, "VERSION")
	}
	if p.wide {
		names = append(names, "HELD", "UNKNOWN", "URL", "INCARNATION")
	}
	cells := make([]cell, 0, len(names))
	for _, n := range names {
		cells = append(cells, cell{text: n, colour: bold})
	}
	return cells
}

func (p *picture) row(b *live.Backend, bars bool) []cell {
	state, colour := stateOf(b)
	load := loadOf(b, bars)
	cells := []cell{
		{text: b.Name}, {text: state, colour: colour}, load,
		{text: fmt.Sprintf("%d/%s", b.Outstanding, orUnknown(b.Capacity))}, {text: strconv.FormatInt(b.Sessions, 10)},
	}
	if len(p.columns()) > len(cells) {
		version := cell{text: orNone(b.WeightVersion)}
		if b.WeightVersion != p.live.PublishedVersion && b.WeightVersion != p.live.TargetVersion {
			version.colour = yellow
		}
		cells = append(cells, version)
	}
	if p.wide {
		unknown := "-"
		if b.UnknownLoad {
			unknown = "yes"
		}
		cells = append(cells, cell{text: strconv.FormatInt(b.Held, 10)}, cell{text: unknown}, cell{text: b.URL}, cell{text: b.Incarnation})
	}
	return cells
}

// loadOf is a backend's load in percent, with a bar where there is room for one.
func loadOf(b *live.Backend, bars bool) cell {
	if b.Capacity == 0 {
		return cell{text: "-"}
	}
	percent := int((b.Outstanding*100 + b.Capacity/2) / b.Capacity)
	shown := strconv.Itoa(percent) + "%"
	if percent == 0 && b.Outstanding > 0 {
		percent, shown = 1, "<1%" // something is there
	}
	load := cell{text: fmt.Sprintf("%4s", shown), colour: heat(percent)}
	if bars {
		load.text = bar(percent) + " " + load.text
	}
	return load
}

func (p *picture) senders() [][]cell {
	rows := [][]cell{{{text: "SENDER", colour: bold}, {text: "ACCESS", colour: bold}, {text: "COUNTED", colour: bold}, {text: "GENERATION", colour: bold}}}
	for _, s := range p.live.Senders {
		access := cell{text: s.Access, colour: green}
		switch {
		case s.Fenced:
			access.colour = yellow
		case s.Access == "Fenced":
			access = cell{text: "Fencing", colour: yellow}
		}
		rows = append(rows, []cell{{text: s.Name}, access, {text: strconv.FormatInt(s.Counted, 10)}, {text: strconv.FormatInt(s.MinGeneration, 10)}})
	}
	return rows
}

// stateOf is what a backend is doing, in one word or two.
func stateOf(b *live.Backend) (string, colour) {
	switch {
	case b.Isolated:
		return "Isolated", red
	case b.Retired:
		return "Retired", grey
	case b.Drained:
		if b.Drain != "" {
			return "Drained", grey
		}
	case b.Drain != "":
		return "Draining", yellow
	}
	switch {
	case b.Engine != "":
		return b.Engine, yellow
	case b.Reason == "Settling": // nothing else keeps it from serving
		return "Settling", yellow
	case b.Admissible:
		return "Serving", green
	}
	return b.Reason, red
}

func orNone(text string) string {
	if text == "" {
		return "-"
	}
	return text
}

func orUnknown(n int64) string {
	if n == 0 {
		return "?"
	}
	return strconv.FormatInt(n, 10)
}

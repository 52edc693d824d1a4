package rollouts

import (
	"encoding/xml"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
)

// The measures of a drawing, in pixels.
const (
	drawingWidth = 1100
	nameWidth    = 90
	laneHeight   = 26
	barHeight    = 18
	headHeight   = 64
	startsHeight = 44
	footHeight   = 58
	rightMargin  = 24
	mostTicks    = 12
	// startsColumns is into how many parts the time is divided to show how much began.
	startsColumns = 240
)

// shades are the colours of versions that are served; they repeat.
var shades = []string{"#9ecae1", "#4292c6", "#2171b5", "#08519c"}

// colours are those of states that do not serve.
var colours = map[string]string{
	"Draining": "#fdd0a2", "Drained": "#fdd0a2", "Pausing": "#fd8d3c", "Paused": "#fd8d3c", "Updating": "#d94801",
	"Verifying": "#a1d99b", "Continuing": "#74c476", "Unhealthy": "#cb181d", "Pending": "#d9d9d9",
}

// legend is the order in which states are explained.
var legend = []string{"Draining", "Pausing", "Updating", "Verifying", "Continuing", "Unhealthy", "Pending"}

// Draw writes a timeline as SVG.
func (t Timeline) Draw(out io.Writer, title string) error {
	var b strings.Builder
	bottom := headHeight + laneHeight*len(t.Lanes) + startsHeight
	height := bottom + footHeight
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %d %d" font-family="sans-serif" font-size="12">`+"\n",
		drawingWidth, height, drawingWidth, height)
	fmt.Fprintf(&b, `<rect width="100%%" height="100%%" fill="white"/><text x="%d" y="20" font-size="15">%s</text>`+"\n", nameWidth, escape(title))
	t.drawScale(&b, bottom)
	versions := t.versions()
	for i, lane := range t.Lanes {
		y := headHeight + i*laneHeight
		fmt.Fprintf(&b, `<text x="%d" y="%d" text-anchor="end">%s</text>`+"\n", nameWidth-8, y+barHeight-4, escape(lane.Backend))
		for _, s := range lane.Spans {
			t.drawSpan(&b, s, y, versions)
		}
	}
	t.drawStarts(&b, bottom)
	t.drawMarks(&b, bottom)
	t.drawLegend(&b, height-18, versions)
	b.WriteString("</svg>\n")
	_, err := io.WriteString(out, b.String())
	return err
}

// x is where a moment is.
func (t Timeline) x(at time.Time) float64 {
	share := float64(at.Sub(t.From)) / float64(t.To.Sub(t.From))
	return nameWidth + share*(drawingWidth-nameWidth-rightMargin)
}

func (t Timeline) drawSpan(b *strings.Builder, s Span, y int, versions []string) {
	colour := colours[s.State]
	if s.State == "Serving" {
		for i, v := range versions {
			if v == s.Version {
				colour = shades[i%len(shades)]
			}
		}
	}
	if colour == "" {
		colour = "#969696"
	}
	from, to := t.x(s.From), t.x(s.To)
	fmt.Fprintf(b, `<rect x="%.1f" y="%d" width="%.1f" height="%d" fill="%s"><title>%s %s, %.2f s</title></rect>`+"\n",
		from, y, max(1, to-from), barHeight, colour, escape(s.State), escape(s.Version), s.To.Sub(s.From).Seconds())
}

// drawScale draws a line at every second, or at as many as there is room for.
func (t Timeline) drawScale(b *strings.Builder, bottom int) {
	every := time.Second
	for t.To.Sub(t.From)/every > mostTicks {
		every += time.Second
	}
	for d := time.Duration(0); d <= t.To.Sub(t.From); d += every {
		x := t.x(t.From.Add(d))
		fmt.Fprintf(b, `<line x1="%.1f" y1="%d" x2="%.1f" y2="%d" stroke="#e5e5e5"/><text x="%.1f" y="%d" text-anchor="middle" fill="#666">%.0f s</text>`+"\n",
			x, headHeight-6, x, bottom, x, bottom+16, d.Seconds())
	}
}

// drawStarts shows how much began when: where there is nothing, nobody was granted anything.
func (t Timeline) drawStarts(b *strings.Builder, bottom int) {
	counts := t.slices(startsColumns)
	most := max(1, slices.Max(counts))
	width := float64(drawingWidth-nameWidth-rightMargin) / startsColumns
	fmt.Fprintf(b, `<text x="%d" y="%d" text-anchor="end">begun</text>`+"\n", nameWidth-8, bottom-6)
	for i, n := range counts {
		if n == 0 {
			continue
		}
		tall := max(1, (startsHeight-10)*n/most)
		fmt.Fprintf(b, `<rect x="%.1f" y="%d" width="%.1f" height="%d" fill="#525252"><title>%d begun</title></rect>`+"\n",
			nameWidth+float64(i)*width, bottom-tall, width, tall, n)
	}
}

// drawMarks shows from when to when each change took.
func (t Timeline) drawMarks(b *strings.Builder, bottom int) {
	for _, m := range t.Marks {
		from, to := t.x(m.Begun), t.x(m.Ended)
		fmt.Fprintf(b, `<line x1="%.1f" y1="%d" x2="%.1f" y2="%d" stroke="#333" stroke-dasharray="3 3"/>`+"\n", from, headHeight-16, from, bottom)
		fmt.Fprintf(b, `<line x1="%.1f" y1="%d" x2="%.1f" y2="%d" stroke="#333" stroke-width="2"/>`+"\n", from, headHeight-16, to, headHeight-16)
		fmt.Fprintf(b, `<text x="%.1f" y="%d">%s to %s, %.1f s</text>`+"\n", from+4, headHeight-22, escape(m.Strategy), escape(m.Version), m.Ended.Sub(m.Begun).Seconds())
	}
}

// drawLegend explains the colours that are there.
func (t Timeline) drawLegend(b *strings.Builder, y int, versions []string) {
	x := nameWidth
	entry := func(colour, text string) {
		fmt.Fprintf(b, `<rect x="%d" y="%d" width="12" height="12" fill="%s"/><text x="%d" y="%d">%s</text>`+"\n", x, y-10, colour, x+16, y, escape(text))
		x += 34 + 7*len(text)
	}
	for i, v := range versions {
		entry(shades[i%len(shades)], "serves "+v)
	}
	for _, state := range legend {
		if t.shows(state) {
			entry(colours[state], strings.ToLower(state))
		}
	}
}

func (t Timeline) shows(state string) bool {
	return slices.ContainsFunc(t.Lanes, func(l Lane) bool {
		return slices.ContainsFunc(l.Spans, func(s Span) bool { return s.State == state })
	})
}

func escape(text string) string {
	var b strings.Builder
	_ = xml.EscapeText(&b, []byte(text)) // a strings.Builder takes everything
	return b.String()
}

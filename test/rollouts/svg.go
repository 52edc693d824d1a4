package rollouts

import (
	"encoding/xml"
	"fmt"
	"io"
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
	footHeight   = 58
	rightMargin  = 20
	ticks        = 10
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
	height := headHeight + laneHeight*len(t.Lanes) + footHeight
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %d %d" font-family="sans-serif" font-size="12">`+"\n",
		drawingWidth, height, drawingWidth, height)
	fmt.Fprintf(&b, `<rect width="100%%" height="100%%" fill="white"/><text x="%d" y="20" font-size="15">%s</text>`+"\n", nameWidth, escape(title))
	t.drawScale(&b, height-footHeight)
	versions := t.versions()
	for i, lane := range t.Lanes {
		y := headHeight + i*laneHeight
		fmt.Fprintf(&b, `<text x="%d" y="%d" text-anchor="end">%s</text>`+"\n", nameWidth-8, y+barHeight-4, escape(lane.Backend))
		for _, s := range lane.Spans {
			t.drawSpan(&b, s, y, versions)
		}
	}
	t.drawMarks(&b, height-footHeight)
	drawLegend(&b, height-18, versions)
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

func (t Timeline) drawScale(b *strings.Builder, bottom int) {
	for i := range ticks + 1 {
		at := t.From.Add(t.To.Sub(t.From) * time.Duration(i) / ticks)
		fmt.Fprintf(b, `<line x1="%.1f" y1="%d" x2="%.1f" y2="%d" stroke="#e5e5e5"/><text x="%.1f" y="%d" text-anchor="middle" fill="#666">%.1f s</text>`+"\n",
			t.x(at), headHeight-6, t.x(at), bottom, t.x(at), bottom+14, at.Sub(t.From).Seconds())
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

func drawLegend(b *strings.Builder, y int, versions []string) {
	x := nameWidth
	entry := func(colour, text string) {
		fmt.Fprintf(b, `<rect x="%d" y="%d" width="12" height="12" fill="%s"/><text x="%d" y="%d">%s</text>`+"\n", x, y-10, colour, x+16, y, escape(text))
		x += 34 + 7*len(text)
	}
	for i, v := range versions {
		entry(shades[i%len(shades)], "serves "+v)
	}
	for _, state := range legend {
		entry(colours[state], strings.ToLower(state))
	}
}

func escape(text string) string {
	var b strings.Builder
	_ = xml.EscapeText(&b, []byte(text)) // a strings.Builder takes everything
	return b.String()
}

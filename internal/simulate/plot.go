package simulate

import (
	"encoding/xml"
	"fmt"
	"io"
	"strings"
)

// The measures of the plot, in pixels.
const (
	plotNames  = 170 // for the names of the arms
	plotPanel  = 330 // width of one panel
	plotGap    = 60  // right of a panel, for the value of its longest bar
	plotLine   = 18  // height of one arm
	plotTitle  = 48  // above the arms of a workload
	plotMargin = 16
)

// panel is one figure of the plot.
type panel struct {
	title string
	read  func(Row) Estimate
}

// panels are what the plot shows of each arm, side by side.
func panels() []panel {
	return []panel{
		{"CV of output tokens per capacity", func(r Row) Estimate { return r.Variation }},
		{"duration relative to today's practice", func(r Row) Estimate { return r.Duration }},
	}
}

// Plot writes the report as an SVG picture: for each workload the arms' imbalance and
// duration as bars, with a line for the standard error. Errors are those of w.
func (r Report) Plot(w io.Writer) error {
	width := plotMargin + plotNames + len(panels())*(plotPanel+plotGap)
	var body strings.Builder
	y := plotMargin
	for _, c := range r.Comparisons {
		y = c.plot(&body, y)
	}
	_, err := fmt.Fprintf(w, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %d %d" font-family="sans-serif" font-size="12">
<rect width="100%%" height="100%%" fill="white"/>
%s</svg>
`, width, y+plotMargin, width, y+plotMargin, body.String())
	return err
}

// plot draws one workload from y downwards, and returns where it ends.
func (c Comparison) plot(svg *strings.Builder, y int) int {
	text(svg, plotMargin, y+14, `font-weight="bold"`, c.Workload)
	for i, p := range panels() {
		text(svg, panelLeft(i), y+34, `fill="#555"`, p.title)
	}
	y += plotTitle
	for _, row := range c.Rows {
		text(svg, plotMargin, y+13, "", row.Arm)
		for i, p := range panels() {
			bar(svg, panelLeft(i), y, p.read(row), c.scale(p), color(row))
		}
		y += plotLine
	}
	return y + plotMargin
}

func panelLeft(i int) int { return plotMargin + plotNames + i*(plotPanel+plotGap) }

// scale is the number of pixels per unit at which the panel's longest bar fits.
func (c Comparison) scale(p panel) float64 {
	longest := 0.0
	for _, row := range c.Rows {
		e := p.read(row)
		longest = max(longest, e.Mean+e.StdErr)
	}
	if longest == 0 {
		return 0
	}
	return plotPanel / longest
}

func bar(svg *strings.Builder, x, y int, e Estimate, scale float64, fill string) {
	end := float64(x) + e.Mean*scale
	fmt.Fprintf(svg, `<rect x="%d" y="%d" width="%.1f" height="%d" fill="%s"/>`+"\n", x, y+2, e.Mean*scale, plotLine-5, fill)
	middle := y + plotLine/2
	fmt.Fprintf(svg, `<line x1="%.1f" y1="%d" x2="%.1f" y2="%d" stroke="black"/>`+"\n", end-e.StdErr*scale, middle, end+e.StdErr*scale, middle)
	text(svg, int(end+e.StdErr*scale)+5, y+13, `font-size="11"`, fmt.Sprintf("%.3f", e.Mean))
}

// color tells the kinds of arms apart.
func color(r Row) string {
	switch r.Kind {
	case Shipped:
		return "#2b7bba"
	case Considered:
		return "#8fbf6f"
	case Bound:
		return "#cccccc"
	case Baseline:
	}
	return "#d9a05b"
}

func text(svg *strings.Builder, x, y int, attributes, content string) {
	fmt.Fprintf(svg, `<text x="%d" y="%d" %s>`, x, y, attributes)
	_ = xml.EscapeText(svg, []byte(content)) // a strings.Builder does not fail
	svg.WriteString("</text>\n")
}

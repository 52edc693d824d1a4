package simulate

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
)

// Format is a form in which a Report is written.
type Format string

// The formats.
const (
	Table    Format = "table"
	JSON     Format = "json"
	Markdown Format = "markdown"
	// FigureLines is one line per headline figure, as make bench prints them.
	FigureLines Format = "figures"
)

// ErrUnknownFormat is returned for a format that is none of Formats.
var ErrUnknownFormat = errors.New("unknown output format")

// Formats returns all formats.
func Formats() []Format { return []Format{Table, JSON, Markdown, FigureLines} }

// ParseFormat returns the format of that name, or ErrUnknownFormat.
func ParseFormat(name string) (Format, error) {
	var names []string
	for _, f := range Formats() {
		if string(f) == name {
			return f, nil
		}
		names = append(names, string(f))
	}
	return "", fmt.Errorf("%w %q: it is none of %s", ErrUnknownFormat, name, strings.Join(names, ", "))
}

// Write writes the report in the format. Errors are those of w.
func (r Report) Write(w io.Writer, f Format) error {
	switch f {
	case Table:
		return r.writeTable(w)
	case JSON:
		encoder := json.NewEncoder(w)
		encoder.SetIndent("", "  ")
		return encoder.Encode(r)
	case Markdown:
		return r.writeMarkdown(w)
	case FigureLines:
		return r.writeFigures(w)
	}
	return fmt.Errorf("%w %q", ErrUnknownFormat, f)
}

// columns are the heads of the tables; cells gives a row's values in this order.
var columns = [...]string{
	"policy", "CV of tokens", "duration / today's", "session p50 s", "p90 s", "p99 s",
	"cache hits", "worst replica", "moves", "idle while queued s",
}

func (r Row) cells() []string {
	plain := func(e Estimate) string { return fmt.Sprintf("%.0f", e.Mean) }
	share := func(e Estimate) string { return fmt.Sprintf("%.1f %%", 100*e.Mean) }
	return []string{
		r.Arm, r.Variation.String(), r.Duration.String(), plain(r.P50), plain(r.P90), plain(r.P99),
		share(r.HitRate), share(r.WorstHitRate), plain(r.Moves), plain(r.IdleSeconds),
	}
}

// String is the mean and its standard error.
func (e Estimate) String() string { return fmt.Sprintf("%.4f ± %.4f", e.Mean, e.StdErr) }

// notes are the sentences under a table.
func (c Comparison) notes(seeds int) []string {
	notes := []string{fmt.Sprintf("Mean ± standard error over %d seeds. No placement can be faster than %s of today's practice.", seeds, c.Floor)}
	promise, ok := c.Row(Promise)
	if !ok {
		return notes
	}
	var better []string
	for _, row := range c.Rows {
		for _, win := range row.Wins(promise) {
			better = append(better, fmt.Sprintf("%s in %s", row.Arm, win))
		}
	}
	if len(better) == 0 {
		better = []string{"none"}
	}
	return append(notes, fmt.Sprintf("Better than %s by more than two standard errors: %s.", Promise, strings.Join(better, ", ")))
}

func (r Report) writeTable(w io.Writer) error {
	for i, c := range r.Comparisons {
		if i > 0 {
			if _, err := fmt.Fprintln(w); err != nil {
				return err
			}
		}
		if _, err := fmt.Fprintln(w, c.Workload); err != nil {
			return err
		}
		table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
		fmt.Fprintln(table, strings.Join(columns[:], "\t"))
		for _, row := range c.Rows {
			fmt.Fprintln(table, strings.Join(row.cells(), "\t"))
		}
		if err := table.Flush(); err != nil { // carries the errors of the lines above
			return err
		}
		if _, err := fmt.Fprintln(w, strings.Join(c.notes(r.Seeds), "\n")); err != nil {
			return err
		}
	}
	return nil
}

func (r Report) writeMarkdown(w io.Writer) error {
	var text strings.Builder
	for i, c := range r.Comparisons {
		if i > 0 {
			text.WriteString("\n")
		}
		fmt.Fprintf(&text, "### %s\n\n| %s |\n|---|%s\n", c.Workload, strings.Join(columns[:], " | "),
			strings.Repeat("---:|", len(columns)-1))
		for _, row := range c.Rows {
			fmt.Fprintf(&text, "| %s |\n", strings.Join(row.cells(), " | "))
		}
		fmt.Fprintf(&text, "\n%s\n", strings.Join(c.notes(r.Seeds), "\n"))
	}
	_, err := io.WriteString(w, text.String())
	return err
}

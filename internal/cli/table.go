package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"sigs.k8s.io/yaml"
)

// colour is an SGR parameter; empty: the terminal's own.
type colour string

const (
	bold   colour = "1"
	red    colour = "31"
	green  colour = "32"
	yellow colour = "33"
	grey   colour = "90"
)

// paint colours a text.
type paint func(colour, string) string

// painter paints only where colours are wanted.
func painter(colours bool) paint {
	return func(c colour, text string) string {
		if !colours || c == "" || text == "" {
			return text
		}
		return "\x1b[" + string(c) + "m" + text + "\x1b[0m"
	}
}

// heat is the colour of a load, in percent of capacity.
func heat(percent int) colour {
	switch {
	case percent >= 90:
		return red
	case percent >= 70:
		return yellow
	}
	return green
}

// barWidth is the length of a full bar, in characters.
const barWidth = 20

// bar draws a load; above the capacity it is full.
func bar(percent int) string {
	full := min(barWidth, (percent*barWidth+50)/100)
	if percent > 0 && full == 0 {
		full = 1 // something is there
	}
	return strings.Repeat("█", full) + strings.Repeat("░", barWidth-full)
}

// cell is a text of a table.
type cell struct {
	text   string
	colour colour
}

// lines writes lines and counts them.
type lines struct {
	out   io.Writer
	width int
	count int
}

func (l *lines) line(text string) {
	fmt.Fprintln(l.out, text)
	l.count++
}

// table writes rows in columns. A row that is wider than the screen is cut, so that no line takes two.
func (l *lines) table(rows [][]cell, paint paint) {
	widths := map[int]int{}
	for _, row := range rows {
		for i, c := range row {
			widths[i] = max(widths[i], utf8.RuneCountInString(c.text))
		}
	}
	for _, row := range rows {
		var text strings.Builder
		left := l.width
		for i, c := range row {
			shown, length := c.text, utf8.RuneCountInString(c.text)
			if l.width > 0 && length > left {
				shown, length = cut(shown, max(0, left)), max(0, left)
			}
			text.WriteString(paint(c.colour, shown))
			if i < len(row)-1 {
				text.WriteString(strings.Repeat(" ", widths[i]-utf8.RuneCountInString(c.text)+3))
			}
			if left -= max(length, widths[i]) + 3; l.width > 0 && left <= 0 {
				break
			}
		}
		l.line(strings.TrimRight(text.String(), " "))
	}
}

func cut(text string, n int) string {
	runes := []rune(text)
	return string(runes[:min(len(runes), n)])
}

// tableFormats are the values of --output of the commands that print tables.
var tableFormats = []string{"wide", "json", "yaml"}

func validFormat(format string) error {
	switch format {
	case "", "wide", "json", "yaml":
		return nil
	}
	return fmt.Errorf("--output: %q is none of wide, json and yaml", format)
}

// printValue prints a value as JSON or YAML.
func printValue(out io.Writer, format string, value any) error {
	raw, err := json.MarshalIndent(value, "", "    ")
	if err != nil {
		return fmt.Errorf("encode: %w", err)
	}
	if format == "json" {
		_, err = fmt.Fprintln(out, string(raw))
		return err
	}
	text, err := yaml.JSONToYAML(raw)
	if err != nil {
		return fmt.Errorf("encode: %w", err)
	}
	_, err = out.Write(text)
	return err
}

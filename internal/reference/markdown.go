package main

import (
	"fmt"
	"strings"
)

// document is a page in the making.
type document struct{ strings.Builder }

func (d *document) heading(level int, text string) {
	if d.Len() > 0 {
		d.WriteString("\n")
	}
	fmt.Fprintf(d, "%s %s\n\n", strings.Repeat("#", level), text)
}

func (d *document) paragraph(text string) { fmt.Fprintf(d, "%s\n", text) }

// table writes rows below a head.
func (d *document) table(head []string, rows [][]string) {
	d.row(head)
	d.row(strings.Split(strings.Repeat("---|", len(head)-1)+"---", "|"))
	for _, r := range rows {
		d.row(r)
	}
}

func (d *document) row(cells []string) {
	for _, c := range cells {
		fmt.Fprintf(d, "| %s ", inCell(c))
	}
	d.WriteString("|\n")
}

// inCell makes a text fit into a cell: on one line, without what would end it.
func inCell(text string) string {
	return strings.ReplaceAll(strings.Join(strings.Fields(text), " "), "|", `\|`)
}

func code(text string) string {
	if text == "" {
		return ""
	}
	return "`" + text + "`"
}

package main

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"

	"github.com/berthmaster/berthmaster/internal/simulate"
)

// figure is one line of make bench, its value as it was printed.
type figure struct{ name, value, unit string }

// readFigures returns the lines `figure NAME VALUE UNIT`; other lines are none of its
// business, except those that begin so and then go wrong.
func readFigures(r io.Reader) ([]figure, error) {
	var out []figure
	lines := bufio.NewScanner(r)
	for n := 1; lines.Scan(); n++ {
		fields := strings.Fields(lines.Text())
		if len(fields) == 0 || fields[0] != "figure" {
			continue
		}
		if len(fields) != 4 {
			return nil, fmt.Errorf("line %d: %q is not `figure NAME VALUE UNIT`", n, lines.Text())
		}
		if _, err := strconv.ParseFloat(fields[2], 64); err != nil {
			return nil, fmt.Errorf("line %d: the value of %s is no number: %q", n, fields[1], fields[2])
		}
		out = append(out, figure{fields[1], fields[2], fields[3]})
	}
	return out, lines.Err()
}

// figureTable shows the figures of the input as a table.
func figureTable(input io.Reader) (string, error) {
	figures, err := readFigures(input)
	if err != nil {
		return "", err
	}
	if len(figures) == 0 {
		return "No figures were given; `make bench` prints them.\n", nil
	}
	var text strings.Builder
	text.WriteString("| figure | value | unit |\n|---|---:|---|\n")
	for _, f := range figures {
		fmt.Fprintf(&text, "| %s | %s | %s |\n", f.name, f.value, f.unit)
	}
	return text.String(), nil
}

func markdown(r simulate.Report) string {
	var text strings.Builder
	_ = r.Write(&text, simulate.Markdown) // a strings.Builder does not fail
	return text.String()
}

// replace puts content between the page's comments `<!-- begin NAME -->` and
// `<!-- end NAME -->`. It fails when the page has not exactly one such pair.
func replace(page []byte, name, content string) ([]byte, error) {
	begin, end := []byte("<!-- begin "+name+" -->\n"), []byte("<!-- end "+name+" -->")
	if bytes.Count(page, begin) != 1 || bytes.Count(page, end) != 1 {
		return nil, fmt.Errorf("the page must have one pair of comments around %q", name)
	}
	before, rest, _ := bytes.Cut(page, begin)
	_, after, found := bytes.Cut(rest, end)
	if !found {
		return nil, fmt.Errorf("the part %q ends before it begins", name)
	}
	return bytes.Join([][]byte{before, begin, []byte("\n" + strings.TrimSpace(content) + "\n\n"), end, after}, nil), nil
}

// machine says where and of which code the figures are.
func machine(ctx context.Context) string {
	return fmt.Sprintf("Measured on %s, %d cores, %s/%s, %s, at commit %s.",
		processor(), runtime.NumCPU(), runtime.GOOS, runtime.GOARCH, runtime.Version(), commit(ctx))
}

// processor is the CPU's name, where the system tells it.
func processor() string {
	info, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		return "an unnamed processor"
	}
	for line := range strings.Lines(string(info)) {
		if key, value, _ := strings.Cut(line, ":"); strings.TrimSpace(key) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return "an unnamed processor"
}

// commit names the checked-out commit, and says when the tree differs from it.
func commit(ctx context.Context) string {
	out, err := exec.CommandContext(ctx, "git", "describe", "--always", "--dirty", "--exclude=*").Output()
	if err != nil {
		return "unknown (not a git checkout)"
	}
	return strings.TrimSpace(string(out))
}

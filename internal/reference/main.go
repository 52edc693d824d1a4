package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
)

func main() {
	root := flag.String("root", ".", "the project's folder")
	out := flag.String("out", "docs/reference", "where the pages go")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := write(ctx, *root, *out)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "reference:", err)
		os.Exit(1)
	}
}

// page is one file of the reference.
type page struct {
	name string
	// what it is about, for the list of pages.
	about string
	make  func(ctx context.Context, root string) (string, error)
}

func pages() []page {
	return []page{
		{"fields.md", "every field of the resource, with its bounds and rules", fieldsPage},
		{"conditions.md", "conditions, states, reasons, annotations", conditionsPage},
		{"events.md", "what a pool's events say", eventsPage},
		{"metrics.md", "every metric, its unit and its labels", metricsPage},
		{"kubectl-berth.md", "the command line", commandsPage},
		{"doctor.md", "the faults that `kubectl berth doctor` finds", doctorPage},
		{"flags.md", "flags of the manager and of the simulated engine", flagsPage},
	}
}

// indexPage lists the others.
func indexPage(pages []page) string {
	var d document
	d.heading(1, "Reference")
	d.paragraph("Written from the code, and compared with it by `make verify`.")
	d.paragraph("")
	for _, p := range pages {
		d.paragraph("- [" + p.name + "](" + p.name + "): " + p.about)
	}
	d.paragraph("\nThe lease protocol is described by an [OpenAPI document](../openapi.yaml), to which a test holds the server.")
	return d.String()
}

// generated begins every page.
const generated = "<!-- Written by `make reference`. Change the code that it is read from instead. -->\n\n"

func write(ctx context.Context, root, out string) error {
	if err := os.MkdirAll(out, 0o755); err != nil {
		return fmt.Errorf("make %s: %w", out, err)
	}
	if err := save(out, "README.md", indexPage(pages())); err != nil {
		return err
	}
	for _, p := range pages() {
		text, err := p.make(ctx, root)
		if err != nil {
			return fmt.Errorf("%s: %w", p.name, err)
		}
		if err := save(out, p.name, text); err != nil {
			return err
		}
	}
	return nil
}

func save(out, name, text string) error {
	if err := os.WriteFile(filepath.Join(out, name), []byte(generated+text), 0o644); err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	return nil
}

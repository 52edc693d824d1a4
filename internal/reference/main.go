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
	make func(ctx context.Context, root string) (string, error)
}

func pages() []page {
	return []page{
		{"fields.md", fieldsPage}, {"conditions.md", conditionsPage}, {"events.md", eventsPage},
		{"metrics.md", metricsPage}, {"kubectl-berth.md", commandsPage}, {"flags.md", flagsPage}, {"doctor.md", doctorPage},
	}
}

// generated begins every page.
const generated = "<!-- Written by `make reference`. Change the code that it is read from instead. -->\n\n"

func write(ctx context.Context, root, out string) error {
	if err := os.MkdirAll(out, 0o755); err != nil {
		return fmt.Errorf("make %s: %w", out, err)
	}
	for _, p := range pages() {
		text, err := p.make(ctx, root)
		if err != nil {
			return fmt.Errorf("%s: %w", p.name, err)
		}
		if err := os.WriteFile(filepath.Join(out, p.name), []byte(generated+text), 0o644); err != nil {
			return fmt.Errorf("write %s: %w", p.name, err)
		}
	}
	return nil
}

package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"
)

func main() {
	moduleDir := flag.String("module", ".", "folder of the module that pins the binaries")
	out := flag.String("out", "", "folder to put the binaries in (required)")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, *moduleDir, *out, os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, "cluster build:", err)
		os.Exit(1)
	}
}

// run brings the binaries in out up to date with the module in moduleDir and
// says on progress what it does.
func run(ctx context.Context, moduleDir, out string, progress io.Writer) error {
	if out == "" {
		return fmt.Errorf("-out names the folder for the binaries and may not be empty")
	}
	out, err := filepath.Abs(out)
	if err != nil {
		return fmt.Errorf("output folder: %w", err)
	}
	if err := os.MkdirAll(out, 0o755); err != nil {
		return fmt.Errorf("output folder: %w", err)
	}
	tool := goTool{dir: moduleDir}
	version, err := tool.moduleVersion(ctx, "k8s.io/kubernetes")
	if err != nil {
		return err
	}
	recipe, err := recipeFor(version)
	if err != nil {
		return err
	}
	stamp, err := stampOf(ctx, tool, recipe)
	if err != nil {
		return err
	}
	if stamp.matches(out, recipe) {
		fmt.Fprintf(progress, "cluster: Kubernetes %s is already built in %s\n", version, out)
		return nil
	}
	fmt.Fprintf(progress, "cluster: building Kubernetes %s from its modules, once: about five minutes on two cores\n", version)
	if err := forget(out); err != nil {
		return fmt.Errorf("stamp of the earlier build: %w", err)
	}
	start := time.Now()
	for _, b := range recipe.binaries {
		if err := tool.build(ctx, recipe, b, out, progress); err != nil {
			return err
		}
	}
	fmt.Fprintf(progress, "cluster: done in %s\n", time.Since(start).Round(time.Second))
	return stamp.write(out)
}

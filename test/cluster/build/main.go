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
	which := flag.String("set", string(setControlPlane), "which binaries: "+string(setControlPlane)+" or "+string(setNodes))
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, *moduleDir, set(*which), *out, os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, "cluster build:", err)
		os.Exit(1)
	}
}

// run brings a set of binaries in out up to date with the module in moduleDir and
// says on progress what it does.
func run(ctx context.Context, moduleDir string, which set, out string, progress io.Writer) error {
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
	recipe, err := recipeFor(ctx, moduleDir, which)
	if err != nil {
		return err
	}
	stamp, err := stampOf(ctx, moduleDir, recipe)
	if err != nil {
		return err
	}
	if stamp.matches(out, recipe) {
		fmt.Fprintf(progress, "cluster: the %s in %s is what it should be\n", which, out)
		return nil
	}
	fmt.Fprintf(progress, "cluster: building %s\n", recipe.what)
	if err := forget(out); err != nil {
		return fmt.Errorf("stamp of the earlier build: %w", err)
	}
	start := time.Now()
	for _, b := range recipe.binaries {
		tool := goTool{dir: filepath.Join(moduleDir, b.module)}
		if err := tool.build(ctx, b, out, progress); err != nil {
			return err
		}
	}
	fmt.Fprintf(progress, "cluster: done in %s\n", time.Since(start).Round(time.Second))
	return stamp.write(out)
}

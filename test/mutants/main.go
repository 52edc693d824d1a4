// Command mutants plants faults in the router, one at a time, and demands that its tests catch
// each: it prints "mutant -> what caught it", and fails if one survives, does not compile, or no
// longer applies. Nothing on disk is changed: a fault is an overlay of the build.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"time"
)

func main() {
	dir := flag.String("dir", "internal/router", "the package's folder, from the module's root")
	only := flag.String("only", "", "plant only the faults whose name matches this expression")
	workers := flag.Int("j", 2, "how many faults to try at a time")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, *dir, *only, *workers); err != nil {
		fmt.Fprintln(os.Stderr, "mutants:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, dir, only string, workers int) error {
	pattern, err := regexp.Compile(only)
	if err != nil {
		return fmt.Errorf("-only: %w", err)
	}
	scratch, err := os.MkdirTemp("", "mutants-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(scratch) //nolint:errcheck // a scratch folder that stays behind harms nobody
	began := time.Now()
	if out, err := test(ctx, dir, ""); err != nil {
		return fmt.Errorf("the tests fail without any fault: %w\n%s", err, out)
	}
	var chosen []fault
	for _, f := range faults() {
		if pattern.MatchString(f.name) {
			chosen = append(chosen, f)
		}
	}
	t := trial{dir: dir, scratch: scratch}
	t.all(ctx, chosen, workers)
	fmt.Printf("mutants: %d faults, %d caught, %v\n", len(chosen), len(chosen)-len(t.failures), time.Since(began).Round(time.Second))
	return errors.Join(t.failures...)
}

// trial tries faults, several at a time.
type trial struct {
	dir, scratch string

	mu       sync.Mutex
	failures []error // guarded by mu
}

func (t *trial) all(ctx context.Context, list []fault, workers int) {
	work := make(chan fault)
	var all sync.WaitGroup
	for range max(1, workers) {
		all.Go(func() {
			for f := range work {
				t.one(ctx, f)
			}
		})
	}
	for _, f := range list {
		if ctx.Err() == nil {
			work <- f
		}
	}
	close(work)
	all.Wait()
}

func (t *trial) one(ctx context.Context, f fault) {
	caught, err := t.plant(ctx, f)
	t.mu.Lock()
	defer t.mu.Unlock()
	if err != nil {
		t.failures = append(t.failures, fmt.Errorf("%s: %w", f.name, err))
		fmt.Printf("%s -> SURVIVED OR BROKEN: %v\n", f.name, err)
		return
	}
	fmt.Printf("%s -> %s\n", f.name, caught)
}

// plant tries one fault, and returns what caught it.
func (t *trial) plant(ctx context.Context, f fault) (string, error) {
	source := filepath.Join(t.dir, f.file)
	overlay, err := f.overlay(source, filepath.Join(t.scratch, strings.ReplaceAll(f.name, " ", "-")))
	if err != nil {
		return "", err
	}
	out, err := test(ctx, t.dir, overlay)
	switch {
	case ctx.Err() != nil:
		return "", ctx.Err()
	case err == nil:
		return "", errors.New("no test fails")
	case strings.Contains(out, "[build failed]"), strings.Contains(out, "[setup failed]"):
		return "", fmt.Errorf("it does not compile:\n%s", out)
	}
	return verdict(out), nil
}

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// goTool runs the go command inside one module.
type goTool struct {
	dir string
}

func (g goTool) output(ctx context.Context, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = g.dir
	var complaint bytes.Buffer
	cmd.Stderr = &complaint
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("go %s: %w: %s", args[0], err, strings.TrimSpace(complaint.String()))
	}
	return strings.TrimSpace(string(out)), nil
}

// moduleVersion returns the version at which the module pins another one.
func (g goTool) moduleVersion(ctx context.Context, path string) (string, error) {
	return g.output(ctx, "list", "-m", "-f", "{{.Version}}", path)
}

// build compiles one binary into out under its own name. The file is renamed
// into place, so that whoever waits for it never finds half of it.
func (g goTool) build(ctx context.Context, b binary, out string, progress io.Writer) error {
	unfinished := filepath.Join(out, "."+b.name+".unfinished")
	// -v makes the compiler name each package when it is done with it.
	cmd := exec.CommandContext(ctx, "go", "build", "-v", "-trimpath", "-tags", b.tags, "-ldflags", b.flags, "-o", unfinished, b.pkg)
	cmd.Dir = g.dir
	cmd.Env = append(os.Environ(), "CGO_ENABLED="+string(b.linking))
	report := newReport(b.name, progress)
	cmd.Stderr = report
	err := cmd.Run()
	report.finish()
	if err != nil {
		return errors.Join(
			fmt.Errorf("building %s: %w\n%s", b.name, err, report.tail()),
			removeIfThere(unfinished))
	}
	return os.Rename(unfinished, filepath.Join(out, b.name))
}

func removeIfThere(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}

package main

import (
	"bytes"
	"context"
	"embed"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"
)

//go:embed client.py client.mjs
var scripts embed.FS

// python runs client.py with the newest openai package of the configured index.
func python(ctx context.Context, cache string, h *house) error {
	folder, err := prepare(cache, "client.py")
	if err != nil {
		return err
	}
	venv := filepath.Join(folder, "venv")
	interpreter := filepath.Join(venv, "bin", "python")
	if _, err := os.Stat(interpreter); err != nil {
		if err := command(ctx, folder, nil, "python3", "-m", "venv", venv); err != nil {
			return fmt.Errorf("%w: no Python: %w", errSkip, err)
		}
	}
	if err := command(ctx, folder, nil, interpreter, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "openai"); err != nil {
		return fmt.Errorf("%w: no openai package: %w", errSkip, err)
	}
	return command(ctx, folder, h.environment(), interpreter, "client.py")
}

// node runs client.mjs with the newest openai package of the configured registry.
func node(ctx context.Context, cache string, h *house) error {
	folder, err := prepare(cache, "client.mjs")
	if err != nil {
		return err
	}
	if err := command(ctx, folder, nil, "npm", "install", "--prefix", folder, "--silent", "--no-audit", "--no-fund", "openai"); err != nil {
		return fmt.Errorf("%w: no openai package: %w", errSkip, err)
	}
	return command(ctx, folder, h.environment(), "node", "client.mjs")
}

// prepare puts a script into the cache folder, an absolute path, beside its packages.
func prepare(cache, script string) (string, error) {
	folder, err := filepath.Abs(cache)
	if err != nil {
		return "", err
	}
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return "", err
	}
	text, err := scripts.ReadFile(script)
	if err != nil {
		return "", err
	}
	return folder, os.WriteFile(filepath.Join(folder, script), text, 0o644)
}

// patience bounds one command.
const patience = 5 * time.Minute

// command runs a program and shows what it says. Its error ends with its last words.
func command(ctx context.Context, folder string, env []string, name string, args ...string) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	c := exec.CommandContext(ctx, name, args...)
	c.Dir, c.Env = folder, append(os.Environ(), env...)
	var said bytes.Buffer
	c.Stdout, c.Stderr = &said, &said
	err := c.Run()
	for line := range bytes.Lines(said.Bytes()) {
		fmt.Printf("  %s", line)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", filepath.Base(name), err)
	}
	return nil
}

package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
)

const stampName = "built-from"

// stamp names the inputs of a build: equal stamps mean equal binaries.
type stamp string

// stampOf reads the module's pins and the toolchain's version.
func stampOf(ctx context.Context, g goTool, r recipe) (stamp, error) {
	toolchain, err := g.output(ctx, "env", "GOVERSION", "GOOS", "GOARCH")
	if err != nil {
		return "", err
	}
	sum := sha256.New()
	fmt.Fprintf(sum, "%s\n%+v\n", toolchain, r)
	for _, name := range []string{"go.mod", "go.sum"} {
		text, err := os.ReadFile(filepath.Join(g.dir, name))
		if err != nil {
			return "", fmt.Errorf("pins of the module: %w", err)
		}
		fmt.Fprintf(sum, "%s %d\n", name, len(text))
		sum.Write(text)
	}
	return stamp(hex.EncodeToString(sum.Sum(nil))), nil
}

// matches reports whether out holds all binaries of a build with this stamp.
func (s stamp) matches(out string, r recipe) bool {
	found, err := os.ReadFile(filepath.Join(out, stampName))
	if err != nil || string(found) != string(s) {
		return false
	}
	for _, b := range r.binaries {
		if info, err := os.Stat(filepath.Join(out, b.name)); err != nil || !info.Mode().IsRegular() {
			return false
		}
	}
	return true
}

// forget removes the stamp of an earlier build from out, so that a build which
// is interrupted half way cannot pass for a complete one.
func forget(out string) error {
	return removeIfThere(filepath.Join(out, stampName))
}

// write leaves the stamp in out. It comes after the last binary.
func (s stamp) write(out string) error {
	if err := os.WriteFile(filepath.Join(out, stampName), []byte(s), 0o644); err != nil {
		return fmt.Errorf("stamp of the build: %w", err)
	}
	return nil
}

package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

const stampName = "built-from"

// stamp names the inputs of a build: equal stamps mean equal binaries.
type stamp string

// stampOf reads the pins of the recipe's modules, the programs of our own that are built, and the
// toolchain's version.
func stampOf(ctx context.Context, dir string, r recipe) (stamp, error) {
	toolchain, err := goTool{dir: dir}.output(ctx, "env", "GOVERSION", "GOOS", "GOARCH")
	if err != nil {
		return "", err
	}
	sum := sha256.New()
	fmt.Fprintf(sum, "%s\n%+v\n", toolchain, r)
	files, err := r.inputs(dir)
	if err != nil {
		return "", err
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return "", fmt.Errorf("what the binaries are made of: %w", err)
		}
		fmt.Fprintf(sum, "%s %d\n", filepath.Base(file), len(text))
		sum.Write(text)
	}
	return stamp(hex.EncodeToString(sum.Sum(nil))), nil
}

// inputs are the files that decide what the binaries are: the pins of their modules, and of our own
// programs everything.
func (r recipe) inputs(dir string) ([]string, error) {
	var files []string
	for _, module := range r.modules() {
		files = append(files, filepath.Join(dir, module, "go.mod"), filepath.Join(dir, module, "go.sum"))
	}
	for _, b := range r.binaries {
		if !strings.HasPrefix(b.pkg, "./") {
			continue
		}
		sources, err := filepath.Glob(filepath.Join(dir, b.module, b.pkg, "*.*"))
		if err != nil {
			return nil, err
		}
		files = append(files, sources...)
	}
	return files, nil
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

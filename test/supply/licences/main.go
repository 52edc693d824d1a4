// Command licences writes docs/licences.md: the modules that the programs of cmd/ are built from, each with its
// licence. It fails on a module whose licence it does not know, or that the project may not be built with.
package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

func main() {
	out := flag.String("out", "docs/licences.md", "the file to write")
	flag.Parse()
	if err := run(context.Background(), *out); err != nil {
		fmt.Fprintln(os.Stderr, "licences:", err)
		os.Exit(1)
	}
}

// module is one that is linked into a program.
type module struct{ path, version, folder, licence string }

func run(ctx context.Context, out string) error {
	modules, err := linked(ctx)
	if err != nil {
		return err
	}
	var unknown []error
	for i := range modules {
		m := &modules[i]
		if m.licence, err = licenceIn(m.folder); err != nil {
			unknown = append(unknown, fmt.Errorf("%s %s: %w", m.path, m.version, err))
		}
	}
	if err := errors.Join(unknown...); err != nil {
		return err
	}
	return os.WriteFile(out, []byte(page(modules)), 0o600)
}

// linked lists the modules of everything that ./cmd/... imports, but this one.
func linked(ctx context.Context) ([]module, error) {
	raw, err := exec.CommandContext(ctx, "go", "list", "-deps", "-f", "{{with .Module}}{{if not .Main}}{{.Path}}\t{{.Version}}\t{{.Dir}}{{end}}{{end}}", "./cmd/...").Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w", err)
	}
	var list []module
	for line := range strings.Lines(string(raw)) {
		if part := strings.Split(strings.TrimSpace(line), "\t"); len(part) == 3 {
			list = append(list, module{path: part[0], version: part[1], folder: part[2]})
		}
	}
	slices.SortFunc(list, func(a, b module) int { return cmp.Compare(a.path, b.path) })
	return slices.Compact(list), nil
}

var (
	errNone    = errors.New("it has no file with a licence")
	errUnknown = errors.New("its licence is none of those that are known to be compatible")
)

// kinds are the licences that may be linked into a program under Apache-2.0, by words that are in each and
// in no other of them. The first that matches counts.
func kinds() []struct{ name, words string } {
	return []struct{ name, words string }{
		{"MIT and Apache-2.0", "covered by two different licenses mit and apache"},
		{"Apache-2.0", "apache license version 2.0"},
		{"BSD-3-Clause", "neither the name of"},
		{"ISC", "permission to use copy modify and or distribute this software for any purpose with or without fee"},
		{"ISC", "permission to use copy modify and distribute this software for any purpose with or without fee"},
		{"MIT", "permission is hereby granted free of charge"},
		{"BSD-2-Clause", "redistributions in binary form must reproduce"},
	}
}

var (
	fileName = regexp.MustCompile(`(?i)^(licen[cs]e|copying)([.-].*)?$`)
	noWords  = regexp.MustCompile(`[^a-z0-9.]+`)
)

// licenceIn names the licence of the module in a folder.
func licenceIn(folder string) (string, error) {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return "", err
	}
	for _, e := range entries {
		if !fileName.MatchString(e.Name()) {
			continue
		}
		text, err := os.ReadFile(filepath.Join(folder, e.Name()))
		if err != nil {
			return "", err
		}
		words := noWords.ReplaceAllString(strings.ToLower(string(text)), " ")
		for _, kind := range kinds() {
			if strings.Contains(words, kind.words) {
				return kind.name, nil
			}
		}
		return "", fmt.Errorf("%s: %w", e.Name(), errUnknown)
	}
	return "", errNone
}

// page is what is written.
func page(modules []module) string {
	var b strings.Builder
	b.WriteString("# Licences\n\nBerthmaster is under Apache-2.0. Its programs are built from these modules. `make licences` writes this page,\n" +
		"and fails on a licence that it does not know.\n\n| module | version | licence |\n|---|---|---|\n")
	for _, m := range modules {
		fmt.Fprintf(&b, "| %s | %s | %s |\n", m.path, m.version, m.licence)
	}
	return b.String()
}

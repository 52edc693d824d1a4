package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestProgramsAnnounceTheReleaseTheyAreBuiltFrom(t *testing.T) {
	flags, err := kubernetesFlags("v1.37.2")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"-X k8s.io/component-base/version.gitVersion=v1.37.2",
		"-X k8s.io/component-base/version.gitMinor=37",
		"-X k8s.io/client-go/pkg/version.gitVersion=v1.37.2",
	} {
		if !strings.Contains(flags, want) {
			t.Errorf("linker flags %q lack %q", flags, want)
		}
	}
}

func TestRecipeRefusesAVersionThatIsNoRelease(t *testing.T) {
	for _, version := range []string{"", "v1.37", "v1.38.0-alpha.1", "v0.0.0-20260101000000-abcdefabcdef"} {
		if _, err := kubernetesFlags(version); err == nil {
			t.Errorf("kubernetesFlags(%q) was accepted", version)
		}
	}
}

func TestEverySetNamesEachOfItsBinariesOnce(t *testing.T) {
	for _, r := range []recipe{controlPlaneRecipe("v1.37.2", ""), nodesRecipe("v1.37.2", "")} {
		seen := map[string]bool{}
		for _, b := range r.binaries {
			if seen[b.name] || b.pkg == "" || b.linking == "" {
				t.Errorf("%+v is named twice, or not how to build it", b)
			}
			seen[b.name] = true
		}
		if modules := r.modules(); len(modules) > 2 || modules[0] != "" {
			t.Errorf("the modules are %q: those of one folder should follow each other", modules)
		}
	}
}

func TestReportCountsWholeLinesAndKeepsTheLastWords(t *testing.T) {
	var said strings.Builder
	r := newReport("etcd", &said)
	for _, piece := range []string{"internal/", "goarch\nunicode\nma", "in.go:3: undefined: x"} {
		if _, err := r.Write([]byte(piece)); err != nil {
			t.Fatal(err)
		}
	}
	r.finish()
	if !strings.Contains(said.String(), "2 packages compiled") {
		t.Errorf("said %q, want a count of 2", said.String())
	}
	if want := "internal/goarch\nunicode\nmain.go:3: undefined: x"; r.tail() != want {
		t.Errorf("tail is %q, want %q", r.tail(), want)
	}
}

func TestStampMatchesOnlyCompleteBuildsOfTheSameInputs(t *testing.T) {
	module := t.TempDir()
	for _, name := range []string{"go.mod", "go.sum"} {
		writeFile(t, filepath.Join(module, name), "module example.test\n")
	}
	writeFile(t, filepath.Join(module, "own", "main.go"), "package main\n")
	r := recipe{binaries: []binary{{name: "etcd", flags: "-s"}, {name: "own", pkg: "./own"}}}
	before, err := stampOf(t.Context(), module, r)
	if err != nil {
		t.Fatal(err)
	}
	out := t.TempDir()
	writeFile(t, filepath.Join(out, "own"), "binary")
	if err := before.write(out); err != nil {
		t.Fatal(err)
	}
	if before.matches(out, r) {
		t.Error("the stamp matches although the binary is missing")
	}
	writeFile(t, filepath.Join(out, "etcd"), "binary")
	if !before.matches(out, r) {
		t.Error("the stamp does not match its own complete build")
	}
	for _, changed := range []string{"go.sum", "own/main.go"} {
		writeFile(t, filepath.Join(module, changed), "// changed\n")
		after, err := stampOf(t.Context(), module, r)
		if err != nil {
			t.Fatal(err)
		}
		if after.matches(out, r) {
			t.Errorf("the stamp matches although %s has changed", changed)
		}
	}
}

func writeFile(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

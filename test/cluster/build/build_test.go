package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestRecipeWritesTheReleaseIntoTheProgramsVersion(t *testing.T) {
	r, err := recipeFor("v1.37.2")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"-X k8s.io/component-base/version.gitVersion=v1.37.2",
		"-X k8s.io/component-base/version.gitMinor=37",
		"-X k8s.io/client-go/pkg/version.gitVersion=v1.37.2",
	} {
		if !strings.Contains(r.ldflags, want) {
			t.Errorf("linker flags %q lack %q", r.ldflags, want)
		}
	}
}

func TestRecipeRefusesAVersionThatIsNoRelease(t *testing.T) {
	for _, version := range []string{"", "v1.37", "v1.38.0-alpha.1", "v0.0.0-20260101000000-abcdefabcdef"} {
		if _, err := recipeFor(version); err == nil {
			t.Errorf("recipeFor(%q) was accepted", version)
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
	r := recipe{ldflags: "-s", binaries: []binary{{name: "etcd"}}}
	before, err := stampOf(t.Context(), goTool{dir: module}, r)
	if err != nil {
		t.Fatal(err)
	}
	out := t.TempDir()
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
	writeFile(t, filepath.Join(module, "go.sum"), "example.test/dep v1.0.0 h1:x\n")
	after, err := stampOf(t.Context(), goTool{dir: module}, r)
	if err != nil {
		t.Fatal(err)
	}
	if after.matches(out, r) {
		t.Error("the stamp matches although the pins have changed")
	}
}

func writeFile(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

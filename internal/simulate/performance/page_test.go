package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestReadFiguresTakesFigureLinesOnly(t *testing.T) {
	got, err := readFigures(strings.NewReader("building\nfigure acquire_release_16 812.5 ns\n\nok  \tpackage\t1.2s\nfigure sim_async_cv 0.0625 ratio\n"))
	if err != nil {
		t.Fatal(err)
	}
	want := []figure{{"acquire_release_16", "812.5", "ns"}, {"sim_async_cv", "0.0625", "ratio"}}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(figure{})); diff != "" {
		t.Error(diff)
	}
	for _, bad := range []string{"figure a 1", "figure a one ns", "figure a 1 ns more"} {
		if _, err := readFigures(strings.NewReader("\n" + bad)); err == nil || !strings.Contains(err.Error(), "line 2") {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

func TestReplaceChangesOnePartAndNothingElse(t *testing.T) {
	page := "a\n<!-- begin x -->\nold\n<!-- end x -->\nb\n<!-- begin y -->\n<!-- end y -->\n"
	got, err := replace([]byte(page), "x", "new\nlines\n")
	if err != nil {
		t.Fatal(err)
	}
	want := "a\n<!-- begin x -->\n\nnew\nlines\n\n<!-- end x -->\nb\n<!-- begin y -->\n<!-- end y -->\n"
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Error(diff)
	}
	again, err := replace(got, "x", "new\nlines\n")
	if err != nil || string(again) != want {
		t.Errorf("replacing again changes the page: %q, %v", again, err)
	}
	for name, bad := range map[string]string{
		"no such part":   "a\n",
		"two such parts": page + page,
		"end first":      "<!-- end x -->\n<!-- begin x -->\n",
	} {
		if _, err := replace([]byte(bad), "x", ""); err == nil {
			t.Errorf("%s is accepted", name)
		}
	}
}

func TestThePageHasEveryPartAndRunFillsIt(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", "performance.md"))
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	copied := filepath.Join(dir, "performance.md")
	if err := os.WriteFile(copied, page, 0o600); err != nil {
		t.Fatal(err)
	}
	trace := filepath.Join(dir, "tiny.csv")
	if err := os.WriteFile(trace, []byte("arrival_ms,session,turn,input_tokens,output_tokens\n0,a,0,9,9\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s := settings{docs: dir, seeds: 1, workloads: "long-context", trace: trace, replicas: 2}
	if err := s.run(t.Context(), strings.NewReader("figure known_figure 12.5 ns\n")); err != nil {
		t.Fatal(err)
	}
	filled, err := os.ReadFile(copied)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"| known_figure | 12.5 | ns |", "### long-context", "### tiny.csv", "| ties-by-tokens |", "cores"} {
		if !strings.Contains(string(filled), want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	for _, plot := range []string{"performance.svg", "performance-designs.svg"} {
		if svg, err := os.ReadFile(filepath.Join(dir, plot)); err != nil || !strings.HasPrefix(string(svg), "<svg") {
			t.Errorf("%s: %.20q, %v", plot, svg, err)
		}
	}
}

func TestRunRewritesOnlyTheWantedParts(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "performance.md")
	page := "<!-- begin figures -->\n<!-- end figures -->\n<!-- begin simulation -->\nkept\n<!-- end simulation -->\n"
	if err := os.WriteFile(path, []byte(page), 0o600); err != nil {
		t.Fatal(err)
	}
	s := settings{docs: dir, seeds: 1, parts: "figures"}
	if err := s.run(t.Context(), strings.NewReader("figure f 1 ns\n")); err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if text := string(got); !strings.Contains(text, "| f | 1 | ns |") || !strings.Contains(text, "\nkept\n") {
		t.Errorf("page %q", text)
	}
	if err := s.run(t.Context(), strings.NewReader("figure f one ns\n")); err == nil || !strings.Contains(err.Error(), "figures: line 1") {
		t.Errorf("error %v", err)
	}
}

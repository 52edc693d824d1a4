package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
)

// seed makes the random histories the same in every run; histories is how many of them each
// property test makes.
const (
	seed      = "20260101"
	histories = "400"
)

// test runs the package's tests, with a fault if there is an overlay.
func test(ctx context.Context, dir, overlay string) (string, error) {
	args := []string{"test", "-count=1", "-timeout=120s", "-vet=off"}
	if overlay != "" {
		args = append(args, "-overlay="+overlay)
	}
	args = append(args, "./"+filepath.ToSlash(dir), "-rapid.seed="+seed, "-rapid.checks="+histories, "-rapid.shrinktime=1ms")
	out, err := exec.CommandContext(ctx, "go", args...).CombinedOutput()
	return string(out), err
}

// overlay writes the faulty file and the overlay that puts it in the place of the source.
func (f fault) overlay(source, scratch string) (string, error) {
	text, err := os.ReadFile(source)
	if err != nil {
		return "", err
	}
	if n := strings.Count(string(text), f.old); n != 1 {
		return "", fmt.Errorf("what it replaces is %d times in %s: the fault no longer applies", n, source)
	}
	faulty := scratch + ".go"
	if err := os.WriteFile(faulty, []byte(strings.Replace(string(text), f.old, f.now, 1)), 0o600); err != nil {
		return "", err
	}
	absolute, err := filepath.Abs(source)
	if err != nil {
		return "", err
	}
	content, err := json.Marshal(map[string]map[string]string{"Replace": {absolute: faulty}})
	if err != nil {
		return "", err
	}
	return scratch + ".json", os.WriteFile(scratch+".json", content, 0o600)
}

var (
	failedTest = regexp.MustCompile(`(?m)^--- FAIL: (\S+)`)
	invariant  = regexp.MustCompile(`\[rapid\] failed after \d+ tests: (.*)`)
)

// verdict names what caught a fault: the invariant or promise that a random history broke, and
// the tests that failed.
func verdict(out string) string {
	var tests []string
	for _, m := range failedTest.FindAllStringSubmatch(out, -1) {
		tests = append(tests, m[1])
	}
	if len(tests) == 0 {
		line, _, _ := strings.Cut(out, "\n")
		return "the test program itself: " + line
	}
	said := tests[0]
	if len(tests) > 1 {
		said += fmt.Sprintf(" and %d more", len(tests)-1)
	}
	if m := invariant.FindStringSubmatch(out); m != nil {
		broken := m[1]
		if len(broken) > 110 {
			broken = broken[:110] + "..."
		}
		said += ": " + broken
	}
	return said
}

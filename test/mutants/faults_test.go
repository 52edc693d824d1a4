package main

import (
	"path/filepath"
	"testing"
)

// A fault that no longer applies is planted nowhere, and proves nothing.
func TestEveryFaultAppliesToTheRouterAsItIs(t *testing.T) {
	scratch := t.TempDir()
	for _, f := range faults() {
		source := filepath.Join("..", "..", "internal", "router", f.file)
		if _, err := f.overlay(source, filepath.Join(scratch, "fault")); err != nil {
			t.Errorf("%s: %v", f.name, err)
		}
	}
}

func TestFaultsAreNamedOnce(t *testing.T) {
	seen := map[string]bool{}
	for _, f := range faults() {
		if seen[f.name] {
			t.Errorf("two faults are named %q", f.name)
		}
		seen[f.name] = true
	}
}

package conformance

import (
	"slices"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m)
}

func table() []row {
	return slices.Concat(
		generalRows(), healthRows(), processRows(), infoRows(), generationRows(), streamRows(), abortRows(), openAIRows(),
		pauseRows(), updateRows(), memoryRows(), metricsRows(),
	)
}

func TestConformance(t *testing.T) {
	for _, r := range table() {
		t.Run(r.section+" "+r.claim, func(t *testing.T) {
			if *engineURL == "" {
				t.Parallel()
			}
			r.check(t, start(t, r))
		})
	}
}

func TestRowsAreDistinctAndSaySomething(t *testing.T) {
	seen := map[string]bool{}
	for _, r := range table() {
		name := r.section + " " + r.claim
		if seen[name] || r.claim == "" || r.check == nil {
			t.Errorf("row %q is empty or there twice", name)
		}
		seen[name] = true
	}
}

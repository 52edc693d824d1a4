package simulate

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berthmaster/berthmaster/internal/simulate/workload"
)

// TestTodaysPracticeHasTheReportedImbalance holds the calibration: the report says 0.1918.
func TestTodaysPracticeHasTheReportedImbalance(t *testing.T) {
	scenario := sweAsync()
	var found []float64
	turns, sessions := 0, 0
	for seed := uint64(1); seed <= 10; seed++ {
		all, err := scenario.Sessions(seed)
		if err != nil {
			t.Fatal(err)
		}
		found = append(found, imbalance(all, TodaysPractice(all, len(scenario.Fleet)), scenario.Fleet))
		turns, sessions = turns+workload.Requests(all), sessions+len(all)
	}
	got := estimate(found)
	t.Logf("coefficient of variation %.4f ± %.4f, %.1f turns per session", got.Mean, got.StdErr, float64(turns)/float64(sessions))
	if got.Mean < 0.15 || got.Mean > 0.23 {
		t.Errorf("coefficient of variation is %.4f, want 0.15 to 0.23", got.Mean)
	}
	if mean := float64(turns) / float64(sessions); mean < 60 || mean > 67 {
		t.Errorf("%.1f turns per session on average, want about 65", mean)
	}
}

func TestTodaysPracticeKeepsGroupsTogether(t *testing.T) {
	group := func(names ...string) (all []workload.Session) {
		for _, name := range names {
			all = append(all, workload.Session{Group: name})
		}
		return all
	}
	for name, c := range map[string]struct {
		sessions []workload.Session
		want     []int
	}{
		"whole groups go round":            {group("a", "a", "b", "b", "c", "d"), []int{0, 0, 1, 1, 2, 0}},
		"a late sibling joins its group":   {group("a", "b", "a"), []int{0, 1, 0}},
		"sessions of no group go in turns": {group("", "", "", ""), []int{0, 1, 2, 0}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, TodaysPractice(c.sessions, 3)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

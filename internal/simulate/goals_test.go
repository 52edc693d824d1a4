package simulate

import "testing"

// tenSeeds compares the named arms on one built-in workload.
func tenSeeds(t *testing.T, scenario string, arms ...string) map[string]Row {
	t.Helper()
	scenarios, err := Find(scenario)
	if err != nil {
		t.Fatal(err)
	}
	found, err := FindArms(arms)
	if err != nil {
		t.Fatal(err)
	}
	report := compareOrFail(t, Plan{Scenarios: scenarios, Arms: found, Seeds: 10})
	rows := make(map[string]Row)
	for _, row := range report.Comparisons[0].Rows {
		rows[row.Arm] = row
	}
	return rows
}

func TestR1TakesAThirdOffTodaysImbalance(t *testing.T) {
	rows := tenSeeds(t, "swe-async", Promise)
	if today, got := rows[Today].Variation.Mean, rows[Promise].Variation.Mean; got > today*2/3 {
		t.Errorf("variation %.4f, today's practice has %.4f", got, today)
	}
	if got := rows[Promise].Duration.Mean; got > 1 {
		t.Errorf("R1 takes %.4f of today's duration", got)
	}
}

func TestR1IsFasterThanTodaysPracticeOnUnequalReplicas(t *testing.T) {
	if got := tenSeeds(t, "mixed-fleet", Promise)[Promise].Duration; got.Mean+2*got.StdErr > 1 {
		t.Errorf("R1 takes %v of today's duration", got)
	}
}

func TestRebalanceIsNoSlowerThanStickyWhereMovesAreDear(t *testing.T) {
	rows := tenSeeds(t, "long-context", Promise, Rebalanced)
	if sticky, got := rows[Promise].Seconds.Mean, rows[Rebalanced].Seconds.Mean; got > 1.01*sticky {
		t.Errorf("Rebalance takes %.0f s, Sticky %.0f s", got, sticky)
	}
}

func TestRebalanceHalvesTheImbalanceOfR1(t *testing.T) {
	rows := tenSeeds(t, "swe-async", Promise, Rebalanced)
	if sticky, got := rows[Promise].Variation.Mean, rows[Rebalanced].Variation.Mean; got > sticky/2 {
		t.Errorf("variation %.4f, Sticky has %.4f", got, sticky)
	}
}

func TestTheProposedTiesReachTheGoal(t *testing.T) {
	rows := tenSeeds(t, "swe-async", "ties-by-tokens-bounded")
	if got := rows["ties-by-tokens-bounded"].Variation.Mean; got > 0.066 {
		t.Errorf("variation %.4f, want at most 0.066", got)
	}
}

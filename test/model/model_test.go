package model_test

import (
	"flag"
	"testing"

	"github.com/berthmaster/berthmaster/test/model"
)

func TestTwoManagersNeverHaveAuthorityAtOnce(t *testing.T) {
	found := model.ExploreElection(model.ElectionSound)
	if found.Broken != "" {
		t.Fatal(found)
	}
	t.Logf("%d states", found.States)
}

func TestElectionNeedsEachOfItsRules(t *testing.T) {
	for name, fault := range map[string]model.ElectionFault{
		"authority counted from the reply":       model.CountsFromReply,
		"a deadline beyond the lease's duration": model.LongDeadline,
		"writes that look at no version":         model.BlindWrites,
		"clocks of two machines compared":        model.ComparesClocks,
		"a lock cleared that names another":      model.ClearsAnothers,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if found := model.ExploreElection(fault); found.Broken == "" {
				t.Errorf("not found out in %d states", found.States)
			} else {
				t.Log(found)
			}
		})
	}
}

// alone is enough to find each fault out.
func alone() model.Bounds { return model.Bounds{Grants: 2, Crashes: 1, Terms: 3, Clients: 1} }

func TestNoTurnIsExecutedTwiceAndNoBackendIsTakenForEmptyWrongly(t *testing.T) {
	for name, bounds := range map[string]model.Bounds{
		"one client and a crash": {Grants: 1, Crashes: 1, Terms: 2, Clients: 1}, "one client and three terms": {Grants: 1, Terms: 3, Clients: 1},
		"one client and two leases": {Grants: 2, Terms: 2, Clients: 1}, "two clients": {Grants: 2, Terms: 1, Clients: 2},
		"two clients, two terms and a crash": {Grants: 1, Crashes: 1, Terms: 2, Clients: 2},
	} {
		t.Run(name, func(t *testing.T) { holds(t, bounds) })
	}
}

func holds(t *testing.T, bounds model.Bounds) {
	t.Helper()
	found := model.ExploreLeases(model.LeaseSound, bounds)
	if found.Broken != "" {
		t.Fatal(found)
	}
	t.Logf("%d states", found.States)
}

var whole = flag.Bool("whole", false, "explore two clients, two terms and two leases together: ten million states")

func TestAllOfItTogether(t *testing.T) {
	if !*whole {
		t.Skip("takes minutes: make model")
	}
	holds(t, model.Bounds{Grants: 2, Terms: 2, Clients: 2})
}

// A key that told too much apart would only cost time; one that took different states for one would
// hide some. Faults are found out with two clients as well as with one.
func TestFaultsAreFoundOutAmongTwoClients(t *testing.T) {
	for name, fault := range map[string]model.LeaseFault{
		"no grant without authority":                    model.GrantsWithoutAuthority,
		"a take-over finds unknown load":                model.TakesForEmpty,
		"a lost lease stays counted":                    model.ForgetsLost,
		"dead is what the engine's load shows":          model.BelievesAborts,
		"a client that is unsure waits to be told Dead": model.RepeatsUnsure,
	} {
		t.Run(name, func(t *testing.T) {
			found := model.ExploreLeases(fault, model.Bounds{Grants: 2, Terms: 2, Clients: 2})
			if found.Broken == "" {
				t.Errorf("not found out in %d states", found.States)
			}
			t.Logf("in %d states", found.States)
		})
	}
}

func TestLeasesNeedEachOfTheirRules(t *testing.T) {
	for name, fault := range map[string]model.LeaseFault{
		"no grant without authority":                          model.GrantsWithoutAuthority,
		"a term is written over what was read only":           model.BlindTerm,
		"authority regained is used after a look at the term": model.ResumesUnseen,
		"a take-over finds unknown load":                      model.TakesForEmpty,
		"start windows of earlier terms are waited for":       model.IgnoresWindows,
		"no start window opens without authority":             model.RenewsUnstarted,
		"nothing is called Dead without authority":            model.VouchesLapsed,
		"dead is what the engine's load shows":                model.BelievesAborts,
		"a lost lease stays counted":                          model.ForgetsLost,
		"a term that came too late is given up":               model.KeepsLateTerm,
		"a token opens nothing that was called complete":      model.OpensProven,
		"a client that is unsure waits to be told Dead":       model.RepeatsUnsure,
	} {
		t.Run(name, func(t *testing.T) {
			if found := model.ExploreLeases(fault, alone()); found.Broken == "" {
				t.Errorf("not found out in %d states", found.States)
			} else {
				t.Log(found)
			}
		})
	}
}

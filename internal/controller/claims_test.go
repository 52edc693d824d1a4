package controller

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/berthmaster/berthmaster/api/v1alpha1"
)

// pioneer is a pool that is n hours old.
func pioneer(name string, n int) claimant {
	return claimant{
		uid: types.UID(name), key: types.NamespacedName{Namespace: "rl", Name: name},
		created: noon.Add(-time.Duration(n) * time.Hour),
	}
}

// set is a set of strings.
func set(list ...string) map[string]struct{} {
	out := map[string]struct{}{}
	for _, s := range list {
		out[s] = struct{}{}
	}
	return out
}

func TestEngineBelongsToTheOldestPoolThatClaimsIt(t *testing.T) {
	c, old, young := newClaims(), pioneer("old", 2), pioneer("young", 1)
	if lost, others := c.stake(young, set("x", "y")); len(lost)+len(others) > 0 {
		t.Errorf("alone, it lost %v to %v", lost, others)
	}
	lost, others := c.stake(old, set("y", "z"))
	if len(lost) > 0 {
		t.Errorf("the older pool lost %v", lost)
	}
	if diff := cmp.Diff([]types.NamespacedName{young.key}, others); diff != "" {
		t.Errorf("to look again (-want +got):\n%s", diff)
	}
	if lost, others = c.stake(young, set("x", "y")); cmp.Diff(set("y"), lost) != "" || len(others) > 0 {
		t.Errorf("the younger lost %v and woke %v, want y and nobody", lost, others)
	}
	if others = c.withdraw(old.key); cmp.Diff([]types.NamespacedName{young.key}, others) != "" {
		t.Errorf("the end of the older woke %v, want the younger", others)
	}
	if lost, _ = c.stake(young, set("x", "y")); len(lost) > 0 {
		t.Errorf("after the end of the older, it lost %v", lost)
	}
	if others = c.withdraw(young.key); len(others) > 0 || len(c.byEngine)+len(c.byPool) > 0 {
		t.Errorf("woke %v; %d engines and %d pools are remembered", others, len(c.byEngine), len(c.byPool))
	}
}

func TestAPoolOfTheSameNameInheritsNoClaim(t *testing.T) {
	c, first, young := newClaims(), pioneer("first", 3), pioneer("young", 1)
	c.stake(first, set("x"))
	c.stake(young, set("x"))
	again := first
	again.uid, again.created = "again", noon
	lost, others := c.stake(again, set("x"))
	if cmp.Diff(set("x"), lost) != "" || !slices.Contains(others, young.key) {
		t.Errorf("the new pool of the name lost %v and woke %v; want it to lose x to the other", lost, others)
	}
	if lost, _ = c.stake(young, set("x")); len(lost) > 0 {
		t.Errorf("the other lost %v to a pool that is gone", lost)
	}
}

func TestClaimsGiveEveryEngineToExactlyOnePool(t *testing.T) {
	engines := []string{"a", "b", "c"}
	pools := []claimant{pioneer("p", 3), pioneer("q", 2), pioneer("r", 2), pioneer("s", 1)}
	rapid.Check(t, func(t *rapid.T) {
		c, wanted := newClaims(), map[types.UID]map[string]struct{}{}
		t.Repeat(map[string]func(*rapid.T){
			"stake": func(t *rapid.T) {
				who := rapid.SampledFrom(pools).Draw(t, "pool")
				wanted[who.uid] = set(rapid.SliceOfDistinct(rapid.SampledFrom(engines), rapid.ID[string]).Draw(t, "engines")...)
				c.stake(who, wanted[who.uid])
			},
			"withdraw": func(t *rapid.T) {
				who := rapid.SampledFrom(pools).Draw(t, "pool")
				c.withdraw(who.key)
				delete(wanted, who.uid)
			},
			"": func(t *rapid.T) {
				for _, engine := range engines {
					var keepers, claimants []types.UID
					for _, who := range pools { // the oldest first, ties by UID
						if _, wants := wanted[who.uid][engine]; !wants {
							continue
						}
						claimants = append(claimants, who.uid)
						if lost, others := c.stake(who, wanted[who.uid]); len(others) > 0 {
							t.Fatalf("%s woke %v without a change", who.uid, others)
						} else if _, isLost := lost[engine]; !isLost {
							keepers = append(keepers, who.uid)
						}
					}
					if want := claimants[:min(1, len(claimants))]; !slices.Equal(keepers, want) {
						t.Fatalf("%s: kept by %v, want %v of %v", engine, keepers, want, claimants)
					}
				}
			},
		})
	})
}

func TestDecideUsesNoEngineThatIsNotItsOwn(t *testing.T) {
	twin := running("b")
	twin.url = running("a").url + "//"
	w := worldWith(running("a"), twin, running("c"))
	w.lost = set("c:30000")
	got := decide(w, noon)
	if len(got.fleet.Members) != 1 || got.fleet.Members[0].Name != "a" {
		t.Errorf("members %v, want a alone", got.fleet.Members)
	}
	for _, b := range got.berths {
		if conflict := b.unusable == v1alpha1.ReasonBackendConflict; conflict != (b.name != "a") {
			t.Errorf("%s: unusable for %q", b.name, b.unusable)
		}
	}
}

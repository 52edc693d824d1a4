package simulate

import (
	"errors"
	"strings"
	"testing"
)

func TestFindReturnsFamiliesWhole(t *testing.T) {
	for name, want := range map[string]int{"swe-async": 1, "swe-verbose": 1, "swe-group": 4, "swe-group-0.8": 1, "mixed-fleet": 1, "burst": 1, "long-context": 1} {
		if found, err := Find(name); err != nil || len(found) != want {
			t.Errorf("%s: %d scenarios, %v; want %d", name, len(found), err, want)
		}
	}
}

func TestFindNamesWhatThereIsInstead(t *testing.T) {
	_, err := Find("swe")
	if !errors.Is(err, ErrUnknownScenario) || !strings.Contains(err.Error(), "swe-async, swe-verbose, swe-group-0.3") {
		t.Errorf("error %v", err)
	}
}

func TestEverySessionFitsIntoTheCacheOfEveryReplica(t *testing.T) {
	for _, s := range Scenarios() {
		sessions, err := s.Sessions(1)
		if err != nil {
			t.Fatal(err)
		}
		for _, b := range s.Fleet {
			for _, one := range sessions {
				if limit := b.Engine.WithDefaults().KVTokens; one.Context() > limit {
					t.Fatalf("%s: session %s has %d tokens, %s holds %d", s.Name, one.ID, one.Context(), b.Name, limit)
				}
			}
		}
	}
}

package main

import (
	"os"
	"testing"
)

// TestMain is also the process of clients, when it is started as one.
func TestMain(m *testing.M) {
	if ran, err := clientsIfAsked(os.Stdout); ran {
		exit(err)
	}
	os.Exit(m.Run())
}

func TestFiftyThousandLeasesInBadWeatherLeaveNothingBehind(t *testing.T) {
	if err := runSoak(t.Context(), t.Output(), 50_000); err != nil {
		t.Fatal(err)
	}
}

func TestAbuseStaysWithinTheCaps(t *testing.T) {
	if err := runAbuse(t.Context(), t.Output(), 30_000, 1_000); err != nil {
		t.Fatal(err)
	}
}

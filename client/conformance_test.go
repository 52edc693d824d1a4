package client_test

import (
	"testing"

	"github.com/berthmaster/berthmaster/clients/conformance"
	"github.com/berthmaster/berthmaster/clients/conformance/fakepool"
	"github.com/berthmaster/berthmaster/clients/conformance/player"
)

// TestClientPassesEveryScenario plays the shared table with this client.
func TestClientPassesEveryScenario(t *testing.T) {
	table, err := conformance.Load()
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range table {
		t.Run(s.Name, func(t *testing.T) {
			t.Parallel()
			fake, err := fakepool.Start(s)
			if err != nil {
				t.Fatal(err)
			}
			defer fake.Close()
			reports, err := player.Play(t.Context(), fake, s)
			if err != nil {
				t.Fatal(err)
			}
			violations, err := fake.Judge(reports)
			if err != nil {
				t.Fatal(err)
			}
			for _, v := range violations {
				t.Error(v)
			}
		})
	}
}

package server

import (
	"bytes"
	"testing"

	"github.com/berthmaster/berthmaster/internal/router"
)

// rotation is what the Secret says, step by step, while key a is replaced by key b.
func rotation() []Keys {
	a, b := bytes.Repeat([]byte("a"), minKeyBytes), bytes.Repeat([]byte("b"), minKeyBytes)
	return []Keys{{Current: a}, {Current: a, Previous: b}, {Current: b, Previous: a}, {Current: b}}
}

// understand reports whether a token that one replica made is known to another.
func understand(t *testing.T, makes, reads Keys) bool {
	t.Helper()
	from, err := newTokens(makes)
	if err != nil {
		t.Fatal(err)
	}
	to, err := newTokens(reads)
	if err != nil {
		t.Fatal(err)
	}
	_, err = to.verify(from.append(nil, &router.Claim{Pool: "p", Request: "r", RID: "x", Epoch: 1, Term: 1, Executions: 1}))
	return err == nil
}

func TestReplicasAStepApartKnowEachOthersTokensAllThroughARotation(t *testing.T) {
	steps := rotation()
	for i := range steps[1:] {
		if !understand(t, steps[i], steps[i+1]) {
			t.Errorf("step %d: a token of a replica that lags is refused by one that has looked", i+1)
		}
		if !understand(t, steps[i+1], steps[i]) {
			t.Errorf("step %d: a token of a replica that has looked is refused by one that lags", i+1)
		}
	}
}

// The first step cannot be left out, nor the wait between the steps.
func TestARotationInOneStepRefusesTokensOfReplicasThatLag(t *testing.T) {
	steps := rotation()
	if understand(t, steps[2], steps[0]) {
		t.Error("a replica knows tokens of a key that it was never given")
	}
	if understand(t, steps[0], steps[3]) {
		t.Error("a key that was removed is still known")
	}
}

package server

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"github.com/berthmaster/berthmaster/internal/router"
)

func TestAFaultOfThisProgramIsLoggedWithTheCallItBroke(t *testing.T) {
	var out bytes.Buffer
	s, err := New(Config{Pools: router.NewPools(), Keys: Keys{Current: key(1)}, Log: slog.New(slog.NewTextHandler(&out, nil))})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	c := &call{pool: router.PoolKey{Namespace: "rl", Name: "policy"}, id: "r1"}
	if p := s.problemOf(c.failed(errors.New("the disk of the moon"))); p.Status != 500 || strings.Contains(p.Detail, "moon") {
		t.Errorf("the caller is told %+v", p)
	}
	for _, part := range []string{"level=ERROR", "pool=rl/policy", "id=r1", "the disk of the moon"} {
		if !strings.Contains(out.String(), part) {
			t.Errorf("no %s in %s", part, out.String())
		}
	}
	out.Reset()
	s.problemOf(c.failed(&router.Refusal{Reason: router.ReasonNoBackend}))
	if out.Len() > 0 {
		t.Errorf("a refusal is no fault: %s", out.String())
	}
}

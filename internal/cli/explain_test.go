package cli

import (
	"strings"
	"testing"

	"github.com/berthmaster/berthmaster/internal/cli/live"
)

func TestASessionIsExplainedInWords(t *testing.T) {
	home := &live.BackendRef{Name: "b0", Incarnation: "pod-0/c-1"}
	chosen := live.Score{Backend: "b0", Outstanding: 3, Capacity: 64, Sessions: 2}
	serving := live.Backend{Name: "b0", Incarnation: "pod-0/c-1", Admissible: true}
	for name, c := range map[string]struct {
		session live.Session
		backend live.Backend
		want    []string
	}{
		"the best of several": {
			live.Session{Backend: home, Choice: live.Choice{Why: "Placed", Candidates: 3, Chosen: chosen, RunnerUp: &live.Score{Backend: "b1", Outstanding: 9}}},
			serving, []string{"best of 3 backends", "b0: 3 of 64 executions", "b1: 9 of ? executions", "goes there again"},
		},
		"the only one": {
			live.Session{Backend: home, Choice: live.Choice{Why: "Placed", Candidates: 1, Chosen: chosen}}, serving, []string{"best of 1 backend that"},
		},
		"where it had been":      {live.Session{Backend: home, Choice: live.Choice{Why: "LastBackend"}}, serving, []string{"had been there before"}},
		"shown by a lease":       {live.Session{Backend: home, Choice: live.Choice{Why: "Adopted"}}, serving, []string{"took the pool over"}},
		"beside its siblings":    {live.Session{Backend: home, Choice: live.Choice{Why: "Group", Chosen: chosen}}, serving, []string{"siblings"}},
		"moved":                  {live.Session{Backend: home, Choice: live.Choice{Why: "Rebalanced", Chosen: chosen}}, serving, []string{"moved there between two turns"}},
		"a reason of the future": {live.Session{Backend: home, Choice: live.Choice{Why: "Guessed"}}, serving, []string{"chosen as Guessed"}},
		"no home":                {live.Session{}, serving, []string{"has no home"}},
		"a home that is drained": {
			live.Session{Backend: home}, live.Backend{Incarnation: "pod-0/c-1", Drain: "Move", Reason: "Draining"}, []string{"is Draining now", "placed anew"},
		},
		"a home that keeps its own": {
			live.Session{Backend: home}, live.Backend{Incarnation: "pod-0/c-1", Drain: "Keep", Reason: "Draining"}, []string{"ends there"},
		},
		"a home that left": {live.Session{Backend: home}, live.Backend{Incarnation: "pod-0/c-1", Retired: true}, []string{"has left the pool"}},
		"a home that is gone": {
			live.Session{Backend: home, ActiveLeases: 2}, live.Backend{Incarnation: "pod-0/c-2"}, []string{"2 leases", "does not have that backend any more"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			text := strings.Join(explanation(&c.session, &live.Pool{Backends: []live.Backend{c.backend}}), "\n")
			for _, want := range c.want {
				if !strings.Contains(text, want) {
					t.Errorf("no %q in\n%s", want, text)
				}
			}
		})
	}
}

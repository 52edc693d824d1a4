package cli

import (
	"fmt"
	"slices"

	"github.com/berthmaster/berthmaster/internal/cli/live"
)

// explanation says in words why a session lives where it does, and whether it will stay there.
func explanation(s *live.Session, pool *live.Pool) []string {
	out := []string{fmt.Sprintf("Session %s of sender %s has %s.", s.SessionID, s.Sender, leases(s.ActiveLeases))}
	if s.Backend == nil {
		return append(out, "It has no home: its next turn is placed anew.")
	}
	out = append(out, fmt.Sprintf("It lives on %s (%s).", s.Backend.Name, s.Backend.Incarnation))
	out = append(out, chosen(&s.Choice)...)
	return append(out, prospects(s, pool))
}

func leases(n int64) string {
	switch n {
	case 0:
		return "no lease at the moment"
	case 1:
		return "1 lease"
	}
	return fmt.Sprintf("%d leases", n)
}

// chosen tells how the home was chosen.
func chosen(c *live.Choice) []string {
	switch c.Why {
	case "Placed":
		out := []string{fmt.Sprintf("The router placed it there as the best of %s:", backends(c.Candidates)), "  " + score("chosen", &c.Chosen)}
		if c.RunnerUp != nil {
			out = append(out, "  "+score("next best", c.RunnerUp))
		}
		return out
	case "LastBackend":
		return []string{"Its client said that it had been there before, and the router did not know better."}
	case "Adopted":
		return []string{"It was there already when this router took the pool over: its client showed a lease."}
	case "Group":
		return []string{"Its siblings live there: they share a prompt, and the backend was not much busier than the best.", "  " + score("chosen", &c.Chosen)}
	case "Rebalanced":
		out := []string{"It was moved there between two turns: no busier than its home, and behind it in tokens served by more than the move costs.", "  " + score("chosen", &c.Chosen)}
		if c.RunnerUp != nil {
			out = append(out, "  "+score("next best", c.RunnerUp))
		}
		return out
	}
	return []string{"It was chosen as " + c.Why + "."}
}

func backends(n int64) string {
	if n == 1 {
		return "1 backend that could take it"
	}
	return fmt.Sprintf("%d backends that could take it", n)
}

// score shows what the choice was made by: executions per capacity, then sessions.
func score(what string, s *live.Score) string {
	return fmt.Sprintf("%-10s %s: %d of %s executions outstanding, %d sessions", what, s.Backend, s.Outstanding, orUnknown(s.Capacity), s.Sessions)
}

// prospects tells what the next turn will do.
func prospects(s *live.Session, pool *live.Pool) string {
	i := slices.IndexFunc(pool.Backends, func(b live.Backend) bool { return b.Incarnation == s.Backend.Incarnation })
	if i < 0 {
		return "The router does not have that backend any more: its next turn is placed anew."
	}
	b := &pool.Backends[i]
	state, _ := stateOf(b)
	switch {
	case b.Retired:
		return "That backend has left the pool: its next turn is placed anew."
	case b.Drain == "Keep" && b.Reason == "Draining":
		return "That backend is being drained and keeps its sessions: the session ends there."
	case !b.Admissible:
		return fmt.Sprintf("That backend is %s now: its next turn is placed anew.", state)
	}
	return "That backend serves: its next turn goes there again."
}

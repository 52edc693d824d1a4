package simulate

import "github.com/berthmaster/berthmaster/internal/simulate/workload"

// TodaysPractice returns, for each session, the index of the replica that today's practice
// ties it to: whole groups in turn, a session without a group being one of its own.
func TodaysPractice(sessions []workload.Session, replicas int) []int {
	at := make([]int, len(sessions))
	groups := make(map[string]int)
	next := 0
	for i, s := range sessions {
		turn, seen := groups[s.Group]
		if !seen || s.Group == "" {
			turn = next
			next++
			groups[s.Group] = turn
		}
		at[i] = turn % replicas
	}
	return at
}

// imbalance is the coefficient of variation of output tokens per unit of capacity over the
// fleet, when session i lives on replica at[i].
func imbalance(sessions []workload.Session, at []int, fleet []Backend) float64 {
	tokens := make([]float64, len(fleet))
	for i, s := range sessions {
		tokens[at[i]] += float64(s.OutputTokens())
	}
	return perCapacity(tokens, fleet)
}

// perCapacity is the coefficient of variation of tokens, each over its replica's capacity.
func perCapacity(tokens []float64, fleet []Backend) float64 {
	shares := make([]float64, len(fleet))
	for i := range fleet {
		shares[i] = tokens[i] / float64(fleet[i].Capacity)
	}
	return variation(shares)
}

package simulate

import "cmp"

// Designs returns the designs that were weighed against the shipped one; they run when
// named. docs/decisions compares them.
func Designs() []Arm {
	return []Arm{
		{Name: "r1-by-homes", Title: "R1 in which only the choice of a home counts as being chosen", Kind: Considered,
			open: design{before: promised}.open},
		{Name: "sessions-first", Title: "fewest sessions, then least outstanding", Kind: Considered,
			open: design{before: sessionsFirst}.open},
		{Name: "remaining-tokens", Title: "least expected remaining tokens, by age", Kind: Considered,
			open: design{before: leastWeight, weight: remainingTokens}.open},
		{Name: "ties-by-rate", Title: "R1, ties to the fewest resident tokens per turn", Kind: Considered,
			open: design{before: tiesByWeight, weight: tokensPerTurn}.open},
		{Name: "ties-by-tokens", Title: "R1, ties to the fewest tokens served", Kind: Considered,
			open: design{before: tiesByServed}.open},
		{Name: "ties-by-tokens-bounded", Title: "R1, ties within a bound on sessions to the fewest tokens served", Kind: Considered,
			open: design{before: tiesByServedBounded}.open},
		{Name: "third-turn", Title: "R1, and once more before the third turn", Kind: Considered,
			open: design{before: promised, move: atThirdTurn}.open},
		{Name: "rebalance-by-tokens", Title: "ties-by-tokens-bounded, moving sessions whose context is smaller than the gap", Kind: Considered,
			open: design{before: tiesByServedBounded, weight: tokensPerTurn, move: closesGap}.open},
	}
}

// design is a rule for choosing homes, in terms of what a router can know.
type design struct {
	// before orders replicas, the better first, by negative, zero and positive values; the
	// least recently chosen of equals is taken.
	before func(w *weighed, a, b int) int
	// weight says what a resident session counts for; nil: nothing.
	weight func(progress) int64
	// move says whether a session leaves its home for the replica to, between two turns;
	// nil: never.
	move func(w *weighed, session, to int) bool
}

// promised is R1's order, with the session at hand taken.
func promised(w *weighed, a, b int) int {
	return cmp.Or(w.byOutstanding(a, b), w.perCapacity(a, b, w.sessions[a], w.sessions[b]))
}

func sessionsFirst(w *weighed, a, b int) int {
	return cmp.Or(w.perCapacity(a, b, w.sessions[a]+1, w.sessions[b]+1), w.byOutstanding(a, b))
}

func leastWeight(w *weighed, a, b int) int {
	return w.perCapacity(a, b, w.weights[a]+w.newcomer, w.weights[b]+w.newcomer)
}

func tiesByWeight(w *weighed, a, b int) int {
	return cmp.Or(w.byOutstanding(a, b), w.perCapacity(a, b, w.weights[a], w.weights[b]))
}

func tiesByServed(w *weighed, a, b int) int {
	return cmp.Or(w.byOutstanding(a, b), w.perCapacity(a, b, w.served[a], w.served[b]))
}

func tiesByServedBounded(w *weighed, a, b int) int {
	return cmp.Or(w.byOutstanding(a, b), w.perCapacity(a, b, w.excess(a), w.excess(b)),
		w.perCapacity(a, b, w.served[a], w.served[b]))
}

// The priors of the designs that guess: a session begins as one of ordinary tokens per turn
// and length.
const (
	priorRate  = 200 // tokens per turn
	priorTurns = 2   // turns that the prior counts for
	usualTurns = 65
	leastTurns = 5 // that even the oldest session is thought to have left
)

// tokensPerTurn is a session's mean output, drawn towards the prior while it is young.
func tokensPerTurn(p progress) int64 {
	return (p.tokens + priorRate*priorTurns) / (p.turns + priorTurns)
}

// remainingTokens expects the usual number of turns, and always a few more.
func remainingTokens(p progress) int64 {
	return tokensPerTurn(p) * max(leastTurns, usualTurns-p.turns*4/5)
}

func atThirdTurn(w *weighed, session, _ int) bool { return w.progress[session].turns == 2 }

// gapTurns is how many further turns of the session must fit into the gap that it closes.
const gapTurns = 20

// closesGap moves a session to a replica that is no busier and has served less, by more
// tokens than the move prefills and than the session's next turns will generate.
func closesGap(w *weighed, session, to int) bool {
	home := w.home[session]
	low := min(w.fleet[home].Capacity, w.fleet[to].Capacity)
	gap := w.served[home]*low/w.fleet[home].Capacity - w.served[to]*low/w.fleet[to].Capacity
	return w.byOutstanding(to, home) <= 0 && w.excess(to) == 0 &&
		gap > w.context(session) && gap > gapTurns*tokensPerTurn(w.progress[session])
}

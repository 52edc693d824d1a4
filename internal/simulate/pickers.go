package simulate

import (
	"cmp"
	"hash/fnv"
	"math"
	"slices"

	"github.com/berthmaster/berthmaster/internal/simulate/workload"
)

// hashBound is how far above the mean load per capacity the bounded hash lets a replica go.
const hashBound = 1.25

// wholeGroups ties groups to replicas in turn; a session without one is a group.
func wholeGroups(b *board, s *workload.Session) int {
	if s.Group == "" {
		return roundRobin(b, s)
	}
	turn, seen := b.groups[s.Group]
	if !seen {
		turn = len(b.groups)
		b.groups[s.Group] = turn
	}
	return turn % len(b.fleet)
}

// roundRobin takes the replicas in turn.
func roundRobin(b *board, _ *workload.Session) int { return b.placed % len(b.fleet) }

// anyReplica takes one by chance, all alike.
func anyReplica(b *board, _ *workload.Session) int { return b.random.IntN(len(b.fleet)) }

// highestScore is rendezvous hashing, weighted by capacity.
func highestScore(b *board, s *workload.Session) int {
	best, at := math.Inf(-1), 0
	for i := range b.fleet {
		if score := b.score(s, i); score > best {
			best, at = score, i
		}
	}
	return at
}

// boundedScore is highestScore among the replicas whose load, with this session, stays
// within hashBound of the mean.
func boundedScore(b *board, s *workload.Session) int {
	total, capacity := int64(1), int64(0)
	for i := range b.fleet {
		total += b.outstanding[i]
		capacity += b.fleet[i].Capacity
	}
	best, at := math.Inf(-1), -1
	for i := range b.fleet {
		bound := math.Ceil(hashBound * float64(total) * float64(b.fleet[i].Capacity) / float64(capacity))
		if score := b.score(s, i); float64(b.outstanding[i]+1) <= bound && score > best {
			best, at = score, i
		}
	}
	return at // there is one: the bounds add up to more than the total
}

// score is the rendezvous score of a session on a replica: -capacity/ln(u) for a hash u in
// (0,1), so that the highest is at each replica as often as its capacity says.
func (b *board) score(s *workload.Session, replica int) float64 {
	h := fnv.New64a()
	h.Write([]byte(s.ID))
	h.Write([]byte{0})
	h.Write([]byte(b.fleet[replica].Name))
	// FNV's upper bits hardly differ for names that differ at their end; this mixes them.
	v := h.Sum64()
	v = (v ^ v>>33) * 0xff51afd7ed558ccd
	v = (v ^ v>>33) * 0xc4ceb9fe1a85ec53
	v ^= v >> 33
	u := (float64(v>>11) + 0.5) / (1 << 53)
	return -float64(b.fleet[replica].Capacity) / math.Log(u)
}

// betterOfTwo draws two replicas and takes that of the lower load, the first if equal.
func betterOfTwo(b *board, _ *workload.Session) int {
	n := len(b.fleet)
	first := b.random.IntN(n)
	if n == 1 {
		return first
	}
	second := (first + 1 + b.random.IntN(n-1)) % n
	if b.outstanding[second]*b.fleet[first].Capacity < b.outstanding[first]*b.fleet[second].Capacity {
		return second
	}
	return first
}

// fewestSessions takes the replica with the fewest resident sessions per capacity after
// taking this one, by chance among equals.
func fewestSessions(b *board, _ *workload.Session) int {
	return b.least(func(i int) int64 { return b.sessions[i] + 1 })
}

// leastKnownWork takes the replica to which the fewest output tokens per capacity were
// given; only a bound may know them.
func leastKnownWork(b *board, _ *workload.Session) int {
	return b.least(func(i int) int64 { return b.known[i] })
}

// least returns the replica of the least load per capacity, by chance among equals.
func (b *board) least(load func(int) int64) int {
	at, equals := 0, 0
	for i := range b.fleet {
		switch cmp.Compare(load(i)*b.fleet[at].Capacity, load(at)*b.fleet[i].Capacity) {
		case -1:
			at, equals = i, 1
		case 0:
			equals++
			if b.random.IntN(equals) == 0 {
				at = i
			}
		}
	}
	return at
}

// longestFirst orders sessions by falling output: within each batch of a barrier, over all
// where any may come first, and not at all where arrivals are given and differ.
func longestFirst(sessions []workload.Session, s Scenario) []workload.Session {
	out := slices.Clone(sessions)
	start := 0
	for _, size := range batches(out, s) {
		batch := out[start : start+size]
		start += size
		slices.SortStableFunc(batch, func(a, b workload.Session) int {
			return cmp.Or(cmp.Compare(a.Arrival, b.Arrival), cmp.Compare(b.OutputTokens(), a.OutputTokens()))
		})
	}
	return out
}

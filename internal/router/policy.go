package router

// byPolicy returns the indexes in loads of the best and the second best backend for a session
// without a home, -1 where there is none.
func (s *state) byPolicy(r *Request) (best, second int) {
	if s.target != "" {
		return s.updatedFirst(r)
	}
	switch s.config.Policy {
	case LeastSessions:
		return s.scan(r.Executions, func(a, b *load) bool { return fewerSessions(a, b, r.Executions) })
	case RoundRobin:
		return s.scan(r.Executions, func(a, b *load) bool { return a.lastChosen < b.lastChosen })
	case ConsistentHash:
		return s.byHash(r)
	case LeastOutstanding:
	}
	return s.leastOutstanding(r.Executions)
}

// scan is leastOutstanding for any order.
func (s *state) scan(n int64, before func(a, b *load) bool) (best, second int) {
	best, second = -1, -1
	for i := range s.loads {
		l := &s.loads[i]
		switch {
		case s.full(l.at, n), second >= 0 && !before(l, &s.loads[second]):
		case best < 0 || before(l, &s.loads[best]):
			best, second = i, best
		default:
			second = i
		}
	}
	return best, second
}

// fewerSessions: resident sessions per capacity, then R1's order.
func fewerSessions(a, b *load, n int64) bool {
	if l, r := (a.sessions+1)*b.capacity, (b.sessions+1)*a.capacity; l != r {
		return l < r
	}
	return less(a, b, n)
}

// hashBoundPercent bounds what a backend may carry under ConsistentHash, relative to the mean
// load per capacity (consistent hashing with bounded loads; Mirrokni, Thorup, Zadimoghaddam).
const hashBoundPercent = 125

// byHash takes the highest rendezvous score among the backends within the load bound, so that
// a saturated one does not keep drawing what hashes to it; with none within it, R1's pick.
func (s *state) byHash(r *Request) (best, second int) {
	var load, capacity int64
	for i := range s.loads {
		load += s.loads[i].outstanding
		capacity += s.loads[i].capacity
	}
	key := fnv(string(r.Session))
	best, second = -1, -1
	var top uint64
	for i := range s.loads {
		l := &s.loads[i]
		if s.full(l.at, r.Executions) || (l.outstanding+r.Executions)*capacity*100 > (load+r.Executions)*l.capacity*hashBoundPercent {
			continue
		}
		if h := mix(key ^ l.at.nameHash); best < 0 || h > top {
			best, second, top = i, best, h
		}
	}
	if best < 0 {
		return s.leastOutstanding(r.Executions)
	}
	return best, second
}

// fnv is FNV-1a, 64 bits.
func fnv(text string) uint64 {
	h := uint64(14695981039346656037)
	for i := range len(text) {
		h = (h ^ uint64(text[i])) * 1099511628211
	}
	return h
}

// mix is the finalizer of splitmix64: it spreads every bit of x over the result.
func mix(x uint64) uint64 {
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

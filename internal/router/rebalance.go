package router

import (
	"cmp"
	"math/bits"
)

// better is the backend to which Rebalance moves a session from its admissible home, and why; nil:
// it stays. Among the least loaded (R1) that is the one that has served the fewest tokens for its
// capacity.
func (s *state) better(v *session, n int64, now instant) (*backend, choice) {
	if s.config.Mode != Rebalance || v.active > 0 || v.turns == 0 || now < v.movedAt.add(s.config.Moving.CoolDown) {
		return nil, choice{}
	}
	best, second := s.scan(n, func(a, b *load) bool { return fewerServed(a, b, n) })
	if best < 0 || !s.closesGap(v, &s.loads[best], n) {
		return nil, choice{}
	}
	return s.loads[best].at, s.explain(whyRebalanced, s.loads[best].at, second)
}

// fewerServed: load per capacity after taking n more executions, then tokens served per capacity,
// then least recently chosen.
func fewerServed(a, b *load, n int64) bool {
	if l, r := (a.outstanding+n)*b.capacity, (b.outstanding+n)*a.capacity; l != r {
		return l < r
	}
	if order := perCapacity(a.at.served, a.capacity, b.at.served, b.capacity); order != 0 {
		return order < 0
	}
	return a.lastChosen < b.lastChosen
}

// closesGap reports whether a move pays: the other backend is no busier, and behind the home in
// tokens served by more than the move prefills again and than the session's next turns will make.
// A session whose context is long has to be worth it.
func (s *state) closesGap(v *session, to *load, n int64) bool {
	home := v.home.entry()
	if to.at == v.home || (to.outstanding+n)*home.capacity > (home.outstanding+n)*to.capacity {
		return false
	}
	low := min(home.capacity, to.capacity)
	gap := share(v.home.served, low, home.capacity) - share(to.at.served, low, to.capacity)
	return gap > v.context && gap > v.outputs/int64(v.turns)*s.config.Moving.GapTurns
}

// servedMost keeps sums of what clients report from overflowing.
const servedMost = 1 << 60

// serve counts tokens that a client reports to have been made on b.
func (b *backend) serve(tokens int64) { b.served = min(b.served+tokens, servedMost) }

// catchUp gives a backend that begins to take sessions what the others have served on the whole, for
// its capacity, or what it has served itself where that is more: what it did not serve while it was
// away is not to be made up for.
func (s *state) catchUp(b *backend, itself int64) {
	var served, capacity int64
	for i := range s.loads {
		if l := &s.loads[i]; l.at != nil && l.at != b {
			served, capacity = min(served+l.at.served, servedMost), capacity+l.capacity
		}
	}
	b.served = itself
	if capacity > 0 {
		b.served = max(itself, min(served/capacity*b.capacity, servedMost))
	}
}

// perCapacity compares two amounts, each over a capacity, exactly.
func perCapacity(a, capacityOfA, b, capacityOfB int64) int {
	high, low := bits.Mul64(uint64(a), uint64(capacityOfB))
	otherHigh, otherLow := bits.Mul64(uint64(b), uint64(capacityOfA))
	return cmp.Or(cmp.Compare(high, otherHigh), cmp.Compare(low, otherLow))
}

// share is amount * part / whole, with part at most whole and both positive.
func share(amount, part, whole int64) int64 {
	high, low := bits.Mul64(uint64(amount), uint64(part))
	result, _ := bits.Div64(high, low, uint64(whole))
	return int64(result)
}

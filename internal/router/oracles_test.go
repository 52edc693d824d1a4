package router

import (
	"errors"
	"math/big"

	"github.com/google/go-cmp/cmp"
)

// sight is what a pool looks like before an acquire, in words of the world alone where the
// world knows, so that a fault in the table's own rules is not copied into its judge.
type sight struct {
	home       Incarnation
	keeps      homeRule
	candidates []candidate
	failed     *Failure
	requests   int
	owner      SenderName
	known      bool
	sibling    Incarnation
	// waiting is how many wait for the same.
	waiting int
	// busy: the session has leases now, so this is no turn boundary.
	busy bool
	// reset: a newer version asks the session to move.
	reset bool
	// awaited: nobody has looked at the backend that the session was on, and nothing else speaks
	// against it.
	awaited bool
	// context and turn, in tokens, are what a move of the session costs.
	context, turn int64
}

type homeRule uint8

const (
	noHome homeRule = iota
	mustStay
	mayStay
)

// candidate is a backend that may take a new session.
type candidate struct {
	inc                                                  Incarnation
	counted, outstanding, capacity, sessions, lastChosen int64
	// updated: on the target of a rolling change of weights.
	updated bool
	served  int64
}

func (w *world) sight() sight {
	w.meet()
	s := w.tab.state
	out := sight{failed: w.tab.Snapshot(w.now).Failure, requests: len(s.leases)}
	for _, inc := range w.incarnations() {
		if b := s.backends[inc]; b != nil && w.admissible(inc, NotDraining) {
			out.candidates = append(out.candidates, candidate{inc, b.outstanding, b.outstanding + b.estimate, w.capacity(inc), b.sessions, b.lastChosen, w.fleet.Target != "" && b.version() == w.fleet.Target, b.served})
		}
	}
	return out
}

// lookAt adds what concerns one request.
func (w *world) lookAt(st *sight, r *Request) {
	s := w.tab.state
	st.awaited = w.awaited(r)
	if v := s.sessions[r.Session]; v != nil {
		st.owner, st.known, st.busy = v.sender, true, v.active > 0
		if v.home != nil && w.admissible(v.home.Incarnation, DrainKeep) && s.backends[v.home.Incarnation] == v.home {
			st.home, st.keeps = v.home.Incarnation, mustStay
			placed, known := w.placed[r.Session]
			if !known {
				placed = v.published
			}
			moved := w.fleet.Config.AfterPublish == ResetHomes && placed != s.publications
			st.reset = moved
			if v.active == 0 && (moved || w.fleet.Config.Mode == Rebalance) {
				st.keeps = mayStay
			}
			if v.turns > 0 {
				st.context, st.turn = v.context, v.outputs/int64(v.turns)
			}
		}
	}
	if l := s.queue.lanes[s.laneOf(r)]; l != nil {
		st.waiting = l.n
	}
	if g := s.groups[r.Group]; g != nil && g.home != nil {
		st.sibling = g.home.Incarnation
	}
}

// awaited: the session's home, or else the last backend that the client names, may yet turn out to serve.
func (w *world) awaited(r *Request) bool {
	inc := r.LastIncarnation
	v := w.tab.state.sessions[r.Session]
	if v != nil {
		// A home that left the fleet and was forgotten is not the one that came back under its name.
		if inc = ""; v.home != nil && w.tab.state.backends[v.home.Incarnation] == v.home {
			inc = v.home.Incarnation
		}
	}
	m, e := w.member(inc), w.engines[inc]
	if m == nil || w.tab.state.backends[inc] == nil || m.Excluded != "" || m.Engine != EngineRunning || e.seen.Seq != 0 {
		return false
	}
	if v == nil && (m.Drain != NotDraining || m.Name != r.LastName) {
		return false
	}
	_, ended := w.vouched[inc]
	return !ended && m.Drain != DrainMove && m.Drain != DrainAbort
}

// admissible by the world's own knowledge; of the table only whether it settles or isolates.
func (w *world) admissible(inc Incarnation, but Drain) bool {
	m, e, b := w.member(inc), w.engines[inc], w.tab.state.backends[inc]
	if m == nil || b == nil || m.Excluded != "" || m.Engine != EngineRunning {
		return false
	}
	if m.Drain != NotDraining && m.Drain != but {
		return false
	}
	if _, ended := w.vouched[inc]; ended || e.seen.Health != Healthy || w.capacity(inc) <= 0 {
		return false
	}
	if p := w.fleet.Published; p != "" && e.seen.Version != p && (e.seen.Version == "" || e.seen.Version != w.fleet.Target) {
		return false
	}
	return b.settling.why == settledCause && b.isolation == notIsolated
}

func (w *world) capacity(inc Incarnation) int64 {
	m, e := w.member(inc), w.engines[inc]
	switch {
	case m.Capacity > 0:
		return m.Capacity
	case e.seen.Capacity > 0:
		return e.seen.Capacity
	default:
		return m.FallbackCapacity
	}
}

// judge holds the answer to a new acquire against what must hold.
func (w *world) judge(c *call, st sight, g Grant, err error) {
	if err != nil {
		w.judgeRefusal(c, st, err)
		return
	}
	if g.Again {
		return
	}
	w.mustBeAllowed(c, st.failed)
	b := w.tab.state.backends[g.Claim.Incarnation]
	if p := w.fleet.Published; p != "" && g.Claim.Version != b.seen.Version {
		w.t.Fatalf("R9: the lease says version %q, its backend is on %q", g.Claim.Version, b.seen.Version)
	}
	w.judgePlace(c, st, g.Claim.Incarnation)
	if !st.busy {
		w.placed[c.req.Session] = w.tab.state.publications
	}
}

// mustBeAllowed: nothing is granted that a fence, a hold, a failure, an epoch, a generation or
// the end of leadership forbids (R7, R11, R13).
func (w *world) mustBeAllowed(c *call, failed *Failure) {
	s := w.sender(c.req.Sender)
	switch {
	case c.req.Epoch != w.fleet.Epoch:
		w.t.Fatalf("R7: granted under epoch %d, the pool is at %d", c.req.Epoch, w.fleet.Epoch)
	case s == nil:
		w.t.Fatalf("R7: granted to a sender that the spec does not have")
	case s.Access != AccessOpen:
		w.t.Fatalf("R7: granted to a fenced sender")
	case c.req.SenderGeneration < s.MinGeneration:
		w.t.Fatalf("R7: granted to generation %d, %d is the least", c.req.SenderGeneration, s.MinGeneration)
	case w.fleet.Leasing != LeasingOpen:
		w.t.Fatalf("R10: granted while leasing is held")
	case failed != nil:
		w.t.Fatalf("R13: granted after the pool had failed")
	case !w.authority.IsZero() && !w.now.Before(w.authority):
		w.t.Fatalf("R11: granted after leadership ended")
	}
}

// judgePlace: stickiness (R2), the named backend, and the policy's optimum (R1).
func (w *world) judgePlace(c *call, st sight, at Incarnation) {
	switch {
	case st.awaited:
		w.t.Fatalf("R2: session %s was sent to %s before anybody had looked at the backend that it was on", c.req.Session, at)
	case st.keeps == mustStay && at != st.home:
		w.t.Fatalf("R2: session %s is at home on %s and was sent to %s", c.req.Session, st.home, at)
	case st.keeps != noHome && at == st.home:
		return
	case !st.known && c.req.LastIncarnation == at && at != "":
		return
	case at == st.sibling && w.fleet.Config.GroupSlackPercent > 0:
		return
	}
	mine := st.candidate(at)
	if mine == nil {
		w.t.Fatalf("R1: %s was chosen, which may not take new sessions; candidates: %+v", at, st.candidates)
	}
	if st.keeps == mayStay && !st.reset {
		w.judgeMove(c, st, mine)
	}
	if !st.known && w.isCandidate(st, c.req.LastIncarnation, c.req.Executions) {
		w.t.Fatalf("R2: the named last backend %s was passed over for %s", c.req.LastIncarnation, at)
	}
	for i := range st.candidates {
		if !w.full(&st.candidates[i], c.req.Executions) && w.better(st, &st.candidates[i], mine, c.req.Executions) {
			w.t.Fatalf("R1: %+v was chosen for %d, %+v is better", *mine, c.req.Executions, st.candidates[i])
		}
	}
}

func (st *sight) candidate(at Incarnation) *candidate {
	for i := range st.candidates {
		if st.candidates[i].inc == at {
			return &st.candidates[i]
		}
	}
	return nil
}

// judgeMove: Rebalance moves a session to a backend that is no busier, and that is behind its home in
// tokens served by more than the move costs.
func (w *world) judgeMove(c *call, st sight, to *candidate) {
	home := w.tab.state.backends[st.home]
	busy := func(outstanding, capacity int64) *big.Rat { return big.NewRat(outstanding+c.req.Executions, capacity) }
	if busy(to.outstanding, to.capacity).Cmp(busy(home.outstanding+home.estimate, home.capacity)) > 0 {
		w.t.Fatalf("R2: session %s was moved from %s to %+v, which is busier", c.req.Session, st.home, *to)
	}
	gap := new(big.Rat).Sub(big.NewRat(home.served, home.capacity), big.NewRat(to.served, to.capacity))
	gap.Mul(gap, big.NewRat(min(home.capacity, to.capacity), 1))
	cost := max(st.context, st.turn*w.fleet.Config.Moving.GapTurns)
	if gap.Cmp(big.NewRat(cost, 1)) <= 0 || st.context == 0 {
		w.t.Fatalf("R2: session %s was moved from %s to %+v for %d tokens, over a gap of %s", c.req.Session, st.home, *to, cost, gap.FloatString(1))
	}
}

// better: during a rolling change of weights a session without a home goes where the new version has
// room, and else where the policy says.
func (w *world) better(st sight, a, b *candidate, n int64) bool {
	if st.keeps == mayStay && !st.reset {
		return betterToMoveTo(a, b, n)
	}
	if w.fleet.Target == "" {
		return better(w.fleet.Config.Policy, a, b, n)
	}
	room := func(c *candidate) bool { return c.updated && c.outstanding+n <= c.capacity }
	if room(a) != room(b) {
		return room(a)
	}
	return better(LeastOutstanding, a, b, n)
}

// full by the admission limit; an idle backend never is.
func (w *world) full(c *candidate, n int64) bool {
	limit := w.fleet.Config.AdmissionPercent
	return limit > 0 && c.counted > 0 && (c.counted+n)*100 > c.capacity*limit
}

func (w *world) isCandidate(st sight, inc Incarnation, n int64) bool {
	for _, c := range st.candidates {
		if c.inc == inc && !w.full(&c, n) {
			return true
		}
	}
	return false
}

// betterToMoveTo: whatever the policy for new sessions, Rebalance moves to the least loaded, and among
// those to the one that has served the least.
func betterToMoveTo(a, b *candidate, n int64) bool {
	load := func(c *candidate) *big.Rat { return big.NewRat(c.outstanding+n, c.capacity) }
	if d := load(a).Cmp(load(b)); d != 0 {
		return d < 0
	}
	if d := big.NewRat(a.served, a.capacity).Cmp(big.NewRat(b.served, b.capacity)); d != 0 {
		return d < 0
	}
	return a.lastChosen < b.lastChosen
}

// better is the policy's order, in exact fractions.
func better(p Policy, a, b *candidate, n int64) bool {
	load := func(c *candidate) *big.Rat { return big.NewRat(c.outstanding+n, c.capacity) }
	resident := func(c *candidate, more int64) *big.Rat { return big.NewRat(c.sessions+more, c.capacity) }
	switch p {
	case LeastSessions:
		if d := resident(a, 1).Cmp(resident(b, 1)); d != 0 {
			return d < 0
		}
	case RoundRobin:
		return a.lastChosen < b.lastChosen
	case ConsistentHash:
		return false // its own test says what it promises
	case LeastOutstanding:
	}
	if d := load(a).Cmp(load(b)); d != 0 {
		return d < 0
	}
	if d := resident(a, 0).Cmp(resident(b, 0)); d != 0 {
		return d < 0
	}
	return a.lastChosen < b.lastChosen
}

// judgeRefusal: a refusal has its cause in the world.
func (w *world) judgeRefusal(c *call, st sight, err error) {
	s := w.sender(c.req.Sender)
	caused := true
	switch {
	case errors.Is(err, ErrNoBackend):
		caused = st.awaited || st.keeps == noHome && len(st.candidates) == 0
	case errors.Is(err, ErrSenderFenced):
		caused = s.Access == AccessFenced
	case errors.Is(err, ErrSenderUnknown):
		caused = s == nil
	case errors.Is(err, ErrStaleGeneration):
		caused = c.req.SenderGeneration < s.MinGeneration
	case errors.Is(err, ErrLeasingHeld):
		caused = w.fleet.Leasing == LeasingHeld
	case errors.Is(err, ErrPoolFailed):
		caused = st.failed != nil
	case errors.Is(err, ErrStaleEpoch):
		caused = c.req.Epoch != w.fleet.Epoch
	case errors.Is(err, ErrContended):
		caused = st.requests >= w.fleet.Config.MaxRequests || w.contended(st, &c.req)
	case errors.Is(err, ErrNoLeader):
		caused = !w.authority.IsZero() && !w.now.Before(w.authority) || c.req.Prior != nil
	case errors.Is(err, ErrRequestConflict):
		caused = st.known && st.owner != c.req.Sender
	}
	if !caused {
		w.t.Fatalf("%s was refused without cause: %v", c.req.ID, err)
	}
}

// contended: where the request may go is full, or others came first.
func (w *world) contended(st sight, r *Request) bool {
	if st.waiting > 0 {
		return true
	}
	for i := range st.candidates {
		if st.keeps != mustStay && !w.full(&st.candidates[i], r.Executions) {
			return st.keeps == mayStay
		}
	}
	return w.fleet.Config.AdmissionPercent > 0
}

// unchanged compares what the table shows with what it showed.
func (w *world) unchanged(after string, before Snapshot) {
	got := w.tab.Snapshot(w.now)
	before.Totals, got.Totals = Totals{}, Totals{}
	if diff := cmp.Diff(before, got); diff != "" {
		w.t.Fatalf("%s changed something (-before +after):\n%s", after, diff)
	}
}

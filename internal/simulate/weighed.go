package simulate

import (
	"cmp"
	"time"
)

// weighed places sessions by a design. Unlike sticky it knows what sessions have generated
// so far, as a router does whose clients report it on release.
type weighed struct {
	board
	design   design
	progress []progress
	home     []int   // of a session; -1: not placed
	weights  []int64 // of a replica: the weights of its residents
	served   []int64 // of a replica: output tokens of all turns that ended there
	chosen   []int   // of a replica: the number of the last choice that it won
	choices  int
	newcomer int64 // the weight of a session before its first turn
}

// progress is what is known of a session.
type progress struct {
	turns, tokens int64
	moved         time.Duration // when it last changed its home
}

// moveEvery is the least time between two moves of a session.
const moveEvery = time.Minute

func (d design) open(given situation) (placer, error) {
	n := len(given.fleet)
	w := &weighed{
		board:    board{situation: given, outstanding: make([]int64, n), sessions: make([]int64, n)},
		design:   d,
		progress: make([]progress, len(given.sessions)),
		home:     make([]int, len(given.sessions)),
		weights:  make([]int64, n), served: make([]int64, n), chosen: make([]int, n),
	}
	for i := range w.home {
		w.home[i] = -1
		w.progress[i].moved = -moveEvery
	}
	w.newcomer = w.weight(progress{})
	return w, nil
}

func (w *weighed) weight(p progress) int64 {
	if w.design.weight == nil {
		return 0
	}
	return w.design.weight(p)
}

func (w *weighed) acquire(session int, now time.Duration) (int, error) {
	if w.home[session] < 0 {
		w.settle(session, w.best())
	} else if w.design.move != nil && now-w.progress[session].moved >= moveEvery {
		w.maybeMove(session, now)
	}
	at := w.home[session]
	w.outstanding[at]++
	return at, nil
}

func (w *weighed) maybeMove(session int, now time.Duration) {
	from, to := w.home[session], w.best()
	if to == from || !w.design.move(w, session, to) {
		return
	}
	w.leave(session)
	w.settle(session, to)
	w.progress[session].moved = now
}

func (w *weighed) settle(session, at int) {
	w.home[session] = at
	w.sessions[at]++
	w.weights[at] += w.weight(w.progress[session])
	w.choices++
	w.chosen[at] = w.choices
}

func (w *weighed) leave(session int) {
	at := w.home[session]
	w.sessions[at]--
	w.weights[at] -= w.weight(w.progress[session])
}

func (w *weighed) release(session int, _ time.Duration) error {
	at, p := w.home[session], &w.progress[session]
	output := int64(w.situation.sessions[session].Turns[p.turns].Output)
	before := w.weight(*p)
	p.turns++
	p.tokens += output
	w.weights[at] += w.weight(*p) - before
	w.served[at] += output
	w.outstanding[at]--
	return nil
}

func (w *weighed) end(session int, _ time.Duration) error {
	w.leave(session)
	return nil
}

// best is the first replica in the design's order.
func (w *weighed) best() int {
	at := 0
	for i := 1; i < len(w.fleet); i++ {
		if cmp.Or(w.design.before(w, i, at), cmp.Compare(w.chosen[i], w.chosen[at])) < 0 {
			at = i
		}
	}
	return at
}

// byOutstanding compares executions per capacity after taking one more.
func (w *weighed) byOutstanding(a, b int) int {
	return w.perCapacity(a, b, w.outstanding[a]+1, w.outstanding[b]+1)
}

// perCapacity compares two amounts, each over the capacity of its replica.
func (w *weighed) perCapacity(a, b int, ofA, ofB int64) int {
	return cmp.Compare(ofA*w.fleet[b].Capacity, ofB*w.fleet[a].Capacity)
}

// excess is by how many sessions a replica would exceed one and a half times its share of
// all sessions, rounded up, by taking one more.
func (w *weighed) excess(replica int) int64 {
	open, capacity := int64(1), int64(0)
	for i := range w.fleet {
		open += w.sessions[i]
		capacity += w.fleet[i].Capacity
	}
	bound := (3*open*w.fleet[replica].Capacity + 2*capacity - 1) / (2 * capacity)
	return max(0, w.sessions[replica]+1-bound)
}

// context is the number of tokens that a session's next home would have to prefill.
func (w *weighed) context(session int) int64 {
	p := w.progress[session]
	if p.turns == 0 {
		return 0
	}
	last := w.situation.sessions[session].Turns[p.turns-1]
	return int64(last.Prompt + last.Output)
}

package access

import (
	"context"
	"sync"
	"time"
)

// memo remembers the answers to questions, up to size of them. Concurrent askers of one question
// share one answer.
type memo[K comparable, A, V any] struct {
	size  int
	clock func() time.Time
	// ask gets an answer and says for how long it holds. Its context is not the caller's: others wait
	// for the same answer.
	ask   func(context.Context, A) (V, span, error)
	turns *turns

	mu    sync.Mutex
	known map[K]*entry[V] // guarded by mu
}

// span is how long an answer holds: until fresh anyway, and until stale if no other can be had.
type span struct{ fresh, stale time.Time }

// entry is one question: answered, if at is set, and being asked, if pending is.
type entry[V any] struct {
	value   V
	holds   span
	known   bool
	pending chan struct{} // closed once the answer is there; nil: nobody asks
	err     error         // of the last time it was asked
}

// askTime bounds one question.
const askTime = 10 * time.Second

func newMemo[K comparable, A, V any](size, atOnce int, clock func() time.Time, ask func(context.Context, A) (V, span, error)) *memo[K, A, V] {
	return &memo[K, A, V]{size: size, clock: clock, ask: ask, turns: newTurns(atOnce), known: map[K]*entry[V]{}}
}

// get returns the answer to k, asking for it if none is known that holds, in turn with others than who.
// with is what is asked: k is its name here. An error says that no answer could be had.
func (m *memo[K, A, V]) get(ctx context.Context, who string, k K, with A) (V, error) {
	e, pending := m.look(ctx, who, k, with)
	if pending != nil {
		select {
		case <-pending:
		case <-ctx.Done():
			var none V
			return none, ctx.Err()
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if now := m.clock(); e.known && (e.err == nil || now.Before(e.holds.fresh) || now.Before(e.holds.stale)) {
		return e.value, nil
	}
	var none V
	return none, e.err
}

// look finds the entry of k, and has it asked for unless it holds; pending is closed then once the answer
// is there.
func (m *memo[K, A, V]) look(ctx context.Context, who string, k K, with A) (e *entry[V], pending <-chan struct{}) {
	m.mu.Lock()
	defer m.mu.Unlock()
	e = m.known[k]
	if e != nil && e.known && m.clock().Before(e.holds.fresh) {
		return e, nil
	}
	if e == nil {
		m.makeRoom()
		e = &entry[V]{}
		m.known[k] = e
	}
	if e.pending == nil {
		e.pending = make(chan struct{})
		go m.refresh(context.WithoutCancel(ctx), who, k, e, with)
	}
	return e, e.pending
}

// refresh asks, and wakes those who wait.
func (m *memo[K, A, V]) refresh(ctx context.Context, who string, k K, e *entry[V], with A) {
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	value, holds, err := m.inTurn(ctx, who, with)
	m.mu.Lock()
	defer m.mu.Unlock()
	if e.err = err; err == nil {
		e.value, e.holds, e.known = value, holds, true
	}
	close(e.pending)
	e.pending = nil
	if !e.known && m.known[k] == e {
		delete(m.known, k) // no answer is nothing to remember
	}
}

func (m *memo[K, A, V]) inTurn(ctx context.Context, who string, with A) (V, span, error) {
	if err := m.turns.take(ctx, who); err != nil {
		var none V
		return none, span{}, err
	}
	defer m.turns.back()
	return m.ask(ctx, with)
}

// makeRoom lets go of an entry if there is no room for another. It looks at a few only, so that a flood
// of questions does not cost more than it asks, and takes what matters least: so that a flood of refused
// callers displaces each other rather than those who are allowed.
func (m *memo[K, A, V]) makeRoom() {
	const looks = 8
	if len(m.known) < m.size {
		return
	}
	var victim K
	least, looked, now := -1, 0, m.clock()
	for k, e := range m.known { // in random order
		if worth := e.worth(now); least < 0 || worth < least {
			victim, least = k, worth
		}
		if looked++; looked == looks || least == 0 {
			break
		}
	}
	delete(m.known, victim)
}

// worth is how much is lost with the entry.
func (e *entry[V]) worth(now time.Time) int {
	switch {
	case e.pending != nil && !e.known:
		return 2 // those who wait for the answer have it anyway, but the next asks again
	case !now.Before(e.holds.fresh) && !now.Before(e.holds.stale):
		return 0
	case e.holds.stale.IsZero():
		return 1 // a refusal
	}
	return 3
}

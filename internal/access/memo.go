package access

import (
	"context"
	"net/netip"
	"sync"
	"time"
)

// memo remembers the answers to questions, within bounds. Concurrent askers of one question share one answer.
type memo[K comparable, A, V any] struct {
	memory memory[V]
	clock  func() time.Time
	// ask gets an answer and says for how long it holds. Its context is not the caller's: others wait
	// for the same answer.
	ask   func(context.Context, A) (V, span, error)
	turns *turns
	// room is where callers wait.
	room *room

	mu     sync.Mutex
	known  map[K]*entry[V] // guarded by mu
	weight int             // guarded by mu: of all entries
	away   bool            // guarded by mu: the last question that was asked got no answer
}

// memory bounds what is remembered: answers by their number, and by what they weigh.
type memory[V any] struct {
	answers int
	// weigh says how many bytes an answer holds besides itself; nil: none.
	weigh func(V) int
	bytes int
}

// span is how long an answer holds: until fresh anyway, and until stale if no other can be had.
type span struct{ fresh, stale time.Time }

// entry is what is known of a question.
type entry[V any] struct {
	value  V
	holds  span
	known  bool
	weight int
	asked  *question[V] // nil: nobody asks
}

// question is one time that it is asked: first it waits for its turn.
type question[V any] struct {
	// done is closed once there is a value or an err.
	done  chan struct{}
	value V
	err   error

	waiting int                // guarded by memo.mu: callers who want to know
	begun   bool               // guarded by memo.mu: its turn has come
	giveUp  context.CancelFunc // has it leave the line
}

// askTime bounds one question, the wait for its turn included.
const askTime = 10 * time.Second

func newMemo[K comparable, A, V any](kept memory[V], t *turns, r *room, clock func() time.Time, ask func(context.Context, A) (V, span, error)) *memo[K, A, V] {
	return &memo[K, A, V]{memory: kept, clock: clock, ask: ask, turns: t, room: r, known: map[K]*entry[V]{}}
}

// get returns the answer to k, asking for it if none is known that holds, in turn with others than who.
// with is what is asked: k is its name here. An error says that no answer could be had: that of ctx, or
// errCrowded, or why the question was not answered.
func (m *memo[K, A, V]) get(ctx context.Context, who netip.Prefix, k K, with A) (V, error) {
	var none V
	e, q, err := m.look(ctx, who, k, with)
	switch {
	case err != nil:
		return none, err
	case q == nil:
		return m.read(e), nil
	}
	defer m.room.leave(who)
	select {
	case <-q.done:
	case <-ctx.Done():
		m.quit(k, e, q)
		return none, ctx.Err()
	}
	if q.err != nil && m.stands(e) {
		return m.read(e), nil
	}
	return q.value, q.err
}

// look finds the entry of k, and joins those who wait for the answer unless it holds. Without a question the
// entry's value is the answer.
func (m *memo[K, A, V]) look(ctx context.Context, who netip.Prefix, k K, with A) (*entry[V], *question[V], error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	e, now := m.known[k], m.clock()
	switch {
	case e != nil && e.known && now.Before(e.holds.fresh):
		return e, nil, nil
	case m.room.enter(who):
	case m.away && e != nil && e.stands(now): // it is not the crowd that keeps it from being asked
		return e, nil, nil
	default:
		return nil, nil, errCrowded
	}
	if e == nil {
		m.makeRoom()
		e = &entry[V]{}
		m.known[k] = e
	}
	return e, m.join(ctx, who, k, e, with), nil
}

// join has the question asked, unless it is, and another wait for it. mu is held.
func (m *memo[K, A, V]) join(ctx context.Context, who netip.Prefix, k K, e *entry[V], with A) *question[V] {
	if e.asked == nil {
		asking, cancel := context.WithTimeout(context.WithoutCancel(ctx), askTime)
		e.asked = &question[V]{done: make(chan struct{}), giveUp: cancel}
		go m.settle(asking, who, k, e, e.asked, with)
	}
	e.asked.waiting++
	return e.asked
}

// quit is for a caller who does not wait any longer. A question that waits for its turn for nobody leaves the
// line; one that is being asked goes on, since its answer is as good for the next who wants to know.
func (m *memo[K, A, V]) quit(k K, e *entry[V], q *question[V]) {
	m.mu.Lock()
	defer m.mu.Unlock()
	q.waiting--
	if q.waiting > 0 || q.begun {
		return
	}
	q.giveUp()
	m.unask(k, e, q)
}

// unask has nobody else join the question, which is over.
func (m *memo[K, A, V]) unask(k K, e *entry[V], q *question[V]) {
	if e.asked == q {
		e.asked = nil
	}
	if !e.known && e.asked == nil && m.known[k] == e {
		delete(m.known, k) // no answer is nothing to remember
	}
}

// settle asks, remembers the answer, and wakes those who wait.
func (m *memo[K, A, V]) settle(ctx context.Context, who netip.Prefix, k K, e *entry[V], q *question[V], with A) {
	defer q.giveUp()
	var holds span
	q.value, holds, q.err = m.inTurn(ctx, who, q, with)
	m.mu.Lock()
	defer m.mu.Unlock()
	defer close(q.done)
	if q.begun {
		m.away = q.err != nil
	}
	if q.err == nil {
		e.value, e.holds, e.known = q.value, holds, true
		m.reweigh(k, e)
	}
	m.unask(k, e, q)
}

func (m *memo[K, A, V]) inTurn(ctx context.Context, who netip.Prefix, q *question[V], with A) (V, span, error) {
	var none V
	if err := m.turns.take(ctx, who); err != nil {
		return none, span{}, err
	}
	defer m.turns.back()
	if !m.begin(q) {
		return none, span{}, context.Canceled
	}
	return m.ask(ctx, with)
}

// begin reports whether anybody still wants to know. From then on the question goes on by itself.
func (m *memo[K, A, V]) begin(q *question[V]) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	q.begun = q.waiting > 0
	return q.begun
}

func (m *memo[K, A, V]) read(e *entry[V]) V {
	m.mu.Lock()
	defer m.mu.Unlock()
	return e.value
}

func (m *memo[K, A, V]) stands(e *entry[V]) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return e.stands(m.clock())
}

// stands reports whether the answer holds while no other can be had.
func (e *entry[V]) stands(now time.Time) bool { return e.known && now.Before(e.holds.stale) }

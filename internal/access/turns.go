package access

import (
	"container/list"
	"context"
	"net/netip"
	"sync"
)

// turns bounds how many questions are asked at once, and lets the homes that they come from, as door.Home has
// them, take turns: one that asks without end waits for itself, and not others for it.
type turns struct {
	mu    sync.Mutex
	free  int
	lines map[netip.Prefix]*line // guarded by mu; none is empty
	order list.List              // guarded by mu: of the lines, whose turn is next first
}

// line are the questions from one home that wait, the oldest first.
type line struct {
	who     netip.Prefix
	waiting list.List // of chan struct{}, closed when it is its turn
	place   *list.Element
}

func newTurns(atOnce int) *turns { return &turns{free: atOnce, lines: map[netip.Prefix]*line{}} }

// take waits for a turn, to be given back, or for the end of ctx.
func (t *turns) take(ctx context.Context, who netip.Prefix) error {
	ticket, place, mine := t.queue(who)
	if mine {
		return nil
	}
	select {
	case <-ticket:
		return nil
	case <-ctx.Done():
		t.leave(who, ticket, place)
		return ctx.Err()
	}
}

// queue takes a turn if one is free, and else a place in the line.
func (t *turns) queue(who netip.Prefix) (ticket chan struct{}, place *list.Element, mine bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.free > 0 {
		t.free-- // nobody waits while there are free ones
		return nil, nil, true
	}
	l := t.lines[who]
	if l == nil {
		l = &line{who: who}
		l.place = t.order.PushBack(l)
		t.lines[who] = l
	}
	ticket = make(chan struct{})
	return ticket, l.waiting.PushBack(ticket), false
}

// back gives a turn back: to the next home in order.
func (t *turns) back() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.pass()
}

func (t *turns) pass() {
	first := t.order.Front()
	if first == nil {
		t.free++
		return
	}
	l := first.Value.(*line)
	close(l.waiting.Remove(l.waiting.Front()).(chan struct{}))
	t.order.MoveToBack(first)
	t.drop(l)
}

// leave gives a place up, or the turn if it has just come.
func (t *turns) leave(who netip.Prefix, ticket chan struct{}, place *list.Element) {
	t.mu.Lock()
	defer t.mu.Unlock()
	select {
	case <-ticket:
		t.pass()
	default:
		l := t.lines[who] // it is in it
		l.waiting.Remove(place)
		t.drop(l)
	}
}

// drop takes a line out that nobody stands in.
func (t *turns) drop(l *line) {
	if l.waiting.Len() == 0 {
		t.order.Remove(l.place)
		delete(t.lines, l.who)
	}
}

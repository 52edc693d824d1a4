package router

import "container/heap"

// turns says whose turn it is among those who wait: the heads of their lanes, first come first, as a
// heap. Who stands at the head of a lane changes meanwhile; oldest brings that up to date.
type turns []turn

type turn struct {
	lane   lane
	ticket int64
}

func (t turns) Len() int           { return len(t) }
func (t turns) Less(i, j int) bool { return t[i].ticket < t[j].ticket }
func (t turns) Swap(i, j int)      { t[i], t[j] = t[j], t[i] }

// Push is for package heap.
func (t *turns) Push(x any) { *t = append(*t, x.(turn)) }

// Pop is for package heap.
func (t *turns) Pop() any {
	end := len(*t) - 1
	last := (*t)[end]
	*t = (*t)[:end]
	return last
}

// turns lists the head of every lane.
func (q *queue) turns() turns {
	out := make(turns, 0, len(q.lanes))
	for k, l := range q.lanes {
		out = append(out, turn{k, l.first.ticket})
	}
	heap.Init(&out)
	return out
}

// moved takes note that w stands in another lane now, perhaps at its head.
func (t *turns) moved(w *waiter) { heap.Push(t, turn{w.lane, w.ticket}) }

// oldest is the first waiter of the lanes that are not blocked; nil: nobody waits there.
func (t *turns) oldest(q *queue, blocked map[lane]struct{}) *waiter {
	for len(*t) > 0 {
		next := &(*t)[0]
		l := q.lanes[next.lane]
		_, skip := blocked[next.lane]
		switch {
		case l == nil || skip:
			heap.Pop(t)
		case l.first.ticket != next.ticket:
			next.ticket = l.first.ticket
			heap.Fix(t, 0)
		default:
			return l.first
		}
	}
	return nil
}

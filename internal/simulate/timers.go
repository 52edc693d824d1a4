package simulate

import (
	"container/heap"
	"time"
)

// timers are the turns that are to start later, the earliest first and those of one moment
// in the order in which they were set.
type timers struct {
	heap timerHeap
	seq  int
}

type timer struct {
	at      time.Duration
	seq     int
	session int
}

func (t *timers) set(session int, at time.Duration) {
	t.seq++
	heap.Push(&t.heap, timer{at: at, seq: t.seq, session: session})
}

// due returns the earliest time of all, if there is one.
func (t *timers) due() (time.Duration, bool) {
	if len(t.heap) == 0 {
		return 0, false
	}
	return t.heap[0].at, true
}

// pop removes the earliest timer and returns its session.
func (t *timers) pop() int { return heap.Pop(&t.heap).(timer).session }

type timerHeap []timer

func (h timerHeap) Len() int { return len(h) }

func (h timerHeap) Less(i, j int) bool {
	if h[i].at != h[j].at {
		return h[i].at < h[j].at
	}
	return h[i].seq < h[j].seq
}

func (h timerHeap) Swap(i, j int) { h[i], h[j] = h[j], h[i] }

func (h *timerHeap) Push(x any) { *h = append(*h, x.(timer)) }

func (h *timerHeap) Pop() any {
	last := len(*h) - 1
	out := (*h)[last]
	*h = (*h)[:last]
	return out
}

package router

import (
	"cmp"
	"slices"
	"time"
)

// WaitEnd is how the waiting of an acquire ended.
type WaitEnd string

// The ends of waiting.
const (
	// WaitGranted: with a lease.
	WaitGranted WaitEnd = "Granted"
	// WaitRefused: with a refusal that no further waiting could have helped.
	WaitRefused WaitEnd = "Refused"
	// WaitAbandoned: the client went, or its time was up.
	WaitAbandoned WaitEnd = "Abandoned"
)

// waitClasses is the number of classes that waits are counted in, the open one included.
const waitClasses = 17

// WaitBounds are the upper ends of the classes of Waits, ascending; the last class has none.
func WaitBounds() [waitClasses - 1]time.Duration {
	const ms = time.Millisecond
	return [...]time.Duration{
		ms, 5 * ms, 10 * ms, 25 * ms, 50 * ms, 100 * ms, 250 * ms, 500 * ms, time.Second, 5 * time.Second / 2,
		5 * time.Second, 10 * time.Second, 30 * time.Second, time.Minute, 5 * time.Minute, 10 * time.Minute,
	}
}

// Waits counts how long acquires waited, by disjoint classes.
type Waits struct {
	Counts [waitClasses]int64
	Sum    time.Duration
}

// with is w and one more wait.
func (w Waits) with(d time.Duration) Waits {
	bounds := WaitBounds()
	class, _ := slices.BinarySearch(bounds[:], d)
	w.Counts[class]++
	w.Sum += d
	return w
}

// waited counts a wait that ends now.
func (s *state) waited(w *waiter, end WaitEnd, now instant) {
	s.totals.Waits[end] = s.totals.Waits[end].with(time.Duration(now - w.since))
}

// waiting says how many wait for each sender, and since when the first of them.
func (s *state) waiting(now instant) map[SenderName]QueueSnapshot {
	out := map[SenderName]QueueSnapshot{}
	for k, l := range s.queue.lanes {
		q := out[k.sender]
		q.Waiting += l.n
		q.Longest = max(q.Longest, time.Duration(now-l.first.since)) // lanes are in order of arrival
		out[k.sender] = q
	}
	return out
}

// queues lists them by sender.
func (s *state) queues(now instant) []QueueSnapshot {
	var out []QueueSnapshot
	for sender, q := range s.waiting(now) {
		q.Sender = sender
		out = append(out, q)
	}
	slices.SortFunc(out, func(a, b QueueSnapshot) int { return cmp.Compare(a.Sender, b.Sender) })
	return out
}

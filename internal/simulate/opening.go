package simulate

import (
	"time"

	"github.com/berthmaster/berthmaster/internal/simulate/workload"
)

// opener decides when sessions open. Sessions are named by their index in the order in
// which they are to open.
type opener struct {
	kind     Opening
	sessions []workload.Session
	next     int   // the next session to open
	active   int   // sessions open now
	room     int   // KeepInFlight: sessions that may be open at once
	batch    []int // Barrier: sizes of the batches that are still to come
}

func newOpener(s Scenario, sessions []workload.Session) *opener {
	o := &opener{kind: s.Opening, sessions: sessions, room: s.InFlight}
	if s.Opening == Barrier {
		o.batch = batches(sessions, s)
	}
	return o
}

// begin returns which sessions open first: those from one index up to and without the other.
func (o *opener) begin() (from, until int) {
	if o.kind == ByArrival {
		return o.take(len(o.sessions))
	}
	return o.more()
}

// ended counts a session that is over, and returns which open in its place.
func (o *opener) ended() (from, until int) {
	o.active--
	return o.more()
}

func (o *opener) more() (from, until int) {
	switch {
	case o.kind == KeepInFlight:
		return o.take(o.room - o.active)
	case o.kind == Barrier && o.active == 0 && len(o.batch) > 0:
		n := o.batch[0]
		o.batch = o.batch[1:]
		return o.take(n)
	}
	return o.next, o.next
}

func (o *opener) take(n int) (from, until int) {
	from = o.next
	o.next = min(len(o.sessions), o.next+n)
	o.active += o.next - from
	return from, o.next
}

// when returns the time at which a session that may open now does so.
func (o *opener) when(session int, now time.Duration) time.Duration {
	if o.kind == ByArrival {
		return o.sessions[session].Arrival
	}
	return now
}

// batches returns how many sessions each batch of a barrier has; one batch of all where the
// scenario has no barrier.
func batches(sessions []workload.Session, s Scenario) []int {
	if s.Opening != Barrier {
		return []int{len(sessions)}
	}
	var sizes []int
	for len(sessions) > 0 {
		n := firstTasks(sessions, s.InFlight)
		sizes = append(sizes, n)
		sessions = sessions[n:]
	}
	return sizes
}

// firstTasks returns how many sessions the first n tasks have.
func firstTasks(sessions []workload.Session, n int) int {
	for i := range sessions {
		if i > 0 && sessions[i].Group != "" && sessions[i].Group == sessions[i-1].Group {
			continue
		}
		if n == 0 {
			return i
		}
		n--
	}
	return len(sessions)
}

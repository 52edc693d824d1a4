package door

import (
	"runtime"
	"sync/atomic"
)

// turns are the places of those strangers that something may be computed for at once: half of the processors, so
// that they leave the rest to those whose calls are answered. A connection is a stranger until its first call is
// read: its TLS handshake, in however many steps, and its first headers.
//
// A turn begins once something has come in and ends before the connection is read or written again, so that no
// client keeps one by what it does.
type turns chan struct{}

func newTurns() turns { return make(turns, max(1, runtime.GOMAXPROCS(0)/2)) }

// turn is a place that a connection has, or none.
type turn struct {
	of    turns
	held  atomic.Bool
	known atomic.Bool // no stranger any more
}

// begin waits for a place. Whoever has one either ends it soon or computes, so that the wait is short.
func (t *turn) begin() {
	if t.known.Load() {
		return
	}
	t.of <- struct{}{}
	t.held.Store(true)
	if t.known.Load() { // it was closed meanwhile, after which nobody may come to end this
		t.end()
	}
}

// end gives the place back, if there is one.
func (t *turn) end() {
	if t.held.CompareAndSwap(true, false) {
		<-t.of
	}
}

// leave ends the turns of a connection for good.
func (t *turn) leave() {
	t.known.Store(true)
	t.end()
}

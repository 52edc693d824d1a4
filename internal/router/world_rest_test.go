package router

import (
	"time"

	"pgregory.net/rapid"
)

// comeToRest lets everybody do what they can, and demands that nothing is left.
func (w *world) comeToRest() {
	w.now = w.now.Add(time.Second)
	w.serveEverything()
	for range 400 {
		w.now = w.now.Add(600 * time.Millisecond)
		w.everyoneIsWell()
		w.converse()
		if w.quiet() {
			break
		}
	}
	w.check()
	w.mustBeAtRest()
}

// converse has the engines answer all that they are asked now.
func (w *world) converse() {
	w.askEngines()
	for len(w.mail) > 0 {
		l := w.mail[0]
		w.mail = w.mail[1:]
		switch l.kind {
		case question:
			w.handle(l)
		case answer:
			w.hand(l)
		case pauseAnswer:
		}
	}
}

// close fences a sender, holds leasing or drains a backend, for as long as it may take to complete.
func (w *world) close() {
	switch rapid.IntRange(0, 3).Draw(w.t, "closes") {
	case 0:
		w.fleet.Leasing = LeasingHeld
	case 1:
		w.anyMember().Drain = choose(w, "drain", []Drain{DrainMove, DrainKeep, DrainAbort})
	default:
		w.fleet.Senders[rapid.IntRange(0, 1).Draw(w.t, "sender")].Access = AccessFenced
	}
	w.apply()
	for range 100 {
		w.converse()
		w.check() // as after each step: who was served, when
		w.now = w.now.Add(600 * time.Millisecond)
	}
}

// serveEverything ends what clients do and has every backend drained.
func (w *world) serveEverything() {
	for _, c := range w.calls {
		for _, wt := range c.waiters {
			_ = w.tab.giveUpWaiting(wt, ErrNoBackend, w.now)
		}
		c.waiters = nil
		c.over = true
		if c.work == workRunning {
			delete(w.engines[c.token.Incarnation].running, c.token.RID)
			c.work = workFinished
		}
	}
	for _, inc := range w.incarnations() {
		e := w.engines[inc]
		if m := w.member(inc); m != nil {
			m.Engine, m.Drain = EngineRunning, DrainMove
		}
		if w.tab.state.backends[inc] != nil && (e.state == engineEnded || w.member(inc) == nil) {
			e.state = engineEnded // what has left the fleet ends one day, and its kubelet says so
			w.tab.Gone([]Incarnation{inc}, w.now)
		}
	}
	w.fleet.Epoch++ // also the way back from a failure
	w.apply()
	w.now = w.now.Add(w.fleet.Config.TTL + w.windows)
}

func (w *world) quiet() bool {
	for _, b := range w.tab.Snapshot(w.now).Backends {
		if !b.Drained {
			return false
		}
	}
	return true
}

// mustBeAtRest: counts are zero; records and sessions go when their time has come.
func (w *world) mustBeAtRest() {
	snap := w.tab.Snapshot(w.now)
	for _, b := range snap.Backends {
		if b.Outstanding != 0 || b.Held != 0 || b.UnknownLoad || b.Isolated || b.Retired {
			e := w.engines[b.Incarnation]
			w.t.Fatalf("a backend does not come to rest: %+v\nits engine: %+v\nits settling: %+v", b, *e, w.tab.state.backends[b.Incarnation].settling)
		}
	}
	for _, v := range snap.Senders {
		if v.Counted != 0 {
			w.t.Fatalf("a sender does not come to rest: %+v", v)
		}
	}
	w.now = w.now.Add(max(w.fleet.Config.Retention, w.fleet.Config.IdleTimeout) + time.Second)
	snap = w.tab.Snapshot(w.now)
	s := w.tab.state
	if snap.Requests+snap.Sessions+snap.Waiting+len(s.uncertain)+len(s.groups)+len(s.deadlines)+len(s.strays) != 0 {
		w.t.Fatalf("%d records, %d sessions, %d waiters, %d groups stay for ever", snap.Requests, snap.Sessions, snap.Waiting, len(s.groups))
	}
	w.check()
}

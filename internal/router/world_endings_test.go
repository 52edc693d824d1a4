package router

import (
	"errors"
	"slices"
)

// release ends a call as its client truthfully may.
func (w *world) release() {
	c := w.drawCall("call", func(c *call) bool { return c.token != nil && !c.over })
	if c == nil {
		return
	}
	o := choose(w, "outcome", truthful(c))
	c.late = c.token.Term == w.term && !w.now.Before(c.expires)
	e, err := w.tab.Release(*c.token, o, w.drawReply(), w.now)
	if w.lapsed(err) {
		return
	}
	c.end(w, o)
	if err != nil {
		w.t.Logf("release of %s: %v", c.req.ID, err)
		return
	}
	c.told = true
	if e.Fate != FateDead { // else the weights may have changed after its end
		w.judgeSpan(c, e.Mixed, err)
	}
	if e.Fate == FateDead && w.mayRun(c) {
		w.t.Fatalf("R4: %s is called dead and may run", c.req.ID)
	}
	if e.Outcome != o {
		w.t.Fatalf("a release as %q was answered %q", o, e.Outcome)
	}
	if o != Ambiguous && !e.Settled {
		w.t.Fatalf("a release as %q left its caller waiting", o)
	}
}

// drawReply is what the client saw of the reply, if it saw any.
func (w *world) drawReply() Reply {
	if oneIn(w, 2, "no reply") {
		return Reply{}
	}
	return Reply{Version: "v1", PromptTokens: choose(w, "prompt", []int64{1, 100_000}), OutputTokens: choose(w, "output", []int64{1, 10_000})}
}

// truthful lists the outcomes that a client may report by what it knows.
func truthful(c *call) []Outcome {
	switch c.work {
	case workNone:
		return []Outcome{NotSent}
	case workRunning:
		return []Outcome{Cancelled, Ambiguous, Ambiguous}
	case workFinished:
		return []Outcome{Succeeded, Succeeded, Ambiguous}
	case workAborted:
		return []Outcome{Aborted, Ambiguous, Cancelled}
	default:
		return []Outcome{Ambiguous, Cancelled}
	}
}

// releaseAgain repeats a release: answered alike; with another outcome it is a conflict.
func (w *world) releaseAgain() {
	c := w.drawCall("call", func(c *call) bool {
		return c.token != nil && c.over && w.tab.state.find(c.token) != nil && w.tab.state.find(c.token).outcome != OutcomeNone
	})
	if c == nil {
		return
	}
	w.tab.Tick(w.now)
	l := w.tab.state.find(c.token)
	if l == nil {
		return
	}
	before := w.tab.Snapshot(w.now)
	if e, err := w.tab.Release(*c.token, l.outcome, Reply{}, w.now); !w.lapsed(err) && (err != nil || e.Outcome != l.outcome) {
		w.t.Fatalf("R3: releasing %s as %q again: %+v, %v", c.req.ID, l.outcome, e, err)
	}
	w.unchanged("a repeated release", before)
	other := choose(w, "other outcome", []Outcome{Succeeded, Aborted, NotSent, Rejected, Cancelled, Ambiguous})
	if other == l.outcome {
		return
	}
	if _, err := w.tab.Release(*c.token, other, Reply{}, w.now); !errors.Is(err, ErrRequestConflict) {
		w.t.Fatalf("R3: %s was released as %q, then as %q: %v", c.req.ID, l.outcome, other, err)
	}
	w.unchanged("a contradicting release", before)
}

// forgo is a client without a token that gives up: it has written nothing.
func (w *world) forgo() {
	c := w.drawCall("call", func(c *call) bool { return c.work == workNone && !c.over && len(c.waiters) == 0 && !c.twin })
	if c == nil {
		return
	}
	w.tab.Tick(w.now)
	r := c.req
	r.Prior = nil
	c.end(w, NotSent)
	if _, err := w.tab.Forgo(r, w.now); err != nil {
		c.over, c.outcome = false, OutcomeNone
		return
	}
	if _, err := w.tab.Acquire(r, w.now); !errors.Is(err, ErrLeaseEnded) && !errors.Is(err, ErrStaleEpoch) && !errors.Is(err, ErrNoLeader) {
		w.t.Fatalf("R3: acquiring the spent id %s: %v", r.ID, err)
	}
}

// forgoUnderway is a process without a token that says of a request that nothing was sent, while another
// one has written it, or has let it run out: that ends nothing (5.3 a).
func (w *world) forgoUnderway() {
	w.tab.Tick(w.now)
	c := w.drawCall("call", func(c *call) bool {
		if c.token == nil || c.token.Term < w.term || c.over || !c.begun && w.now.Before(c.expires) || w.held(c.token.RID, c) {
			return false
		}
		l := w.tab.state.find(c.token)
		return l != nil && l.counted() && l.filed == filedByID
	})
	if c == nil {
		return
	}
	r := c.req
	r.Prior = nil
	before := w.tab.Snapshot(w.now)
	if _, err := w.tab.Forgo(r, w.now); !errors.Is(err, ErrRequestConflict) {
		w.t.Fatalf("R5: %s may run, and was forgone: %v", r.ID, err)
	}
	w.unchanged("a refused forgoing", before)
}

// endSession is the end of a trajectory.
func (w *world) endSession() {
	id := choose(w, "session", []SessionID{"s0", "s1", "s2", "s3", "s4", "s5", "s6", "s7"})
	v := w.tab.state.sessions[id]
	sender := choose(w, "by", []SenderName{"train", "eval"})
	err := w.tab.EndSession(id, sender, w.now)
	if w.lapsed(err) {
		return
	}
	if foreign := v != nil && v.sender != sender; foreign != (err != nil) {
		w.t.Fatalf("ending %s as %s: %v", id, sender, err)
	}
}

// collect gives a waiting client its answer.
func (w *world) collect() {
	for _, c := range w.calls {
		for i, wt := range c.waiters {
			if answered(wt) {
				c.waiters = slices.Delete(c.waiters, i, i+1)
				w.answered(c, wt.grant, wt.err, w.served[wt])
				return
			}
		}
	}
}

func answered(wt *waiter) bool {
	select {
	case <-wt.done:
		return true
	default:
		return false
	}
}

// hangUp is a waiting client that goes away: no trace of it may stay.
func (w *world) hangUp() {
	c := w.drawCall("call", func(c *call) bool { return len(c.waiters) > 0 })
	if c == nil {
		return
	}
	wt := c.waiters[0]
	c.waiters = c.waiters[1:]
	w.tab.Tick(w.now)
	w.takenBack(c, func() { _ = w.tab.giveUpWaiting(wt, ErrNoBackend, w.now) })
	if wt.in != nil {
		w.t.Fatalf("the waiter of %s stays in the queue", c.req.ID)
	}
}

// loseRights is a caller that may not have the lease which it has waited for: it is not told of it.
func (w *world) loseRights() {
	served := func(wt *waiter) bool { return answered(wt) && wt.err == nil }
	c := w.drawCall("call", func(c *call) bool { return slices.ContainsFunc(c.waiters, served) })
	if c == nil {
		return
	}
	i := slices.IndexFunc(c.waiters, served)
	wt := c.waiters[i]
	c.waiters = slices.Delete(c.waiters, i, i+1)
	w.tab.Tick(w.now)
	w.takenBack(c, func() { w.tab.TakeBack(&wt.grant, w.now) })
}

// takenBack demands that undo, by which one of a call's connections ends untold, leaves a lease only
// while another connection was told of it or still may be.
func (w *world) takenBack(c *call, undo func()) {
	had := w.tab.state.leases[c.req.ID] != nil
	undo()
	l := w.tab.state.leases[c.req.ID]
	if l != nil && l.phase == phaseActive && !c.twin && c.answers+len(c.waiters) == 0 {
		w.t.Fatalf("the lease of %s, which nobody has seen, stays", c.req.ID)
	}
	if had && l == nil { // the id is as if never asked for
		c.leased = false
		delete(w.granted, c.req.ID)
	}
}

// end notes that the client is done with the call.
func (c *call) end(w *world, o Outcome) {
	c.over, c.overIn, c.overAt, c.outcome = true, w.term, w.now, o
}

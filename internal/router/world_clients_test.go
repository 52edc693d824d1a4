package router

import (
	"errors"
	"fmt"
	"time"

	"pgregory.net/rapid"
)

// call is one request of one client process, by that client's own knowledge.
type call struct {
	req   Request
	token *Claim
	// waiter is set while the client waits for a lease.
	waiter *waiter
	asked  time.Time
	// window is until when the client may begin to write; the zero time: not at all.
	window time.Time
	// expires is when the lease runs out unless it is renewed.
	expires time.Time
	work    work
	// over: the client has released or given up, and writes nothing any more.
	over    bool
	outcome Outcome
	// overIn is the term in which it was over: a later one knows nothing of it.
	overIn Term
	overAt time.Time
	// late: the lease had run out before the client released it.
	late bool
	// twin: another process of the same client has asked for this id without its token.
	twin bool
}

// work is what really became of a call's execution.
type work uint8

const (
	workNone work = iota
	workRunning
	workFinished
	workAborted
	workKilled
)

// mayWrite: the client still holds the right to begin, by its own clock.
func (c *call) mayWrite(now time.Time) bool {
	return c.token != nil && c.work == workNone && !c.over && now.Before(c.window)
}

// drawCall draws one of the calls that fit; nil: none does.
func (w *world) drawCall(label string, fits func(*call) bool) *call {
	var some []*call
	for _, c := range w.calls {
		if fits(c) {
			some = append(some, c)
		}
	}
	if len(some) == 0 {
		return nil
	}
	return choose(w, label, some)
}

func (w *world) drawRequest() Request {
	r := Request{
		ID:      RequestID(fmt.Sprintf("r%d", len(w.calls))),
		Session: choose(w, "session", []SessionID{"s0", "s1", "s2", "s3", "s4", "s5", "s6", "s7"}),
		Sender:  "train", Epoch: w.fleet.Epoch,
		Executions: int64(rapid.IntRange(1, 3).Draw(w.t, "executions")),
	}
	if len(r.Session)%2 == 0 && r.Session >= "s5" {
		r.Sender = "eval"
	}
	r.SenderGeneration = w.sender(r.Sender).MinGeneration
	w.spoil(&r)
	if oneIn(w, 3, "has a group") {
		r.Group = choose(w, "group", []GroupID{"g0", "g1"})
	}
	if oneIn(w, 4, "names its last backend") {
		e := w.engines[choose(w, "last", w.incarnations())]
		r.LastIncarnation, r.LastName = e.inc, BackendName(e.inc[:1])
	}
	return r
}

// spoil makes few requests such as must be refused.
func (w *world) spoil(r *Request) {
	switch rapid.IntRange(0, 20).Draw(w.t, "spoilt") {
	case 1:
		r.Sender = "ghost"
	case 2:
		r.SenderGeneration = max(0, r.SenderGeneration-1)
	case 3:
		r.Epoch = max(1, r.Epoch-1)
	case 4:
		r.Epoch++
	case 5:
		r.Sender = "eval"
	}
}

// acquire asks for a new lease, at once or waiting.
func (w *world) acquire() {
	c := &call{req: w.drawRequest(), asked: w.now}
	w.calls = append(w.calls, c)
	w.ask(c, oneIn(w, 2, "waits"))
}

// ask sends a call's acquire and judges the answer.
func (w *world) ask(c *call, waits bool) {
	w.tab.Tick(w.now)
	c.asked = w.now
	before := w.sight()
	w.lookAt(&before, &c.req)
	if !waits {
		g, err := w.tab.Acquire(c.req, w.now)
		w.judge(c, before, g, err)
		w.answered(c, g, err)
		return
	}
	wt, g, err := w.tab.acquireOrQueue(c.req, w.now)
	if wt != nil {
		c.waiter = wt
		return
	}
	w.judge(c, before, g, err)
	w.answered(c, g, err)
}

// answered is what a client makes of the answer to an acquire.
func (w *world) answered(c *call, g Grant, err error) {
	if err != nil {
		return
	}
	w.noteGrant(c, &g)
	c.token = &g.Claim
	w.extended(c, g.StartWindow, g.TTL)
}

func (w *world) extended(c *call, window, ttl time.Duration) {
	c.window, c.expires = c.asked.Add(window), w.now.Add(ttl)
}

// noteGrant fails the run when an id is given a second lease (R4).
func (w *world) noteGrant(c *call, g *Grant) {
	if was, ok := w.granted[c.req.ID]; ok && was != g.Claim.RID && !c.twin {
		w.t.Fatalf("R4: request %s was given lease %s and then %s", c.req.ID, was, g.Claim.RID)
	}
	w.granted[c.req.ID] = g.Claim.RID
}

// askAgain repeats an acquire, as a client does that is not sure of the answer; no later than
// half the retention time after it first asked, and with its token if it has one.
func (w *world) askAgain() {
	c := w.drawCall("call", func(c *call) bool {
		return c.waiter == nil && w.now.Sub(c.asked) < w.fleet.Config.Retention/2
	})
	if c == nil {
		return
	}
	if c.token != nil {
		prior := *c.token
		c.req.Prior = &prior
	}
	w.tab.Tick(w.now)
	first := c.asked
	before := w.sight()
	w.lookAt(&before, &c.req)
	c.asked = w.now
	g, err := w.tab.Acquire(c.req, w.now)
	if c.over && c.overIn == w.term && err == nil {
		w.t.Fatalf("R3: request %s was ended as %q by its client and is leased again", c.req.ID, c.outcome)
	}
	if _, leased := w.granted[c.req.ID]; !leased {
		w.judge(c, before, g, err)
	}
	if err != nil {
		c.asked = first
	}
	w.answered(c, g, err)
}

// askAsAnother uses an id with another identity: a conflict that changes nothing (R3).
func (w *world) askAsAnother() {
	c := w.drawCall("call", func(c *call) bool {
		return w.tab.state.leases[c.req.ID] != nil && c.req.Epoch == w.fleet.Epoch
	})
	if c == nil {
		return
	}
	r := c.req
	r.Prior = nil
	r.Executions++
	before := w.tab.Snapshot(w.now)
	_, err := w.tab.Acquire(r, w.now)
	if !errors.Is(err, ErrRequestConflict) {
		w.t.Fatalf("R3: %s under another identity: %v, want a conflict", r.ID, err)
	}
	w.unchanged("a conflict", before)
}

// forgetToken makes a second process ask for the id of a first one that has not written and,
// against the protocol, wakes up later: what the first then does must be counted all the same.
func (w *world) forgetToken() {
	c := w.drawCall("call", func(c *call) bool {
		return c.token != nil && c.token.Term < w.term && !c.twin && w.tab.state.leases[c.req.ID] == nil
	})
	if c == nil {
		return
	}
	second := &call{req: c.req, twin: true}
	second.req.Prior, c.twin = nil, true
	w.calls = append(w.calls, second)
	w.ask(second, false)
}

// renew extends a lease, in every state of the pool.
func (w *world) renew() {
	c := w.drawCall("call", func(c *call) bool { return c.token != nil })
	if c == nil {
		return
	}
	begun := NotStarted
	if c.work != workNone {
		begun = choose(w, "started", []Start{NotStarted, Started})
	}
	r, err := w.tab.Renew(*c.token, begun, w.now)
	switch {
	case err == nil && c.over && c.overIn == w.term && w.now.Before(c.overAt.Add(w.fleet.Config.Retention)):
		w.t.Fatalf("R3: a renew revived %s, released as %q", c.req.ID, c.outcome)
	case err == nil && !w.now.Before(c.expires) && !c.token.before(w.term):
		w.t.Fatalf("R5: a renew revived %s, which ran out at %v", c.req.ID, c.expires.Sub(worldEpoch))
	case err == nil && !c.over:
		c.asked = w.now
		w.extended(c, r.StartWindow, r.TTL)
	}
}

// before reports whether the claim is of an earlier term.
func (c *Claim) before(t Term) bool { return c.Term < t }

// write sends the request to the engine, if the client may still do so.
func (w *world) write() {
	c := w.drawCall("call", func(c *call) bool { return c.mayWrite(w.now) })
	if c == nil {
		return
	}
	e := w.engines[c.token.Incarnation]
	if e.state == engineEnded {
		c.window = time.Time{} // the connection was refused; the client will say so
		return
	}
	c.work = workRunning
	e.running[c.token.RID] = c
}

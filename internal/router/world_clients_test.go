package router

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"pgregory.net/rapid"
)

// call is one request of one client process, by that client's own knowledge.
type call struct {
	req   Request
	token *Claim
	// waiters are the connections on which the client waits for a lease.
	waiters []*waiter
	// leased: the table gave it a lease, whether or not the answer arrived.
	leased bool
	// answers is how many connections were told of the lease, or would have been but for the network.
	answers int
	asked   time.Time
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
	// told: the table has heard of it.
	told bool
	// late: the lease had run out before the client released it.
	late bool
	// begun: the table was told that the request is written.
	begun bool
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
		w.answered(c, g, err, w.now)
		return
	}
	wt, g, err := w.tab.acquireOrQueue(c.req, w.now)
	if wt != nil {
		c.waiters = append(c.waiters, wt)
		return
	}
	w.judge(c, before, g, err)
	w.answered(c, g, err, w.now)
}

// answered is what a client makes of the answer to an acquire.
func (w *world) answered(c *call, g Grant, err error, at time.Time) {
	if err != nil {
		return
	}
	w.noteGrant(c, &g)
	c.answers++
	if c.twin && w.held(g.Claim.RID, c) {
		c.over = true // another process has this very lease: using it twice is the client's own fault
		return
	}
	c.leased, c.expires = true, later(c.expires, at.Add(g.TTL))
	if c.over || oneIn(w, 10, "answer lost") {
		return
	}
	c.token = &g.Claim
	c.window = later(c.window, c.asked.Add(g.StartWindow))
}

// held reports whether another call than c holds the lease of that rid.
func (w *world) held(rid RID, c *call) bool {
	return slices.ContainsFunc(w.calls, func(o *call) bool { return o != c && o.token != nil && o.token.RID == rid })
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
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
		return w.now.Sub(c.asked) < w.fleet.Config.Retention/2 || c.token != nil
	})
	if c == nil {
		return
	}
	if c.token != nil {
		prior := *c.token
		c.req.Prior = &prior
	}
	if !c.leased {
		w.ask(c, oneIn(w, 2, "waits"))
		return
	}
	w.tab.Tick(w.now)
	g, err := w.tab.Acquire(c.req, w.now)
	w.judgeAgain(c, g, err)
	if err == nil {
		c.asked = w.now
	}
	w.answered(c, g, err, w.now)
}

// judgeAgain holds a repeated acquire against what the client knows of its lease (R3, R5).
func (w *world) judgeAgain(c *call, g Grant, err error) {
	if w.lapsed(err) {
		return
	}
	w.judgeFate(c, err)
	if c.token == nil || c.token.Term < w.term || c.twin || c.req.Epoch != w.fleet.Epoch || c.overIn != w.term && c.over {
		return
	}
	_, ended := w.vouched[c.token.Incarnation]
	keep := w.fleet.Config.Retention
	switch {
	case c.over && c.told && w.now.Before(c.overAt.Add(keep)):
		var r *Refusal
		if !errors.As(err, &r) || r.Reason != ReasonLeaseEnded || r.Outcome != c.outcome {
			w.t.Fatalf("R3: %s was released as %q; acquired again: %v", c.req.ID, c.outcome, err)
		}
	case c.over:
	case ended, !w.now.Before(c.expires) && w.now.Before(c.expires.Add(keep)):
		if err == nil {
			w.t.Fatalf("R5: %s is lost and was leased again as %s", c.req.ID, g.Claim.RID)
		}
	case w.now.Before(c.expires):
		if err != nil || !g.Again || g.Claim != *c.token {
			w.t.Fatalf("R3: %s is alive; acquired again: %+v, %v", c.req.ID, g, err)
		}
	}
}

// judgeFate: Dead is the permission to make a turn again, so it has to be true (R4).
func (w *world) judgeFate(c *call, err error) {
	var r *Refusal
	if errors.As(err, &r) && r.Fate == FateDead && w.mayRun(c) {
		w.t.Fatalf("R4: %s is called dead and may run", c.req.ID)
	}
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
	w.judgeRenewal(c, err)
	w.judgeSpan(c, r.Mixed, err)
	if err == nil && !c.over {
		c.asked = w.now
		c.window = later(c.window, c.asked.Add(r.StartWindow))
		c.expires = later(c.expires, w.now.Add(r.TTL))
		c.begun = begun == Started
	}
}

// judgeSpan: a lease says mixed where its engine has been seen on another version than it promises (R9).
func (w *world) judgeSpan(c *call, mixed bool, err error) {
	told := w.engines[c.token.Incarnation].told
	if err == nil && !mixed && c.token.Version != "" && told != "" && told != c.token.Version {
		w.t.Fatalf("R9: %s was granted on %s, its engine has been seen on %s, and it does not say mixed", c.req.ID, c.token.Version, told)
	}
}

// judgeRenewal: what is alive is extended in every state of the pool, what is not is not revived.
func (w *world) judgeRenewal(c *call, err error) {
	if w.lapsed(err) {
		return
	}
	w.judgeFate(c, err)
	if c.token.Term < w.term || c.over && c.overIn != w.term {
		return
	}
	_, ended := w.vouched[c.token.Incarnation]
	alive := !c.over && w.now.Before(c.expires) && !ended && c.token.Epoch == w.fleet.Epoch
	switch {
	case err == nil && !alive:
		w.t.Fatalf("R5: a renew revived %s (over %v, ran out %v)", c.req.ID, c.over, !w.now.Before(c.expires))
	case err != nil && alive && !c.twin:
		w.t.Fatalf("R10: %s is alive and was not renewed: %v", c.req.ID, err)
	}
}

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

package proxy

import (
	"context"
	"errors"
	"io"
	"net/http"
	"time"

	"github.com/berthmaster/berthmaster/internal/router"
	"github.com/berthmaster/berthmaster/internal/router/proxy/wire"
	"github.com/berthmaster/berthmaster/internal/router/steps"
)

// attempts is how often a request is tried: again only if not a byte of it was written.
const attempts = 2

// generate is the way of a request that is leased.
func (h *Handler) generate(c *call) {
	body := h.newSpool()
	defer body.free()
	f, err := h.receive(c, body)
	if err != nil {
		h.giveUpReading(c, err)
		return
	}
	session, keeps := h.session(c, f, body)
	r, err := h.request(c, f, session)
	if err != nil {
		h.giveUp(c, err)
		return
	}
	if keeps == withoutAffinity {
		c.meter.withoutAffinity.Add(1)
		defer func() { _ = c.table.EndSession(session, c.sender, h.cfg.Clock()) }() // nobody else can know it
	}
	for range attempts {
		r.ID = router.RequestID("p-" + h.random())
		grant, err := h.acquire(c, r)
		if err != nil {
			h.giveUp(c, err)
			return
		}
		if h.exchange(c, f, body, grant) == over {
			return
		}
	}
	h.giveUp(c, &router.Refusal{Reason: reasonUnreachable, Outcome: router.NotSent, RetryAfter: time.Second,
		Detail: "no backend took the connection; the request was not sent"})
}

// acquire takes a lease, and tells of it.
func (h *Handler) acquire(c *call, r router.Request) (promised, error) {
	step := h.begin(steps.Acquire, c, h.cfg.Clock())
	step.Asks(&r)
	g, err := h.hold(c, r, step)
	h.end(step, &g.Claim, err)
	return g, err
}

// giveUpReading answers a request whose body may not have been read to its end. It does so even if the request's
// context has ended: a server takes it for hanging up as well that a client is silent until a deadline.
func (h *Handler) giveUpReading(c *call, err error) {
	switch {
	case errors.Is(err, errClientGone):
		h.giveUp(c, err)
		return
	case errors.Is(err, errStopped):
		err = stopped(h.cfg.Limits.Upload)
	default:
		c.linger(min(lingerTime, h.cfg.Limits.Upload))
	}
	h.refuse(c, err)
}

// giveUp answers a request of which nothing was sent. A client that has gone, or that breaks off in its body, gets
// a cut connection: to return without an answer would be an empty one with status 200.
func (h *Handler) giveUp(c *call, err error) {
	if c.r.Context().Err() != nil || errors.Is(err, errClientGone) {
		h.measure(c, labelGone)
		panic(http.ErrAbortHandler)
	}
	h.refuse(c, err)
}

// progress is whether an attempt has settled the request.
type progress uint8

const (
	// again: nothing was sent and nothing answered.
	again progress = iota
	over
)

// exchange is one attempt under one lease.
type exchange struct {
	h     *Handler
	c     *call
	lease *lease
	ctx   context.Context
	// cut ends the exchange with the engine, and says why.
	cut context.CancelCauseFunc
	// head says whether the client has been sent a status.
	head   headState
	silent *time.Timer
}

type headState uint8

const (
	headUnsent headState = iota
	headSent
)

func (h *Handler) exchange(c *call, f *fields, body *spool, g promised) progress {
	ctx, cut := context.WithCancelCause(c.r.Context())
	defer cut(nil)
	x := &exchange{h: h, c: c, ctx: ctx, cut: cut}
	x.lease = h.keep(c, g, cut)
	x.silent = time.AfterFunc(h.cfg.Limits.Silence, func() { cut(errSilent) })
	defer x.silent.Stop()
	defer x.tell(h.begin(steps.Generate, c, h.cfg.Clock()))
	resp, err := h.cfg.Transport.Do(ctx, g.URL, x.request(f, body, g))
	if err != nil {
		return x.broke(err)
	}
	defer resp.Body.Close()
	c.w.Header().Set("X-Berthmaster-Backend", string(g.Claim.Backend))
	if resp.StatusCode/100 == 2 {
		x.pass(resp)
	} else {
		x.passRefusal(resp)
	}
	return over
}

// request is what is sent to the engine.
func (x *exchange) request(f *fields, body *spool, g promised) *wire.Request {
	content, length := withRID(body, f, g.Claim.RID)
	head := make(http.Header, len(x.c.r.Header)+2)
	passed(x.c.r.Header, head)
	if head.Get(sessionHeader) == "" {
		head[sessionHeader] = []string{string(g.Claim.Session)}
	}
	if context := x.traced(); context != "" {
		head[steps.TraceHeader] = []string{context}
	}
	x.h.identify(x.c, head)
	return &wire.Request{
		Method: x.c.r.Method, Target: target(x.c), Header: head, Body: content, Length: length, Ready: x.lease.mayBegin,
	}
}

// identify adds the engine's key, if it has one.
func (h *Handler) identify(c *call, head http.Header) {
	if key := h.cfg.Settings(c.pool).EngineKey; key != "" {
		head["Authorization"] = []string{"Bearer " + key}
	}
}

func target(c *call) string {
	if c.r.URL.RawQuery == "" {
		return c.engine
	}
	return c.engine + "?" + c.r.URL.RawQuery
}

// broke ends an exchange that failed before its reply began.
func (x *exchange) broke(err error) progress {
	o := failureOutcome(x.ctx, err)
	if nobodyListens(err) && o == router.NotSent {
		x.refused(&x.lease.grant.Claim)
	}
	end := x.conclude(o, router.Reply{})
	if o == router.NotSent {
		return again
	}
	x.tellBroken(end)
	return over
}

// refused tells those who send others to the engine that it refused a connection.
func (x *exchange) refused(by *router.Claim) {
	x.c.table.ConnectionRefused(by.Incarnation, x.h.cfg.Clock())
	if x.h.cfg.Refused != nil {
		x.h.cfg.Refused(by.Pool, by.Incarnation)
	}
}

// tellBroken answers a client whose request may have been executed.
func (x *exchange) tellBroken(end router.Ending) {
	x.h.measure(x.c, label(end.Outcome))
	if x.c.r.Context().Err() != nil {
		return
	}
	if x.head == headSent {
		panic(http.ErrAbortHandler) // the one way to tell a client that its reply is cut
	}
	refuse(x.c.w, x.complaint(end))
}

// complaint says why there is no reply.
func (x *exchange) complaint(end router.Ending) *router.Refusal {
	said := &router.Refusal{Reason: reasonBroken, Outcome: end.Outcome, Fate: end.Fate,
		Detail: "the exchange with the engine broke off, and the engine may have generated; repeat it only if its fate is Dead"}
	if lost, ok := errors.AsType[*router.Refusal](context.Cause(x.ctx)); ok {
		said.Reason, said.Detail = lost.Reason, "the request was ended while the engine generated: "+lost.Detail
	}
	return said
}

// conclude releases the lease. After an Ambiguous end it waits until the execution's fate is known,
// since whatever the client hears next it may answer by repeating itself.
func (x *exchange) conclude(o router.Outcome, r router.Reply) router.Ending {
	end := x.lease.release(o, r)
	if end.Settled {
		return end
	}
	ctx, stop := context.WithTimeout(x.c.r.Context(), x.h.cfg.Limits.FateWait)
	defer stop()
	if settled, err := x.c.table.AwaitFate(ctx, x.lease.grant.Claim); err == nil {
		end = settled
		x.lease.learns(settled)
	}
	return end
}

// passRefusal passes on a reply that is no success, which is short.
func (x *exchange) passRefusal(resp *http.Response) {
	text, err := io.ReadAll(io.LimitReader(resp.Body, inMemory+1))
	if err != nil || len(text) > inMemory {
		o := router.Ambiguous
		if cutByUs(x.ctx) {
			o = router.Cancelled
		}
		x.tellBroken(x.conclude(o, router.Reply{}))
		return
	}
	o := statusOutcome(resp.StatusCode, text)
	end := x.conclude(o, router.Reply{})
	head := x.c.w.Header()
	passed(resp.Header, head)
	if o == router.Ambiguous && end.Fate != router.FateDead {
		head.Set(shouldRetry, "false")
	}
	if busy := resp.StatusCode == http.StatusTooManyRequests || resp.StatusCode == http.StatusServiceUnavailable; busy && head.Get("Retry-After") == "" {
		head.Set("Retry-After", "1")
	}
	x.c.sizes.reply = int64(len(text))
	x.h.measure(x.c, label(o))
	x.c.w.WriteHeader(resp.StatusCode)
	_, _ = x.c.w.Write(text)
}

package proxy

import (
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/berthmaster/berthmaster/internal/router"
	"github.com/berthmaster/berthmaster/internal/router/steps"
)

// Headers by which a client that knows them says what it belongs to. Without them a request is
// taken under what holds when it arrives, and refused if that is over before it gets its lease.
const (
	epochHeader      = "X-Berthmaster-Epoch"
	generationHeader = "X-Berthmaster-Sender-Generation"
)

// request is what the call asks of the router. Every attempt is a request of its own.
func (h *Handler) request(c *call, f *fields, session router.SessionID) (router.Request, error) {
	st := c.table.Standing(c.sender)
	epoch, err := headerNumber(c, epochHeader, max(1, int64(st.Epoch)))
	if err != nil {
		return router.Request{}, err
	}
	generation, err := headerNumber(c, generationHeader, st.Generation)
	if err != nil {
		return router.Request{}, err
	}
	return router.Request{
		Session: session, Sender: c.sender, SenderGeneration: generation, Epoch: router.Epoch(epoch), Executions: f.executions(),
	}, nil
}

func headerNumber(c *call, name string, otherwise int64) (int64, error) {
	text := c.r.Header.Get(name)
	if text == "" {
		return otherwise, nil
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return 0, &router.Refusal{Reason: router.ReasonInvalid, Field: name, Detail: name + " must be an integer"}
	}
	return n, nil
}

// Why a wait ends without a lease, other than by the client.
var (
	errNoProspect = errors.New("waiting has no prospect")
	errPoolGone   = errors.New("the pool is gone")
	errDeposed    = errors.New("this router has begun with the pool anew")
)

// promised is a grant and when it was asked for: the time by which its start window is counted.
// The zero time stands for one that was waited for, whose window must be opened anew.
type promised struct {
	router.Grant
	asked time.Time
}

// hold returns a lease, waiting for it in the pool's queue as long as that has a prospect. step is told
// of the wait.
func (h *Handler) hold(c *call, r router.Request, step *steps.Step) (promised, error) {
	asked := h.cfg.Clock()
	g, err := h.judged(c, &r, func() (router.Grant, error) { return c.table.Acquire(r, asked) })
	if err == nil {
		return promised{g, asked}, nil
	}
	if !waits(err) || c.table.Prospect(c.sender, asked) == router.ProspectNone {
		return promised{}, err // only a sender of the spec can wait: there are few
	}
	if !c.meter.hold(int64(h.cfg.Limits.HeldPerPool)) {
		return promised{}, &router.Refusal{Reason: router.ReasonContended, Detail: "the proxy holds as many requests of this pool as it may", RetryAfter: time.Second}
	}
	defer c.meter.unhold()
	step.Waits(h.cfg.Clock())
	waited, err := h.wait(c, r)
	if err != nil {
		return waited, err
	}
	if err := h.authorize(c.r, c.place); err != nil { // who may use the sender has changed meanwhile
		_, _ = c.table.Release(waited.Claim, router.NotSent, router.Reply{}, h.cfg.Clock()) // it is this call's own, and new
		return promised{}, err
	}
	return waited, nil
}

// judged acquires by rights that hold when it grants: whoever sent its body for minutes, or waited, may have
// lost them meanwhile.
func (h *Handler) judged(c *call, r *router.Request, acquire func() (router.Grant, error)) (router.Grant, error) {
	for {
		if h.cfg.Authorizer != nil {
			r.Rights = c.table.Rights(c.sender)
		}
		if err := h.authorize(c.r, c.place); err != nil {
			return router.Grant{}, err
		}
		if g, err := acquire(); !errors.Is(err, router.ErrRightsChanged) {
			return g, err
		}
	}
}

// waits reports whether waiting can turn the refusal into a lease.
func waits(err error) bool {
	refusal, ok := errors.AsType[*router.Refusal](err)
	return ok && refusal.RetryAfter > 0
}

func (h *Handler) wait(c *call, r router.Request) (promised, error) {
	ctx, end := context.WithCancelCause(c.r.Context())
	defer end(nil)
	defer h.look(c, end)()
	g, err := h.judged(c, &r, func() (router.Grant, error) { return c.table.AcquireWait(ctx, r, h.cfg.Clock) })
	if err == nil {
		return promised{Grant: g}, nil
	}
	switch cause := context.Cause(ctx); {
	case errors.Is(cause, errPoolGone):
		err = &router.Refusal{Reason: router.ReasonPoolNotFound, Detail: "the pool was removed while the request waited"}
	case errors.Is(cause, errDeposed):
		err = &router.Refusal{Reason: router.ReasonNoLeader, Detail: "this router has begun with the pool anew: ask again", RetryAfter: time.Second}
	case errors.Is(cause, errNoProspect):
		// What stood when the wait began is not what stands now.
		if g, err = h.judged(c, &r, func() (router.Grant, error) { return c.table.Acquire(r, h.cfg.Clock()) }); err == nil {
			return promised{Grant: g}, nil
		}
	}
	return promised{}, err
}

// look looks from time to time whether waiting still has a prospect, until the returned function
// is called.
func (h *Handler) look(c *call, end context.CancelCauseFunc) (stop func()) {
	var again *time.Timer
	ready := make(chan struct{})
	again = time.AfterFunc(h.cfg.Limits.Look, func() {
		<-ready
		switch gone := c.table.Lifetime().Err() != nil; {
		case gone && h.cfg.Pools.Serves(c.pool, c.table):
			end(errDeposed)
		case gone:
			end(errPoolGone)
		case h.prospect(c) == router.ProspectNone:
			end(errNoProspect)
		default:
			again.Reset(h.cfg.Limits.Look)
		}
	})
	close(ready)
	return func() { again.Stop() }
}

// prospect is what a held request may hope for, as of at most half a look ago.
func (h *Handler) prospect(c *call) router.Prospect {
	now := h.cfg.Clock()
	return c.meter.prospect(c.sender, now, h.cfg.Limits.Look/2, func() router.Prospect { return c.table.Prospect(c.sender, now) })
}

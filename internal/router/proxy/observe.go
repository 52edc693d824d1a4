package proxy

import (
	"time"

	"github.com/berthmaster/berthmaster/internal/router"
	"github.com/berthmaster/berthmaster/internal/router/steps"
)

// Observer is told of what the proxy does with its leases, for logs and traces.
type Observer interface {
	// Told is called once per step, after it was decided, from many goroutines; it must not block.
	Told(s *steps.Step)
	// Exchange is the W3C trace context under which a request goes to its engine; empty: that of the
	// client, if it sent one.
	Exchange(pool router.PoolKey, request router.RequestID, traceparent string) string
}

// begin begins a step of a request; nil: nobody observes.
func (h *Handler) begin(kind steps.Kind, c *call, began time.Time) *steps.Step {
	if h.cfg.Observer == nil {
		return nil
	}
	return &steps.Step{Kind: kind, Via: steps.ViaProxy, Pool: c.pool, Sender: c.sender, Began: began, Traceparent: c.r.Header.Get(steps.TraceHeader)}
}

// end tells how a step ended.
func (h *Handler) end(step *steps.Step, claim *router.Claim, err error) {
	if step == nil {
		return
	}
	step.About(claim)
	step.Ends(h.cfg.Clock(), err)
	h.cfg.Observer.Told(step)
}

// tell tells of the exchange, which has ended.
func (x *exchange) tell(step *steps.Step) {
	if step == nil {
		return
	}
	ending := x.lease.ending()
	step.Outcome, step.Fate = ending.Outcome, ending.Fate
	x.h.end(step, &x.lease.grant.Claim, nil)
}

// traced is the context that the engine is told of; empty: none of ours.
func (x *exchange) traced() string {
	if x.h.cfg.Observer == nil {
		return ""
	}
	return x.h.cfg.Observer.Exchange(x.c.pool, x.lease.grant.Claim.Request, x.c.r.Header.Get(steps.TraceHeader))
}

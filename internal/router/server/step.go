package server

import (
	"net/http"

	"github.com/berthmaster/berthmaster/internal/router"
	"github.com/berthmaster/berthmaster/internal/router/steps"
)

// Observer is told of steps, for logs and traces.
type Observer interface {
	// Told is called once per step, after it was decided and before it is answered, from many
	// goroutines; it must not block.
	Told(s *steps.Step)
	// Context is the W3C trace context of a request's lease, for its client to pass on to the engine;
	// empty: it is not traced.
	Context(pool router.PoolKey, request router.RequestID, traceparent string) string
}

// begin begins a step; nil: nobody observes.
func (s *Server) begin(kind steps.Kind, r *http.Request, c *call) *steps.Step {
	if s.observer == nil {
		return nil
	}
	return &steps.Step{
		Kind: kind, Pool: c.pool, Request: router.RequestID(c.id), Began: s.clock(), Traceparent: r.Header.Get(steps.TraceHeader),
	}
}

// end tells how a step ended. claim is that of the lease, as far as it is known.
func (s *Server) end(step *steps.Step, claim *router.Claim, err error) {
	if step == nil {
		return
	}
	step.About(claim)
	step.Ends(s.clock(), err)
	s.observer.Told(step)
}

package server

import (
	"errors"
	"net/http"
	"time"

	"github.com/berthmaster/berthmaster/internal/router"
)

// StepKind is what a call does to a lease.
type StepKind string

// The kinds.
const (
	StepAcquire StepKind = "acquire"
	StepRenew   StepKind = "renew"
	StepRelease StepKind = "release"
)

// Step is one call about one lease that has been answered. What is not known of it is empty: a
// refused acquire has no backend.
type Step struct {
	Kind    StepKind
	Pool    router.PoolKey
	Request router.RequestID
	Session router.SessionID
	Sender  router.SenderName
	Backend router.BackendName
	// Incarnation and RID are those of the lease.
	Incarnation router.Incarnation
	RID         router.RID
	Epoch       router.Epoch
	Term        router.Term
	// Again: an acquire that was given a lease that its id had already.
	Again bool
	// Outcome and Fate are those of a release.
	Outcome router.Outcome
	Fate    router.Fate
	// Reason is why it was refused; empty: it was not.
	Reason       router.Reason
	Began, Ended time.Time
	// WaitBegan is when an acquire that may wait asked for its lease, or a release for its fate; zero:
	// it would not have waited.
	WaitBegan time.Time
	// Traceparent is the W3C trace context that the caller sent; empty: none.
	Traceparent string
}

// Observer is told of steps, for logs and traces.
type Observer interface {
	// Told is called once per step, after it was decided and before it is answered, from many
	// goroutines; it must not block.
	Told(s *Step)
	// Context is the W3C trace context of a request's lease, for its client to pass on to the engine;
	// empty: it is not traced.
	Context(pool router.PoolKey, request router.RequestID, traceparent string) string
}

// TraceHeader is where a caller says its W3C trace context, and TraceAnswerHeader where it is told that
// of the lease (W3C Trace Context, level 2).
const (
	TraceHeader       = "Traceparent"
	TraceAnswerHeader = "Traceresponse"
)

// begin begins a step; nil: nobody observes.
func (s *Server) begin(kind StepKind, r *http.Request, c *call) *Step {
	if s.observer == nil {
		return nil
	}
	return &Step{Kind: kind, Pool: c.pool, Request: router.RequestID(c.id), Began: s.clock(), Traceparent: r.Header.Get(TraceHeader)}
}

// end tells how a step ended. claim is that of the lease, as far as it is known.
func (s *Server) end(step *Step, claim *router.Claim, err error) {
	if step == nil {
		return
	}
	step.about(claim)
	step.Ended = s.clock()
	if err != nil {
		step.Reason = "Internal"
		if refusal, ok := errors.AsType[*router.Refusal](err); ok {
			step.Reason = refusal.Reason
		}
	}
	s.observer.Told(step)
}

// about fills in what a claim says.
func (v *Step) about(c *router.Claim) {
	if c.Request == "" {
		return
	}
	v.Request, v.Session, v.Sender = c.Request, c.Session, c.Sender
	v.Backend, v.Incarnation, v.RID, v.Epoch, v.Term = c.Backend, c.Incarnation, c.RID, c.Epoch, c.Term
}

// asks fills in what an acquire, or a release without a token, says of itself.
func (v *Step) asks(r *router.Request) {
	if v != nil {
		v.Request, v.Session, v.Sender, v.Epoch = r.ID, r.Session, r.Sender, r.Epoch
	}
}

// waits notes that a call begins to wait.
func (v *Step) waits(now time.Time) {
	if v != nil {
		v.WaitBegan = now
	}
}

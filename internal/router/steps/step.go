package steps

import (
	"errors"
	"time"

	"github.com/berthmaster/berthmaster/internal/router"
)

// Kind is what happens to a lease.
type Kind string

// The kinds.
const (
	Acquire Kind = "acquire"
	Renew   Kind = "renew"
	Release Kind = "release"
	// Generate is the exchange with the engine, where it passes through the proxy.
	Generate Kind = "generate"
)

// Via is who holds the lease.
type Via string

// The ways.
const (
	// ViaClient: a client of the lease API.
	ViaClient Via = ""
	// ViaProxy: the transparent proxy, for a client that cannot.
	ViaProxy Via = "proxy"
)

// Step is one step of one lease that has been decided.
type Step struct {
	Kind    Kind
	Via     Via
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
	// Outcome and Fate are those of a release, and of a generation.
	Outcome router.Outcome
	Fate    router.Fate
	// Reason is why it was refused; empty: it was not.
	Reason router.Reason
	// Err is what went wrong in this program, with ReasonInternal.
	Err          error
	Began, Ended time.Time
	// WaitBegan is when an acquire that may wait asked for its lease, or a release for its fate; zero:
	// it would not have waited.
	WaitBegan time.Time
	// Traceparent is the W3C trace context that the caller sent; empty: none.
	Traceparent string
}

// ReasonInternal stands for a refusal that no document knows.
const ReasonInternal router.Reason = "Internal"

// TraceHeader is where a caller says its W3C trace context, and TraceAnswerHeader where it is told that
// of the lease (W3C Trace Context, level 2).
const (
	TraceHeader       = "Traceparent"
	TraceAnswerHeader = "Traceresponse"
)

// About fills in what the claim of a lease says; one of no request says nothing.
func (v *Step) About(c *router.Claim) {
	if v == nil || c.Request == "" {
		return
	}
	v.Request, v.Session, v.Sender = c.Request, c.Session, c.Sender
	v.Backend, v.Incarnation, v.RID, v.Epoch, v.Term = c.Backend, c.Incarnation, c.RID, c.Epoch, c.Term
}

// Asks fills in what an acquire, or a release without a token, says of itself.
func (v *Step) Asks(r *router.Request) {
	if v != nil {
		v.Request, v.Session, v.Sender, v.Epoch = r.ID, r.Session, r.Sender, r.Epoch
	}
}

// Waits notes that a step begins to wait.
func (v *Step) Waits(now time.Time) {
	if v != nil {
		v.WaitBegan = now
	}
}

// Ends notes when and how it was decided; nil: as it was asked.
func (v *Step) Ends(now time.Time, err error) {
	if v == nil {
		return
	}
	v.Ended = now
	if err == nil {
		return
	}
	if refusal, ok := errors.AsType[*router.Refusal](err); ok {
		v.Reason = refusal.Reason
		return
	}
	v.Reason, v.Err = ReasonInternal, err
}

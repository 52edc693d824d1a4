package client

import (
	"errors"
	"fmt"
	"slices"
	"time"
)

// What the router may refuse with; compare with errors.Is.
var (
	// ErrInvalid: the request is malformed; Problem.Field names the part.
	ErrInvalid = errors.New("Invalid")
	// ErrPoolNotFound: there is no such pool, or it is gone.
	ErrPoolNotFound = errors.New("PoolNotFound")
	// ErrRequestConflict: the request id is in use with another identity, or was released otherwise.
	ErrRequestConflict = errors.New("RequestConflict")
	// ErrLeaseEnded: the request id has ended; Problem.Outcome and Fate say how.
	ErrLeaseEnded = errors.New("LeaseEnded")
	// ErrExecutionLost: the lease was not renewed in time, and what ran under it is not known.
	ErrExecutionLost = errors.New("ExecutionLost")
	// ErrLeaseUnknown: the router does not know the lease.
	ErrLeaseUnknown = errors.New("LeaseUnknown")
	// ErrTokenInvalid: the lease token is not one of this pool's.
	ErrTokenInvalid = errors.New("TokenInvalid")
	// ErrUnauthenticated and ErrForbidden: the caller's credentials do not open this.
	ErrUnauthenticated = errors.New("Unauthenticated")
	ErrForbidden       = errors.New("Forbidden")
	// ErrStaleGeneration: the sender's generation is below the pool's minimum, for good.
	ErrStaleGeneration = errors.New("StaleGeneration")
	// ErrStaleEpoch: the pool is in a later epoch; Problem.Epoch says which.
	ErrStaleEpoch = errors.New("StaleEpoch")
	// ErrPoolFailed: the pool has failed and takes no requests until its epoch is raised.
	ErrPoolFailed = errors.New("PoolFailed")
	// ErrSenderUnknown: the pool has no such sender.
	ErrSenderUnknown = errors.New("SenderUnknown")
	// ErrFenced: the sender is fenced for now.
	ErrFenced = errors.New("SenderFenced")
	// ErrHeld: the pool gives no leases for now.
	ErrHeld = errors.New("LeasingHeld")
	// ErrNoBackend: no engine may take the request for now.
	ErrNoBackend = errors.New("NoBackend")
	// ErrContended: a limit of the pool is reached for now.
	ErrContended = errors.New("Contended")
	// ErrNotLeader and ErrNoLeader: the router has no replica that may answer for now.
	ErrNotLeader = errors.New("NotLeader")
	ErrNoLeader  = errors.New("NoLeader")
)

// How an execution may end other than well; compare with errors.Is.
var (
	// ErrNotSent: no byte of the request was written.
	ErrNotSent = errors.New("NotSent")
	// ErrRejected: the engine refused it with a complete reply.
	ErrRejected = errors.New("Rejected")
	// ErrAborted: the engine aborted it and said so.
	ErrAborted = errors.New("Aborted")
	// ErrCancelled: this client cut it.
	ErrCancelled = errors.New("Cancelled")
	// ErrAmbiguous: nobody can say from here how it ended.
	ErrAmbiguous = errors.New("Ambiguous")
)

// ErrUnanswered is wrapped by the error of a call to the router that got no answer in the time
// for which it was repeated.
var ErrUnanswered = errors.New("the router did not answer")

// ErrUntrusted is wrapped beside ErrUnanswered where whoever answers at the router's address shows a
// certificate that the authorities do not vouch for. In a cluster they are in the ConfigMap berthmaster-ca of
// the pool's namespace, for Config.CAFile.
var ErrUntrusted = errors.New("its certificate is not trusted, of which Config.CAFile or Config.TLS decides")

// reasons maps the words on the wire to this package's variables.
func reasons() []error {
	return []error{
		ErrInvalid, ErrPoolNotFound, ErrRequestConflict, ErrLeaseEnded, ErrExecutionLost, ErrLeaseUnknown, ErrTokenInvalid,
		ErrUnauthenticated, ErrForbidden, ErrStaleGeneration, ErrStaleEpoch, ErrPoolFailed, ErrSenderUnknown, ErrFenced,
		ErrHeld, ErrNoBackend, ErrContended, ErrNotLeader, ErrNoLeader,
	}
}

// Problem is a refusal by the router, an RFC 9457 problem document.
type Problem struct {
	Type   string `json:"type"`
	Title  string `json:"title"`
	Status int    `json:"status"`
	Detail string `json:"detail"`
	// Reason is the stable word for the refusal; empty if something else than the router answered.
	Reason string `json:"reason"`
	// Field names the part of the request at fault, with Invalid.
	Field string `json:"field"`
	// Outcome and Fate say how the request ended, with LeaseEnded.
	Outcome Outcome `json:"outcome"`
	Fate    Fate    `json:"fate"`
	// Epoch is the pool's, with StaleEpoch.
	Epoch int64 `json:"epoch"`
	// RetryAfter is how long the router asks to wait; 0 if it does not.
	RetryAfter time.Duration `json:"-"`
}

func (p *Problem) Error() string {
	word := p.Reason
	if word == "" {
		word = fmt.Sprintf("status %d", p.Status)
	}
	if p.Detail == "" {
		return "pool: " + word
	}
	return "pool: " + word + ": " + p.Detail
}

// known reports whether the problem is one of the protocol's. Others are faults: the router's own,
// or of somebody in between.
func (p *Problem) known() bool {
	return slices.ContainsFunc(reasons(), func(reason error) bool { return reason.Error() == p.Reason })
}

// Is matches the variable of the problem's reason.
func (p *Problem) Is(target error) bool {
	for _, known := range reasons() {
		if known == target {
			return known.Error() == p.Reason
		}
	}
	return false
}

// OutcomeError is an execution that did not succeed, after its lease was released.
type OutcomeError struct {
	// Outcome is what was reported to the router: never Succeeded.
	Outcome Outcome
	// Fate is what the router made of it, for Ambiguous and Cancelled; Pending while it is not known.
	Fate Fate
	// Lease is the lease under which it ran. Its AwaitFate waits for a fate that is pending.
	Lease *Lease
	// Status is the engine's HTTP status, 0 if there was no complete reply.
	Status int
	// Message is the engine's own explanation, on one line and bounded; empty if it gave none.
	Message string
	// Err is what went wrong on the way; nil where the engine's reply says it all.
	Err error
	// ReleaseErr is why the release did not reach the router; nil if it did.
	ReleaseErr error
}

func (e *OutcomeError) Error() string {
	text := fmt.Sprintf("request %s on %s: %s", e.Lease.RequestID, e.Lease.Backend.Name, e.Outcome)
	if e.Fate != FateNone {
		text += ", " + string(e.Fate)
	}
	if e.Status != 0 {
		text += fmt.Sprintf(": the engine answered %d", e.Status)
	}
	if e.Message != "" {
		text += ": " + e.Message
	}
	if e.Err != nil {
		text += ": " + e.Err.Error()
	}
	return text
}

// Unwrap gives errors.Is the way to the causes.
func (e *OutcomeError) Unwrap() []error {
	var causes []error
	for _, err := range []error{e.Err, e.ReleaseErr} {
		if err != nil {
			causes = append(causes, err)
		}
	}
	return causes
}

// Is matches the variable of the outcome.
func (e *OutcomeError) Is(target error) bool {
	switch e.Outcome {
	case NotSent:
		return target == ErrNotSent
	case Rejected:
		return target == ErrRejected
	case Aborted:
		return target == ErrAborted
	case Cancelled:
		return target == ErrCancelled
	case Ambiguous:
		return target == ErrAmbiguous
	case Succeeded:
	}
	return false
}

// MayRepeat reports whether the turn may be made again, under a new request id: nothing of it
// runs any more, or will.
func (e *OutcomeError) MayRepeat() bool {
	switch e.Outcome {
	case NotSent, Rejected, Aborted:
		return true
	case Cancelled, Ambiguous:
		return e.Fate == FateDead
	case Succeeded:
	}
	return false
}

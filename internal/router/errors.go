package router

import "time"

// Reason is the stable word by which a refusal is known on the wire (design section 6).
type Reason string

// The reasons the router itself gives. The server adds those of HTTP and authentication.
const (
	ReasonInvalid          Reason = "Invalid"
	ReasonPoolNotFound     Reason = "PoolNotFound"
	ReasonRequestConflict  Reason = "RequestConflict"
	ReasonLeaseEnded       Reason = "LeaseEnded"
	ReasonExecutionLost    Reason = "ExecutionLost"
	ReasonLeaseUnknown     Reason = "LeaseUnknown"
	ReasonTokenInvalid     Reason = "TokenInvalid"
	ReasonStaleGeneration  Reason = "StaleGeneration"
	ReasonStaleEpoch       Reason = "StaleEpoch"
	ReasonPoolFailed       Reason = "PoolFailed"
	ReasonSenderUnknown    Reason = "SenderUnknown"
	ReasonSenderFenced     Reason = "SenderFenced"
	ReasonLeasingHeld      Reason = "LeasingHeld"
	ReasonNoBackend        Reason = "NoBackend"
	ReasonContended        Reason = "Contended"
	ReasonNoLeader         Reason = "NoLeader"
	ReasonSessionUnknown   Reason = "SessionUnknown"
	ReasonSessionForbidden Reason = "Forbidden"
)

// Refusal is every error of this package that a caller of the lease API sees. Two refusals
// are the same to errors.Is when their reasons are.
type Refusal struct {
	Reason Reason
	// Field names the part of the request at fault; empty: none in particular.
	Field string
	// Detail says to a person what is wrong and what to do.
	Detail string
	// Outcome and Fate are set with LeaseEnded and ExecutionLost.
	Outcome Outcome
	Fate    Fate
	// Epoch is the pool's, set with StaleEpoch.
	Epoch Epoch
	// RetryAfter, if positive, is when trying again may help.
	RetryAfter time.Duration
}

func (r *Refusal) Error() string {
	if r.Detail == "" {
		return string(r.Reason)
	}
	return string(r.Reason) + ": " + r.Detail
}

// Is reports whether target is a refusal for the same reason.
func (r *Refusal) Is(target error) bool {
	other, ok := target.(*Refusal)
	return ok && other.Reason == r.Reason
}

// Sentinels for errors.Is.
var (
	ErrInvalid         = &Refusal{Reason: ReasonInvalid}
	ErrPoolNotFound    = &Refusal{Reason: ReasonPoolNotFound}
	ErrRequestConflict = &Refusal{Reason: ReasonRequestConflict}
	ErrLeaseEnded      = &Refusal{Reason: ReasonLeaseEnded}
	ErrExecutionLost   = &Refusal{Reason: ReasonExecutionLost}
	ErrLeaseUnknown    = &Refusal{Reason: ReasonLeaseUnknown}
	ErrTokenInvalid    = &Refusal{Reason: ReasonTokenInvalid}
	ErrStaleGeneration = &Refusal{Reason: ReasonStaleGeneration}
	ErrStaleEpoch      = &Refusal{Reason: ReasonStaleEpoch}
	ErrPoolFailed      = &Refusal{Reason: ReasonPoolFailed}
	ErrSenderUnknown   = &Refusal{Reason: ReasonSenderUnknown}
	ErrSenderFenced    = &Refusal{Reason: ReasonSenderFenced}
	ErrLeasingHeld     = &Refusal{Reason: ReasonLeasingHeld}
	ErrNoBackend       = &Refusal{Reason: ReasonNoBackend}
	ErrContended       = &Refusal{Reason: ReasonContended}
	ErrNoLeader        = &Refusal{Reason: ReasonNoLeader}
	ErrSessionUnknown  = &Refusal{Reason: ReasonSessionUnknown}
)

// retryable says which refusals waiting can turn into a grant, and how long to wait before
// asking again when not waiting in the queue.
func (r Reason) retryable() bool {
	switch r {
	case ReasonSenderFenced, ReasonLeasingHeld, ReasonContended, ReasonNoBackend, ReasonNoLeader:
		return true
	default:
		return false
	}
}

// refuse builds a refusal; those that waiting helps say when to come back.
func refuse(reason Reason, field, detail string) *Refusal {
	r := &Refusal{Reason: reason, Field: field, Detail: detail}
	if reason.retryable() {
		r.RetryAfter = time.Second
	}
	return r
}

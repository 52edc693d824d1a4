package proxy

import (
	"encoding/json"
	"errors"
	"net/http"
	"strconv"

	"github.com/berthmaster/berthmaster/internal/router"
)

// Reasons that are the proxy's own; the rest are the router's.
const (
	reasonNotFound         router.Reason = "NotFound"
	reasonMethodNotAllowed router.Reason = "MethodNotAllowed"
	reasonUnauthenticated  router.Reason = "Unauthenticated"
	reasonTooLarge         router.Reason = "TooLarge"
	reasonUnsupported      router.Reason = "UnsupportedMediaType"
	reasonSpool            router.Reason = "SpoolUnavailable"
	// reasonUnreachable: no engine took the request, and none has it.
	reasonUnreachable router.Reason = "EngineUnreachable"
	// reasonBroken: the exchange broke off, and the engine may have generated.
	reasonBroken router.Reason = "ExchangeBroken"
)

// status is what a refusal is in HTTP, as in the lease protocol.
func status(reason router.Reason) int {
	switch reason {
	case router.ReasonInvalid:
		return http.StatusBadRequest
	case reasonUnauthenticated:
		return http.StatusUnauthorized
	case router.ReasonSenderUnknown, router.ReasonSessionForbidden, router.ReasonTokenInvalid:
		return http.StatusForbidden
	case router.ReasonPoolNotFound, router.ReasonLeaseUnknown, router.ReasonSessionUnknown, reasonNotFound:
		return http.StatusNotFound
	case reasonMethodNotAllowed:
		return http.StatusMethodNotAllowed
	case router.ReasonRequestConflict, router.ReasonLeaseEnded, router.ReasonExecutionLost, router.ReasonStaleGeneration,
		router.ReasonStaleEpoch, router.ReasonPoolFailed:
		return http.StatusConflict
	case reasonTooLarge:
		return http.StatusRequestEntityTooLarge
	case reasonUnsupported:
		return http.StatusUnsupportedMediaType
	case router.ReasonSenderFenced, router.ReasonLeasingHeld:
		return http.StatusLocked
	case router.ReasonContended:
		return http.StatusTooManyRequests
	case reasonBroken:
		return http.StatusBadGateway
	default: // NoBackend, NoLeader and what else passes
		return http.StatusServiceUnavailable
	}
}

// problem is an RFC 9457 document with a member error, where the libraries of the OpenAI API look
// for an explanation.
type problem struct {
	Type    string         `json:"type"`
	Title   string         `json:"title"`
	Status  int            `json:"status"`
	Detail  string         `json:"detail,omitempty"`
	Reason  router.Reason  `json:"reason"`
	Field   string         `json:"field,omitempty"`
	Outcome router.Outcome `json:"outcome,omitempty"`
	Fate    router.Fate    `json:"fate,omitempty"`
	Epoch   router.Epoch   `json:"epoch,omitempty"`
	Error   problemError   `json:"error"`
}

type problemError struct {
	Message string        `json:"message"`
	Type    string        `json:"type"`
	Code    router.Reason `json:"code"`
}

// refuse answers with a problem document. An error that is no refusal shows nothing of itself.
func refuse(w http.ResponseWriter, err error) {
	refusal, ok := errors.AsType[*router.Refusal](err)
	if !ok {
		refusal = &router.Refusal{Reason: reasonSpool, Detail: "the proxy cannot hold the request"}
	}
	p := problem{
		Type: "about:blank", Status: status(refusal.Reason), Detail: refusal.Detail, Reason: refusal.Reason, Field: refusal.Field,
		Outcome: refusal.Outcome, Fate: refusal.Fate, Epoch: refusal.Epoch,
		Error: problemError{Message: refusal.Error(), Type: "berthmaster", Code: refusal.Reason},
	}
	p.Title = http.StatusText(p.Status)
	text, _ := json.Marshal(p) // strings and numbers: it cannot fail
	head := w.Header()
	head.Set("Content-Type", "application/problem+json")
	if refusal.RetryAfter > 0 {
		head.Set("Retry-After", strconv.Itoa(int(max(1, refusal.RetryAfter.Seconds()))))
	}
	if !mayRepeat(refusal) {
		head.Set(shouldRetry, "false")
	}
	w.WriteHeader(p.Status)
	_, _ = w.Write(append(text, '\n'))
}

// shouldRetry is the header by which a server tells the official clients not to repeat a request
// that they would repeat by themselves.
const shouldRetry = "X-Should-Retry"

// mayRepeat reports whether repeating the request can help and does no harm.
func mayRepeat(r *router.Refusal) bool {
	switch {
	case r.Reason == reasonBroken:
		return r.Fate == router.FateDead
	case r.Reason == router.ReasonStaleEpoch, r.Reason == reasonUnreachable, r.Reason == reasonSpool:
		return true
	default:
		return r.RetryAfter > 0
	}
}

// refuse answers and counts.
func (h *Handler) refuse(c *call, err error) {
	refuse(c.w, err)
	h.measure(c, labelRefused)
}

package proxy

import (
	"cmp"
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
	// reasonAuthUnavailable: it cannot be told who the caller is, or what it may do.
	reasonAuthUnavailable router.Reason = "AuthenticationUnavailable"
	reasonTooLarge        router.Reason = "TooLarge"
	reasonUnsupported     router.Reason = "UnsupportedMediaType"
	reasonSpool           router.Reason = "SpoolUnavailable"
	// reasonTimeout: the request stopped coming before it was whole.
	reasonTimeout router.Reason = "RequestTimeout"
	// reasonUnreachable: no engine took the request, and none has it.
	reasonUnreachable router.Reason = "EngineUnreachable"
	// reasonBroken: the exchange broke off, and the engine may have generated.
	reasonBroken router.Reason = "ExchangeBroken"
	// reasonUnreadable: an engine answered what the proxy cannot pass on a part of.
	reasonUnreadable router.Reason = "EngineReplyUnreadable"
	// reasonControl: a control call was not done by every engine.
	reasonControl router.Reason = "ControlFailed"
)

// statuses are what reasons are in HTTP, as in the lease protocol.
func statuses() map[router.Reason]int {
	return map[router.Reason]int{
		router.ReasonInvalid:          http.StatusBadRequest,
		reasonUnauthenticated:         http.StatusUnauthorized,
		reasonAuthUnavailable:         http.StatusServiceUnavailable,
		router.ReasonSenderUnknown:    http.StatusForbidden,
		router.ReasonSessionForbidden: http.StatusForbidden,
		router.ReasonPoolNotFound:     http.StatusNotFound,
		reasonNotFound:                http.StatusNotFound,
		reasonMethodNotAllowed:        http.StatusMethodNotAllowed,
		router.ReasonRequestConflict:  http.StatusConflict,
		router.ReasonLeaseEnded:       http.StatusConflict,
		router.ReasonExecutionLost:    http.StatusConflict,
		router.ReasonStaleGeneration:  http.StatusConflict,
		router.ReasonStaleEpoch:       http.StatusConflict,
		router.ReasonPoolFailed:       http.StatusConflict,
		reasonTimeout:                 http.StatusRequestTimeout,
		reasonTooLarge:                http.StatusRequestEntityTooLarge,
		reasonUnsupported:             http.StatusUnsupportedMediaType,
		router.ReasonSenderFenced:     http.StatusLocked,
		router.ReasonLeasingHeld:      http.StatusLocked,
		router.ReasonContended:        http.StatusTooManyRequests,
		reasonBroken:                  http.StatusBadGateway,
		reasonControl:                 http.StatusBadGateway,
		reasonUnreadable:              http.StatusBadGateway,
		router.ReasonNoBackend:        http.StatusServiceUnavailable,
		router.ReasonNoLeader:         http.StatusServiceUnavailable,
		reasonUnreachable:             http.StatusServiceUnavailable,
		reasonSpool:                   http.StatusServiceUnavailable,
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
		Type: "about:blank", Status: cmp.Or(statuses()[refusal.Reason], http.StatusServiceUnavailable), Detail: refusal.Detail, Reason: refusal.Reason, Field: refusal.Field,
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
	if p.Status == http.StatusUnauthorized {
		head.Set("WWW-Authenticate", "Bearer")
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
	switch r.Reason {
	case reasonBroken:
		return r.Fate == router.FateDead
	case router.ReasonStaleEpoch, reasonUnreachable, reasonSpool, reasonTimeout:
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

package server

import (
	"net/http"

	"github.com/berthmaster/berthmaster/internal/router"
)

// The reasons that belong to HTTP; the rest are the router's.
const (
	// ReasonUnauthenticated: the caller did not say who it is.
	ReasonUnauthenticated router.Reason = "Unauthenticated"
	// ReasonAuthenticationUnavailable: it cannot be told who the caller is, or what it may do.
	ReasonAuthenticationUnavailable router.Reason = "AuthenticationUnavailable"
	// ReasonForbidden: the caller may not do this.
	ReasonForbidden = router.ReasonSessionForbidden
	// ReasonNotFound: no call has this path.
	ReasonNotFound router.Reason = "NotFound"
	// ReasonMethodNotAllowed: the path has other methods.
	ReasonMethodNotAllowed router.Reason = "MethodNotAllowed"
)

// meaning is what a reason is on the wire.
type meaning struct {
	status int
	// title says to a person what the reason means in general; the detail says what it
	// means here.
	title string
}

// meanings is the one table from a reason to its HTTP status. A reason is at the same time the
// label of the metrics that count refusals, so the keys are the complete list of those.
func meanings() map[router.Reason]meaning {
	return map[router.Reason]meaning{
		router.ReasonInvalid:         {http.StatusBadRequest, "The request is not well-formed."},
		router.ReasonPoolNotFound:    {http.StatusNotFound, "There is no such pool."},
		router.ReasonRequestConflict: {http.StatusConflict, "The id is in use for something else."},
		router.ReasonLeaseEnded:      {http.StatusConflict, "The request of this id has ended."},
		router.ReasonExecutionLost:   {http.StatusConflict, "Nobody answers for the execution of this id any more."},
		router.ReasonLeaseUnknown:    {http.StatusNotFound, "There is no such lease."},
		router.ReasonTokenInvalid:    {http.StatusForbidden, "The token is not one of this router."},
		router.ReasonStaleGeneration: {http.StatusConflict, "The sender's generation is over."},
		router.ReasonStaleEpoch:      {http.StatusConflict, "The epoch is not the pool's."},
		router.ReasonPoolFailed:      {http.StatusConflict, "The pool has failed."},
		router.ReasonSenderUnknown:   {http.StatusForbidden, "The pool has no such sender."},
		router.ReasonSenderFenced:    {http.StatusLocked, "The sender is fenced."},
		router.ReasonLeasingHeld:     {http.StatusLocked, "Leasing is held."},
		router.ReasonNoBackend:       {http.StatusServiceUnavailable, "No backend is admissible."},
		router.ReasonContended:       {http.StatusTooManyRequests, "There is no room for more."},
		router.ReasonNoLeader:        {http.StatusServiceUnavailable, "No router may answer for the pool now."},
		ReasonNotLeader:              {http.StatusMisdirectedRequest, "This replica does not lead."},
		router.ReasonSessionUnknown:  {http.StatusNotFound, "There is no such session."},
		ReasonForbidden:              {http.StatusForbidden, "The caller may not do this."},
		ReasonUnauthenticated:        {http.StatusUnauthorized, "The caller is not authenticated."},

		ReasonAuthenticationUnavailable: {http.StatusServiceUnavailable, "It cannot be told who the caller is."},

		ReasonNotFound:         {http.StatusNotFound, "There is no such call."},
		ReasonMethodNotAllowed: {http.StatusMethodNotAllowed, "The path has other methods."},
	}
}

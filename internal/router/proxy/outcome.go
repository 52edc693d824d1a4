package proxy

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"syscall"

	"github.com/berthmaster/berthmaster/internal/router"
	"github.com/berthmaster/berthmaster/internal/router/proxy/wire"
)

// Why the proxy itself ends an exchange.
var (
	// errClientGone: the client has hung up, or cannot be written to.
	errClientGone = errors.New("the client has gone")
	// errLeaseOver: the router answers for the execution no more, or its epoch is over.
	errLeaseOver = errors.New("the lease is over")
	// errSilent: nothing came for longer than Limits.Silence.
	errSilent = errors.New("the engine was silent for too long")
)

// failureOutcome is the outcome of an exchange that broke before its reply was complete.
func failureOutcome(ctx context.Context, err error) router.Outcome {
	switch {
	case wire.WrittenOf(err) == wire.NoByte:
		return router.NotSent
	case cutByUs(ctx):
		return router.Cancelled
	default:
		return router.Ambiguous
	}
}

// cutByUs reports whether the exchange was cut for the client's sake or the lease's, and not
// because of anything that the engine did or left undone.
func cutByUs(ctx context.Context) bool {
	cause := context.Cause(ctx)
	return cause != nil && !errors.Is(cause, errSilent)
}

// nobodyListens reports whether err says that no connection can be made to the engine. A proxy
// that has run out of its own means proves nothing about engines.
func nobodyListens(err error) bool {
	return errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, syscall.EHOSTUNREACH) || errors.Is(err, context.DeadlineExceeded)
}

// The engine's words in replies that are told apart by them.
var (
	duplicate = []byte("duplicate") // of a rid, in the several wordings of several releases
	queueFull = []byte("queue is full")
)

// statusOutcome is the outcome of a complete reply with a status other than 2xx (design 5.2): a
// short list of refusals, and uncertainty for everything else.
func statusOutcome(status int, body []byte) router.Outcome {
	switch status {
	case http.StatusUnauthorized, http.StatusForbidden, http.StatusNotFound, http.StatusRequestEntityTooLarge, http.StatusTooManyRequests:
		return router.Rejected
	case http.StatusBadRequest:
		if !bytes.Contains(bytes.ToLower(body), duplicate) {
			return router.Rejected
		}
	case http.StatusServiceUnavailable:
		if bytes.Contains(body, queueFull) {
			return router.Rejected
		}
	}
	return router.Ambiguous
}

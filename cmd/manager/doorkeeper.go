package main

import (
	"context"
	"net/http"

	"github.com/berthmaster/berthmaster/internal/access"
	"github.com/berthmaster/berthmaster/internal/door"
	"github.com/berthmaster/berthmaster/internal/router"
)

// doorkeeper is a gate that tells the door of a port whom it lets in.
type doorkeeper struct{ gate *access.Gate }

// Authorize is the gate's.
func (k doorkeeper) Authorize(r *http.Request, pool router.PoolKey, sender router.SenderName) error {
	return letIn(r, k.gate.Authorize(r, pool, sender))
}

// Authenticate is the gate's.
func (k doorkeeper) Authenticate(r *http.Request) error { return letIn(r, k.gate.Authenticate(r)) }

// Admit is the gate's.
func (k doorkeeper) Admit(r *http.Request, pool router.PoolKey, sender router.SenderName) (func(context.Context) error, error) {
	still, err := k.gate.Admit(r, pool, sender)
	return still, letIn(r, err)
}

// letIn passes on what a judgement came to.
func letIn(r *http.Request, err error) error {
	if err == nil {
		door.LetIn(r.Context())
	}
	return err
}

// welcomed tells the door of whoever gets as far as next.
func welcomed(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		door.LetIn(r.Context())
		next.ServeHTTP(w, r)
	})
}

// watched has a server tell a door what becomes of connections. Those whose callers a gate judges, if it is not nil,
// are at work only once they have been let in.
func watched(s *http.Server, d *door.Door, gate *access.Gate) {
	if s.ConnState = d.Watch; gate != nil {
		s.ConnState, s.ConnContext = d.WatchJudged, d.Context
	}
}

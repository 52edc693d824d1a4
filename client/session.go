package client

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"sync"
)

// SessionConfig names a trajectory and the sender it belongs to.
type SessionConfig struct {
	// ID is the session's, [A-Za-z0-9][A-Za-z0-9._-]{0,127}.
	ID string
	// Sender is the class of clients as which it asks, and SenderGeneration that sender's generation.
	Sender           string
	SenderGeneration int64
	// Epoch is the pool's epoch as the caller knows it.
	Epoch int64
	// Group is the group of sibling sessions; empty is none.
	Group string
	// LastBackend is where the session was, if it is taken up again after this process or the
	// router restarted; the zero value if that is not known.
	LastBackend Backend
}

// Session is one trajectory. It is safe for concurrent use; parallel branches share its engine.
type Session struct {
	pool   *Pool
	config SessionConfig

	mu   sync.Mutex
	last Backend // guarded by mu; where the latest lease was
}

// Session begins a trajectory. Nothing is sent until its first request.
func (p *Pool) Session(config SessionConfig) *Session {
	return &Session{pool: p, config: config, last: config.LastBackend}
}

// LastBackend is where the session's latest lease was, the zero value before the first.
func (s *Session) LastBackend() Backend {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.last
}

// Close tells the router that the trajectory is over. It is idempotent.
func (s *Session) Close(ctx context.Context) error {
	return s.pool.EndSession(ctx, s.config.ID, s.config.Sender)
}

// EndSession tells the router that a sender's session is over. It is idempotent.
func (p *Pool) EndSession(ctx context.Context, id, sender string) error {
	err := p.repeat(ctx, call{
		method: http.MethodDelete,
		path:   "/sessions/" + url.PathEscape(id) + "?" + url.Values{"sender": {sender}}.Encode(),
	}, nil)
	if err != nil {
		return fmt.Errorf("end session %s: %w", id, err)
	}
	return nil
}

// acquire asks for a lease on behalf of the session and remembers where it is.
func (s *Session) acquire(ctx context.Context, requestID string, r Request) (*Lease, error) {
	lease, err := s.pool.Acquire(ctx, AcquireRequest{
		RequestID: requestID, SessionID: s.config.ID, Sender: s.config.Sender,
		SenderGeneration: s.config.SenderGeneration, Epoch: s.config.Epoch, Group: s.config.Group,
		Executions: r.Executions, Wait: r.Wait, LastBackend: s.LastBackend(),
	})
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last = Backend{Name: lease.Backend.Name, Incarnation: lease.Backend.Incarnation}
	return lease, nil
}

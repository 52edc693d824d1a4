package server

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/berthmaster/berthmaster/internal/router"
)

// Server serves the lease protocol of every pool in a registry. It is an http.Handler; Start
// also listens. What it remembers beyond the calls under way are the histories of watched
// pools; Close ends those.
type Server struct {
	pools       *router.Pools
	authorizer  Authorizer
	hosts       []string
	clock       func() time.Time
	log         *slog.Logger
	limits      Limits
	bindAddress string
	leadership  Leadership
	observer    Observer
	toLeader    *http.Transport
	crossOrigin *http.CrossOriginProtection
	meanings    map[router.Reason]meaning
	byPath      map[string]route
	forms       forms
	desks       desks

	tokens   atomic.Pointer[tokens]
	waiters  *crowd
	watchers *crowd
	listings *crowd
	large    *room
	feeds    *feeds
	// stopping is done once no call may wait any longer.
	stopping context.Context
	stop     context.CancelFunc
}

// New makes a Server; an error names the field of the Config that cannot be used.
func New(c Config) (*Server, error) {
	if err := c.Validate(); err != nil {
		return nil, fmt.Errorf("lease API: %w", err)
	}
	s := &Server{
		pools: c.Pools, authorizer: c.Authorizer, hosts: c.Hosts, clock: c.Clock, log: c.Log, limits: c.Limits.withDefaults(), observer: c.Observer,
		bindAddress: cmp.Or(c.BindAddress, defaultBindAddress), crossOrigin: http.NewCrossOriginProtection(),
		meanings: meanings(), forms: newForms(),
	}
	if s.leadership = c.Leadership; s.leadership == nil {
		s.leadership = alone{}
	}
	s.toLeader = newLeaderTransport(c.DialLeader)
	if s.clock == nil {
		s.clock = time.Now
	}
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	s.waiters = newCrowd(s.limits.WaitersPerPool)
	s.stopping, s.stop = context.WithCancel(context.Background())
	s.watchers = newCrowd(s.limits.WatchersPerPool)
	s.listings = newCrowd(listingsPerPool)
	s.large = newRoom(s.limits.LargeBytes)
	s.desks = newDesks(s.large)
	s.feeds = newFeeds(s.limits, s.clock)
	s.byPath = s.routes()
	return s, s.Rotate(c.Keys)
}

// Rotate takes other keys into use for every call from now on.
func (s *Server) Rotate(k Keys) error {
	t, err := newTokens(k)
	if err != nil {
		return fmt.Errorf("lease API: %w", err)
	}
	s.tokens.Store(t)
	return nil
}

// NeedLeaderElection says that every replica serves.
func (s *Server) NeedLeaderElection() bool { return false }

// Start listens on the configured address and serves until ctx is done.
func (s *Server) Start(ctx context.Context) error {
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", s.bindAddress)
	if err != nil {
		return fmt.Errorf("lease API: %w", err)
	}
	return s.Serve(ctx, l)
}

// Serve serves on l, which it closes, until ctx is done. Then calls that wait are answered,
// and those under way may end within Limits.Shutdown. It refuses a listener beyond loopback
// unless there is an Authorizer.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	if host, _, err := net.SplitHostPort(l.Addr().String()); s.authorizer == nil && (err != nil || !loopback(host)) {
		_ = l.Close()
		return fmt.Errorf("lease API: listener %s is beyond loopback, and no Authorizer is configured", l.Addr())
	}
	h := s.HTTPServer()
	h.Handler = http.HandlerFunc(s.addressed)
	served := make(chan error, 1)
	go func() { served <- h.Serve(l) }()
	s.log.Info("lease API: serving", "address", l.Addr().String())
	select {
	case err := <-served:
		s.Close()
		return fmt.Errorf("lease API: %w", err)
	case <-ctx.Done():
	}
	err := s.shutdown(context.WithoutCancel(ctx), h)
	if ended := <-served; !errors.Is(ended, http.ErrServerClosed) {
		err = errors.Join(err, ended)
	}
	return err
}

// HTTPServer returns a server with the configured limits, for those who listen by themselves. Its handler may be
// wrapped; without an Authorizer whoever serves it asks Addressed first.
func (s *Server) HTTPServer() *http.Server {
	return &http.Server{
		Handler: s, MaxHeaderBytes: s.limits.HeaderBytes, ReadTimeout: s.limits.Read, WriteTimeout: s.limits.Write,
		IdleTimeout: s.limits.Idle, ErrorLog: Complaints(s.log),
	}
}

// shutdown answers those who wait, then lets calls end; ones that do not are cut.
func (s *Server) shutdown(ctx context.Context, h *http.Server) error {
	s.Close()
	ctx, cancel := context.WithTimeout(ctx, s.limits.Shutdown)
	defer cancel()
	err := h.Shutdown(ctx)
	if errors.Is(err, context.DeadlineExceeded) {
		s.log.Warn("lease API: calls did not end in time and were cut")
		return h.Close()
	}
	return err
}

// Close ends all waiting: acquires and releases that wait are answered NoLeader, and watch
// streams end. Calls that need not wait are still answered.
func (s *Server) Close() {
	s.stop()
	s.feeds.close()
	s.toLeader.CloseIdleConnections()
}

func (s *Server) authorize(r *http.Request, pool router.PoolKey, sender router.SenderName) error {
	if s.authorizer == nil {
		return nil
	}
	return s.authorizer.Authorize(r, pool, sender)
}

package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/berthmaster/berthmaster/internal/access"
	"github.com/berthmaster/berthmaster/internal/door"
	"github.com/berthmaster/berthmaster/internal/livepage"
	"github.com/berthmaster/berthmaster/internal/router/proxy"
	"github.com/berthmaster/berthmaster/internal/router/server"
)

// drainTime is how long calls under way may take once the manager ends; generations that the proxy
// passes on are cut after it.
const drainTime = 10 * time.Second

// errStarting is what /readyz says until the lease API answers.
var errStarting = errors.New("the lease API does not answer yet")

// leaseAPI serves leases, and beside them the proxy, once the pools are known. Until then callers are kept waiting in the
// socket's queue: to be refused, or told that their pool does not exist, would look final to them.
type leaseAPI struct {
	tls     *tls.Config // nil: without
	door    *door.Door
	gate    *access.Gate // nil: nobody is judged
	address string
	leases  *server.Server
	proxy   http.Handler
	// meter is the proxy, for whoever tells what it counted.
	meter *proxy.Handler
	page  http.Handler
	// observing is told of calls about leases; nil: nobody is.
	observing  *observers
	poolsKnown func(context.Context) error
	answers    atomic.Bool
}

// newLeaseAPI serves calls and, beside them, path, both guarded.
func newLeaseAPI(log logr.Logger, o *options, calls server.Config, path proxy.Config, guard *security, poolsKnown func(context.Context) error) (*leaseAPI, error) {
	l := &leaseAPI{address: o.leaseAddress, tls: guard.tls(o.leaseAddress), door: guard.doors.leases, gate: guard.gate, page: livepage.New(), poolsKnown: poolsKnown}
	calls.Hosts = o.hosts()
	calls.BindAddress, calls.Log = o.leaseAddress, slog.New(logr.ToSlogHandler(log.WithName("leases")))
	var err error
	if l.observing, err = newObservers(&o.tracing, calls.Log); err != nil {
		return nil, err
	}
	calls.Observer, path.Observer = l.observing, l.observing
	if guard.gate != nil {
		keeper := doorkeeper{guard.gate}
		calls.Authorizer, path.Authorizer = keeper, keeper
	}
	if l.tls != nil {
		calls.DialLeader = guard.holder.Dial(guard.name)
	}
	if l.leases, err = server.New(calls); err != nil {
		return nil, err
	}
	transparent, err := proxy.New(path)
	if err != nil {
		return nil, err
	}
	l.proxy, l.meter = l.observing.around(transparent), transparent
	return l, nil
}

// ServeHTTP gives a call to the proxy if its path is the proxy's, to the page to look at if it is the
// page's, else to the lease API.
func (l *leaseAPI) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !l.leases.Addressed(w, r) {
		return
	}
	if proxy.Matches(r.URL.Path) {
		if l.leases.AnswersHere(w, r) {
			l.proxy.ServeHTTP(w, r)
		}
		return
	}
	if livepage.Matches(r) {
		server.Hurry(w, r, server.UnreadTime)
		l.page.ServeHTTP(w, r)
		return
	}
	l.leases.ServeHTTP(w, r)
}

// Start serves until ctx ends.
func (l *leaseAPI) Start(ctx context.Context) error {
	var lc net.ListenConfig
	listener, err := lc.Listen(ctx, "tcp", l.address)
	if err != nil {
		return fmt.Errorf("lease API: %w", err)
	}
	err = l.poolsKnown(ctx)
	switch {
	case ctx.Err() != nil:
		return listener.Close()
	case err != nil:
		_ = listener.Close() // nobody has been answered
		return fmt.Errorf("lease API: %w", err)
	}
	l.answers.Store(true)
	serving, over := context.WithCancel(ctx)
	var beside sync.WaitGroup
	beside.Go(func() { l.leases.Chronicle(serving) })
	err = l.serve(ctx, listener)
	over()
	beside.Wait()
	return err
}

// serve answers on listener, which it closes, until ctx ends. Then those who wait for a lease are
// answered, and calls under way may end within drainTime.
func (l *leaseAPI) serve(ctx context.Context, listener net.Listener) error {
	endpoint := l.leases.HTTPServer()
	endpoint.Handler = l
	watched(endpoint, l.door, l.gate)
	served := make(chan error, 1)
	go func() { served <- endpoint.Serve(behind(l.door, listener, l.tls, endpoint.ErrorLog)) }()
	select {
	case err := <-served:
		l.leases.Close()
		return fmt.Errorf("lease API: %w", err)
	case <-ctx.Done():
	}
	l.leases.Close()
	late, cancel := context.WithTimeout(context.WithoutCancel(ctx), drainTime)
	defer cancel()
	err := endpoint.Shutdown(late)
	if errors.Is(err, context.DeadlineExceeded) {
		err = endpoint.Close()
	}
	if ended := <-served; !errors.Is(ended, http.ErrServerClosed) {
		err = errors.Join(err, ended)
	}
	return errors.Join(err, l.observing.close())
}

// addTo has the manager run the lease API.
func (l *leaseAPI) addTo(manager ctrl.Manager) error {
	if err := manager.Add(l); err != nil {
		return fmt.Errorf("set up the lease API: %w", err)
	}
	return nil
}

func (l *leaseAPI) check(*http.Request) error {
	if !l.answers.Load() {
		return errStarting
	}
	return nil
}

package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/healthz"

	"github.com/berthmaster/berthmaster/internal/livepage"
	"github.com/berthmaster/berthmaster/internal/router"
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
	address string
	leases  *server.Server
	proxy   http.Handler
	// meter is the proxy, for whoever tells what it counted.
	meter      *proxy.Handler
	page       http.Handler
	poolsKnown func(context.Context) error
	answers    atomic.Bool
}

func newLeaseAPI(manager ctrl.Manager, pools *router.Pools, o *options, keys server.Keys, leadership server.Leadership, settings func(router.PoolKey) proxy.Settings, poolsKnown func(context.Context) error) (*leaseAPI, error) {
	api, err := server.New(server.Config{
		Pools: pools, Keys: keys, BindAddress: o.leaseAddress, Leadership: leadership,
		Log: slog.New(logr.ToSlogHandler(manager.GetLogger().WithName("leases"))),
	})
	if err != nil {
		return nil, err
	}
	transparent, err := proxy.New(proxy.Config{Pools: pools, Settings: settings})
	if err != nil {
		return nil, err
	}
	return &leaseAPI{address: o.leaseAddress, leases: api, proxy: transparent, meter: transparent, page: livepage.New(), poolsKnown: poolsKnown}, nil
}

// ServeHTTP gives a call to the proxy if its path is the proxy's, to the page to look at if it is the
// page's, else to the lease API.
func (l *leaseAPI) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if proxy.Matches(r.URL.Path) {
		if l.leases.AnswersHere(w, r) {
			l.proxy.ServeHTTP(w, r)
		}
		return
	}
	if livepage.Matches(r) {
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
	return l.serve(ctx, listener)
}

// serve answers on listener, which it closes, until ctx ends. Then those who wait for a lease are
// answered, and calls under way may end within drainTime.
func (l *leaseAPI) serve(ctx context.Context, listener net.Listener) error {
	endpoint := l.leases.HTTPServer()
	endpoint.Handler = l
	served := make(chan error, 1)
	go func() { served <- endpoint.Serve(listener) }()
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
	return err
}

// addTo has the manager run the lease API and answer /healthz while the process runs and /readyz once
// leases are served.
func (l *leaseAPI) addTo(manager ctrl.Manager) error {
	if err := manager.Add(l); err != nil {
		return fmt.Errorf("set up the lease API: %w", err)
	}
	if err := manager.AddHealthzCheck("running", healthz.Ping); err != nil {
		return fmt.Errorf("set up /healthz: %w", err)
	}
	if err := manager.AddReadyzCheck("leases", l.check); err != nil {
		return fmt.Errorf("set up /readyz: %w", err)
	}
	return nil
}

func (l *leaseAPI) check(*http.Request) error {
	if !l.answers.Load() {
		return errStarting
	}
	return nil
}

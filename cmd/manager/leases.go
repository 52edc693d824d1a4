package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync/atomic"

	"github.com/go-logr/logr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/healthz"

	"github.com/berthmaster/berthmaster/internal/router"
	"github.com/berthmaster/berthmaster/internal/router/server"
)

// errStarting is what /readyz says until the lease API answers.
var errStarting = errors.New("the lease API does not answer yet")

// leaseAPI serves leases once the pools are known. Until then callers are kept waiting in the
// socket's queue: to be refused, or told that their pool does not exist, would look final to them.
type leaseAPI struct {
	address    string
	server     *server.Server
	poolsKnown func(context.Context) error
	answers    atomic.Bool
}

func newLeaseAPI(manager ctrl.Manager, pools *router.Pools, o *options, poolsKnown func(context.Context) error) (*leaseAPI, error) {
	keys, err := o.tokenKeys()
	if err != nil {
		return nil, err
	}
	api, err := server.New(server.Config{
		Pools: pools, Keys: keys, BindAddress: o.leaseAddress,
		Log: slog.New(logr.ToSlogHandler(manager.GetLogger().WithName("leases"))),
	})
	if err != nil {
		return nil, err
	}
	return &leaseAPI{address: o.leaseAddress, server: api, poolsKnown: poolsKnown}, nil
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
	return l.server.Serve(ctx, listener)
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

package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/healthz"
)

// probeEndpoint answers the kubelet: /healthz while the process runs, /readyz once leases are served. It tells
// nothing else, and so nobody is asked who they are.
type probeEndpoint struct {
	address string
	tls     *tls.Config // nil: without
	ready   healthz.Checker
}

// NeedLeaderElection says that every replica is probed.
func (probeEndpoint) NeedLeaderElection() bool { return false }

// Start serves until ctx ends.
func (p probeEndpoint) Start(ctx context.Context) error {
	var lc net.ListenConfig
	listener, err := lc.Listen(ctx, "tcp", p.address)
	if err != nil {
		return fmt.Errorf("probes: %w", err)
	}
	const patience = 10 * time.Second
	server := &http.Server{
		Handler: p.handler(), ReadTimeout: patience, WriteTimeout: patience, IdleTimeout: time.Minute, MaxHeaderBytes: 8 << 10,
	}
	stopped := context.AfterFunc(ctx, func() { _ = server.Close() })
	defer stopped()
	if err := server.Serve(secured(listener, p.tls)); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("probes: %w", err)
	}
	return nil
}

func (p probeEndpoint) handler() http.Handler {
	mux := http.NewServeMux()
	for path, check := range map[string]map[string]healthz.Checker{"/healthz": {"running": healthz.Ping}, "/readyz": {"leases": p.ready}} {
		handler := http.StripPrefix(path, &healthz.Handler{Checks: check})
		mux.Handle(path, handler)
		mux.Handle(path+"/", handler)
	}
	return mux
}

// secured is the listener with TLS, if there is a configuration.
func secured(l net.Listener, c *tls.Config) net.Listener {
	if c == nil {
		return l
	}
	return tls.NewListener(l, c)
}

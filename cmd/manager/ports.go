package main

import (
	"context"
	"crypto/tls"
	"errors"
	"flag"
	"fmt"
	"log"
	"log/slog"
	"net"
	"net/http"
	"syscall"
	"time"

	"github.com/go-logr/logr"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/berthmaster/berthmaster/internal/access"
	"github.com/berthmaster/berthmaster/internal/door"
	"github.com/berthmaster/berthmaster/internal/metrics"
	"github.com/berthmaster/berthmaster/internal/router/server"
)

const (
	// mostConnections is how many the lease port takes where nobody says otherwise: every waiter of a pool and some
	// more, at 40 KiB each by TLS.
	mostConnections = 20480
	// smallConnections is how many the ports of metrics and probes take each: those of their few callers.
	smallConnections = 256
	// otherFiles are kept for everything that is no client's connection.
	otherFiles = 1024
)

// portOptions are the flags about how much may come in.
type portOptions struct {
	connections int
}

func (o *portOptions) bind(flags *flag.FlagSet) {
	flags.IntVar(&o.connections, "max-connections", 0,
		"how many connections the lease API and the proxy have at once; beyond it a newcomer takes the place of an idle one, of the address with the most, or is closed; "+
			"0: 20480, or half of the files that the process may open if that is less, since a call through the proxy needs others")
}

// room is how many connections the lease port has, in a process that may open so many files.
func (o *portOptions) room(files uint64) (int, error) {
	switch {
	case o.connections < 0:
		return 0, fmt.Errorf("--max-connections=%d is negative", o.connections)
	case o.connections == 0:
		return int(max(1, min(mostConnections, files/2))), nil
	case uint64(o.connections)+otherFiles > files:
		return 0, fmt.Errorf("--max-connections=%d: this process may open %d files (RLIMIT_NOFILE), of which it needs %d for other things", o.connections, files, otherFiles)
	}
	return o.connections, nil
}

// openFiles is how many files this process may open. The Go runtime has raised it to what it can be.
func openFiles() (uint64, error) {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return 0, fmt.Errorf("how many files may be open: %w", err)
	}
	return limit.Cur, nil
}

// doors are those of the ports.
type doors struct{ leases, metrics, probes *door.Door }

func newDoors(o *portOptions) (doors, error) {
	files, err := openFiles()
	if err != nil {
		return doors{}, err
	}
	room, err := o.room(files)
	if err != nil {
		return doors{}, err
	}
	return doors{leases: door.New(room), metrics: door.New(smallConnections), probes: door.New(smallConnections)}, nil
}

// counts are what they have seen.
func (d doors) counts() map[metrics.Port]metrics.Connections {
	out := map[metrics.Port]metrics.Connections{}
	for name, v := range map[metrics.Port]*door.Door{metrics.PortLeases: d.leases, metrics.PortMetrics: d.metrics, metrics.PortProbes: d.probes} {
		c := v.Counts()
		out[name] = metrics.Connections{Open: c.Open, Resting: c.Resting, Refused: c.Refused, Displaced: c.Displaced}
	}
	return out
}

// smallPort serves something that is read whole and at once.
type smallPort struct {
	name    string
	address string
	tls     *tls.Config // nil: without
	door    *door.Door
	gate    *access.Gate // judges callers before handler; nil: nobody does
	handler http.Handler
}

// NeedLeaderElection says that every replica serves it.
func (smallPort) NeedLeaderElection() bool { return false }

// Start serves until ctx ends.
func (p smallPort) Start(ctx context.Context) error {
	var lc net.ListenConfig
	listener, err := lc.Listen(ctx, "tcp", p.address)
	if err != nil {
		return fmt.Errorf("%s: %w", p.name, err)
	}
	endpoint := p.endpoint()
	stopped := context.AfterFunc(ctx, func() { _ = endpoint.Close() })
	defer stopped()
	if err := endpoint.Serve(behind(p.door, listener, p.tls, endpoint.ErrorLog)); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("%s: %w", p.name, err)
	}
	return nil
}

// endpoint answers those whom the door lets in, none of whose calls has a body.
func (p smallPort) endpoint() *http.Server {
	const patience = 10 * time.Second
	s := &http.Server{
		Handler: server.Hurried(p.handler), ReadTimeout: patience, WriteTimeout: patience, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 16 << 10,
		ErrorLog: server.Complaints(slog.New(logr.ToSlogHandler(ctrl.Log.WithName(p.name)))),
	}
	watched(s, p.door, p.gate)
	return s
}

// behind is the listener behind a door, with TLS if there is a configuration; handshakes that fail are told to log.
func behind(d *door.Door, l net.Listener, c *tls.Config, log *log.Logger) net.Listener {
	l = d.Guard(l)
	if c != nil {
		l = tls.NewListener(l, c)
	}
	return door.Count(l, log)
}

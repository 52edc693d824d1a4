package main

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"time"

	"github.com/berthmaster/berthmaster/internal/router"
	"github.com/berthmaster/berthmaster/internal/router/routertest"
	"github.com/berthmaster/berthmaster/internal/router/server"
)

// site is one pool served over HTTP on loopback.
type site struct {
	table *router.Table
	fleet router.Fleet
	addr  string
	seqs  map[router.Incarnation]uint64
	stop  func() error
}

// poolPath is where the pool of a site is served.
const poolPath = "/v1alpha1/namespaces/soak/inferencepools/pool"

// open serves a pool of so many backends; limits and configuration may be changed before.
func open(backends int, change func(*router.Config), limits server.Limits) (*site, error) {
	names := make([]router.BackendName, backends)
	for i := range names {
		names[i] = router.BackendName(fmt.Sprint("backend-", i))
	}
	s := &site{
		table: router.NewTable("pool", nil, time.Now()), fleet: routertest.Backends(names...),
		seqs: map[router.Incarnation]uint64{},
	}
	change(&s.fleet.Config)
	s.table.Lead(1, router.Takeover{}, time.Now())
	if err := s.apply(); err != nil {
		return nil, err
	}
	for _, m := range s.fleet.Members {
		s.observe(m.Incarnation, router.Healthy)
	}
	return s, s.serve(limits)
}

func (s *site) serve(limits server.Limits) error {
	pools := router.NewPools()
	pools.Put(router.PoolKey{Namespace: "soak", Name: "pool"}, s.table)
	api, err := server.New(server.Config{Pools: pools, Keys: server.Keys{Current: bytes.Repeat([]byte("k"), 32)}, Limits: limits})
	if err != nil {
		return err
	}
	l, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	s.addr = l.Addr().String()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- api.Serve(ctx, l) }()
	s.stop = func() error {
		cancel()
		return <-ended
	}
	return nil
}

func (s *site) apply() error { return s.table.Apply(s.fleet, time.Now()) }

// observe reports the health of an incarnation.
func (s *site) observe(inc router.Incarnation, h router.Health) {
	s.seqs[inc]++
	s.table.Observe(router.Observation{Incarnation: inc, Seq: s.seqs[inc], Health: h, EngineTotal: -1}, time.Now())
}

// tend does what the table wants done by engines on which nothing runs, and lets time pass.
func (s *site) tend(clock float64) {
	for _, c := range s.table.Chores(time.Now()) {
		if len(c.Abort) > 0 {
			s.table.AbortAnswered(c.Incarnation, c.Abort, time.Now())
		}
		if c.ReadLoads {
			s.table.LoadsRead(c.Incarnation, c.Stamp, []router.RankLoad{{Clock: clock}}, time.Now())
		}
	}
	for _, b := range s.table.Snapshot(time.Now()).Backends {
		if b.Isolated && !b.IsolationRecorded {
			s.table.IsolationRecorded(b.Incarnation, time.Now())
		}
	}
	s.table.Tick(time.Now())
}

// atRest returns what is still counted or kept; nil: nothing is.
func (s *site) atRest() error {
	snap := s.table.Snapshot(time.Now())
	for _, b := range snap.Backends {
		if b.Outstanding != 0 || b.Held != 0 || b.Sessions != 0 || b.Retired {
			return fmt.Errorf("%s: %d outstanding, %d held, %d sessions, retired %v", b.Incarnation, b.Outstanding, b.Held, b.Sessions, b.Retired)
		}
	}
	for _, v := range snap.Senders {
		if v.Counted != 0 {
			return fmt.Errorf("sender %s: %d counted", v.Name, v.Counted)
		}
	}
	if snap.Requests+snap.Sessions+snap.Waiting != 0 || snap.Failure != nil {
		return fmt.Errorf("%d records, %d sessions, %d waiters, failure %v", snap.Requests, snap.Sessions, snap.Waiting, snap.Failure)
	}
	return nil
}

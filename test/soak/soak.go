package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"runtime"
	"time"

	"github.com/berthmaster/berthmaster/internal/router"
	"github.com/berthmaster/berthmaster/internal/router/server"
)

// granted is how many in a hundred acquires are granted at least; the rest is cut or refused.
const granted = 95

// soakClients is how many clients take leases at the same time.
const soakClients = 32

// quickConfig forgets and loses fast, so that a long run sees everything end many times.
func quickConfig(c *router.Config) {
	c.TTL, c.StartWindow, c.Retention, c.IdleTimeout = 2*time.Second, time.Second, 3*time.Second, 3*time.Second
	c.OnAmbiguous, c.Certainty = router.IsolateBackend, 5*time.Second
}

// runSoak takes so many leases, and returns what grew or stayed behind.
func runSoak(ctx context.Context, out io.Writer, leases int) error {
	before := runtime.NumGoroutine()
	s, err := open(16, quickConfig, server.Limits{})
	if err != nil {
		return err
	}
	fresh := takeSample()
	weatherCtx, calm := context.WithCancel(ctx)
	defer calm()
	w := &weather{site: s, chance: rand.New(rand.NewPCG(1, 2))}
	cleared := make(chan error, 1)
	go func() { cleared <- w.run(weatherCtx, 20*time.Millisecond) }()
	began := time.Now()
	clients, err := start(instructions{Do: "soak", Addr: s.addr, Clients: soakClients, Count: leases})
	if err != nil {
		return err
	}
	samples, err := watch(ctx, out, s, leases, clients)
	calm()
	if err = errors.Join(err, <-cleared); err != nil {
		return err
	}
	sayf(out, "%d leases in %v", s.table.Snapshot(time.Now()).Totals.Grants, time.Since(began).Round(time.Second))
	if err := errors.Join(flat(out, samples), rest(ctx, w)); err != nil {
		return err
	}
	if err := asBefore(out, fresh, takeSample()); err != nil {
		return err
	}
	if err := s.stop(); err != nil {
		return err
	}
	return ended(before)
}

// watch samples the process at every twentieth of the leases until the clients have ended.
func watch(ctx context.Context, out io.Writer, s *site, leases int, clients *process) ([]sample, error) {
	type end struct {
		counts tally
		err    error
	}
	done := make(chan end, 1)
	go func() {
		counts, err := clients.wait()
		done <- end{counts, err}
	}()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	var samples []sample
	for {
		select {
		case e := <-done:
			sayf(out, "clients counted %v", e.counts)
			return samples, e.err
		case <-ctx.Done():
			return nil, errors.Join(ctx.Err(), clients.kill())
		case <-tick.C:
			grants := int(s.table.Snapshot(time.Now()).Totals.Grants)
			if len(samples) < twentieths && grants >= (len(samples)+1)*leases*granted/100/twentieths {
				samples = append(samples, takeSample())
				sayf(out, "%3d %%: %v", 100*len(samples)/twentieths, samples[len(samples)-1])
			}
		}
	}
}

// rest waits until everything is forgotten and nothing is counted.
func rest(ctx context.Context, w *weather) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		err := w.site.atRest()
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("not at rest a minute after the last call: %w", err)
		case <-tick.C:
			w.tend()
		}
	}
}

// ended waits until as many goroutines are left as there were before.
func ended(before int) error {
	deadline := time.NewTimer(time.Minute)
	defer deadline.Stop()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for runtime.NumGoroutine() > before+1 {
		select {
		case <-deadline.C:
			return fmt.Errorf("%d goroutines are left, there were %d before", runtime.NumGoroutine(), before)
		case <-tick.C:
		}
	}
	return nil
}

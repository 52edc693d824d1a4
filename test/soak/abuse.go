package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"runtime"
	"strings"
	"time"

	"github.com/berthmaster/berthmaster/internal/router"
	"github.com/berthmaster/berthmaster/internal/router/server"
)

// The caps of a pool under abuse.
const (
	maxRequests = 20_000
	maxSessions = 10_000
)

// abusedConfig forgets nothing by time, so that only the caps bound what is kept.
func abusedConfig(c *router.Config) {
	c.MaxRequests, c.MaxSessions = maxRequests, maxSessions
	c.TTL, c.Retention, c.IdleTimeout = time.Hour, 24*time.Hour, 24*time.Hour
}

// runAbuse goes through the abuses while one client works, of which nothing may be lost.
func runAbuse(ctx context.Context, out io.Writer, ids, waiting int) error {
	before := runtime.NumGoroutine()
	s, err := open(4, abusedConfig, server.Limits{})
	if err != nil {
		return err
	}
	honest := newClient("honest", s.addr, 1)
	lease, err := honest.call(ctx, http.MethodPost, "/leases", acquire("honest", "honest"))
	if err != nil || lease.status != http.StatusCreated {
		return fmt.Errorf("the honest client's lease: %+v, %w", lease, err)
	}
	for _, step := range []func() error{
		func() error { return s.flood(out, ids) },
		func() error { return s.forgeries(out, ids/10) },
		func() error { return s.crowds(ctx, out, waiting) },
	} {
		if err := step(); err != nil {
			return err
		}
		if err := honest.stillServed(ctx, lease.Token); err != nil {
			return err
		}
	}
	honest.http.CloseIdleConnections()
	return errors.Join(s.stop(), ended(before))
}

// stillServed: the honest client's lease, record and session are what they were.
func (c *client) stillServed(ctx context.Context, token string) error {
	a, err := c.call(ctx, http.MethodPost, "/leases/honest/renew", map[string]any{"token": token})
	if err != nil || a.status != http.StatusOK {
		return fmt.Errorf("the honest client's renewal: %+v, %w", a, err)
	}
	a, err = c.call(ctx, http.MethodPost, "/leases", acquire("honest", "honest"))
	if err != nil || a.status != http.StatusOK {
		return fmt.Errorf("the honest client's lease asked for again: %+v, %w", a, err)
	}
	a, err = c.call(ctx, http.MethodGet, "/sessions/honest", nil)
	if err != nil || a.status != http.StatusOK {
		return fmt.Errorf("the honest client's session: %+v, %w", a, err)
	}
	return nil
}

// flood sends distinct ids and never ends a session; first up to the caps, then far beyond them.
func (s *site) flood(out io.Writer, ids int) error {
	counts, err := s.let(instructions{Do: "ids", Addr: s.addr, Clients: soakClients, Count: maxRequests + maxRequests/50})
	if err != nil {
		return err
	}
	atCap := takeSample()
	more, err := s.let(instructions{Do: "ids", Addr: s.addr, Clients: soakClients, Count: ids})
	if err != nil {
		return err
	}
	beyond := takeSample()
	snap := s.table.Snapshot(time.Now())
	sayf(out, "%d ids: %v, then %v; at the caps %v, beyond them %v", ids, counts, more, atCap, beyond)
	switch {
	case snap.Requests != maxRequests, snap.Sessions != maxSessions:
		return fmt.Errorf("%d records and %d sessions are kept, the caps are %d and %d", snap.Requests, snap.Sessions, maxRequests, maxSessions)
	case counts["leases"] != maxRequests-1: // the honest client has one
		return fmt.Errorf("%d leases up to the cap of %d", counts["leases"], maxRequests)
	case more["Contended"]+more["Invalid"] != ids:
		return fmt.Errorf("beyond the caps, of %d ids: %v", ids, more)
	}
	return noBigger(atCap, beyond)
}

// forgeries releases leases that never were.
func (s *site) forgeries(out io.Writer, n int) error {
	before := s.table.Snapshot(time.Now())
	counts, err := s.let(instructions{Do: "forged", Addr: s.addr, Clients: soakClients, Count: n})
	if err != nil {
		return err
	}
	after := s.table.Snapshot(time.Now())
	sayf(out, "%d releases of unknown ids: %v", n, counts)
	if counts["TokenInvalid"]+counts["Contended"]+counts["Invalid"] != n || after.Requests != before.Requests {
		return fmt.Errorf("of %d forged releases: %v; %d records became %d", n, counts, before.Requests, after.Requests)
	}
	return nil
}

// crowds has many clients wait until their node dies, twice: the second crowd may leave nothing
// that the first did not. (The runtime keeps its own record of a goroutine for the next one.)
func (s *site) crowds(ctx context.Context, out io.Writer, n int) error {
	s.fleet.Leasing = router.LeasingHeld
	s.fleet.Config.MaxRequests = 2 * maxRequests
	if err := s.apply(); err != nil {
		return err
	}
	first, err := s.crowd(ctx, out, n)
	if err != nil {
		return err
	}
	second, err := s.crowd(ctx, out, n)
	if err != nil {
		return err
	}
	return noBigger(first, second)
}

// crowd returns the size of the process after one crowd.
func (s *site) crowd(ctx context.Context, out io.Writer, n int) (sample, error) {
	clients, err := start(instructions{Do: "wait", Addr: s.addr, Clients: n, Count: n})
	if err != nil {
		return sample{}, err
	}
	if err := s.until(ctx, n); err != nil {
		return sample{}, errors.Join(err, clients.kill())
	}
	sayf(out, "%d clients wait: %v", n, takeSample())
	if err := clients.kill(); err != nil {
		return sample{}, err
	}
	if err := s.until(ctx, 0); err != nil {
		return sample{}, err
	}
	after := takeSample()
	sayf(out, "their node died: %v", after)
	return after, nil
}

// until waits until so many clients wait, and no goroutine serves more than that.
func (s *site) until(ctx context.Context, waiting int) error {
	ctx, cancel := context.WithTimeout(ctx, 3*time.Minute)
	defer cancel()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		snap := s.table.Snapshot(time.Now())
		if snap.Waiting == waiting && (waiting > 0 || runtime.NumGoroutine() < goroutinesSlack) {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%d clients wait, %d should: %w", snap.Waiting, waiting, ctx.Err())
		case <-tick.C:
		}
	}
}

// let has clients do something to the end.
func (s *site) let(in instructions) (tally, error) {
	p, err := start(in)
	if err != nil {
		return nil, err
	}
	return p.wait()
}

// floodIDs sends ids that no other client sends, of the greatest length; every hundredth is a
// byte too long. It releases every other lease.
func (c *client) floodIDs() error {
	for n, more := c.next(); more; n, more = c.next() {
		id := longID(fmt.Sprint("flood-", os.Getpid(), "-", n))
		if n%100 == 0 {
			id += "x"
		}
		a, err := c.call(context.Background(), http.MethodPost, "/leases", acquire(id, id))
		switch {
		case err != nil:
			return err
		case a.status == http.StatusCreated:
			c.counts["leases"]++
		default:
			c.counts[a.Reason]++
		}
		if a.Token == "" || n%2 == 0 {
			continue
		}
		if a, err = c.call(context.Background(), http.MethodPost, "/leases/"+id+"/release", map[string]any{"token": a.Token, "outcome": "Succeeded"}); err != nil || a.status != http.StatusOK {
			return fmt.Errorf("release: %+v, %w", a, err)
		}
	}
	return nil
}

// longID fills an id up to the greatest length.
func longID(id string) string { return id + strings.Repeat("-", 128-len(id)) }

// forge releases what never was: under tokens that nobody made, and without one.
func (c *client) forge() error {
	for n, more := c.next(); more; n, more = c.next() {
		id := longID(fmt.Sprint("forged-", n))
		body := acquire(id, id)
		body["outcome"] = "NotSent"
		if n%2 == 0 {
			body = map[string]any{"token": strings.Repeat("QUJD", 1+c.chance.IntN(200)), "outcome": "Succeeded"}
		}
		a, err := c.call(context.Background(), http.MethodPost, "/leases/"+id+"/release", body)
		if err != nil {
			return err
		}
		c.counts[a.Reason]++
	}
	return nil
}

// waitOnce waits for a lease for as long as it may. A connection that is cut is made anew: when
// ten thousand arrive at once, a slow machine does not read each in the time that a call has.
func (c *client) waitOnce() error {
	body := acquire(c.name, c.name)
	body["waitSeconds"] = 600
	for began := time.Now(); ; {
		a, err := c.call(context.Background(), http.MethodPost, "/leases", body)
		if err == nil {
			c.counts[a.Reason]++
			return nil
		}
		if time.Since(began) > 3*time.Minute {
			return err
		}
	}
}

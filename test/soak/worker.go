package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	berth "github.com/berthmaster/berthmaster/client"
)

// worker takes leases with the Go client, and misbehaves now and then.
type worker struct {
	*client
	pool *berth.Pool
}

// soak is the role of a worker.
func (c *client) soak() error {
	pool, err := berth.New(berth.Config{BaseURL: c.base, Transport: c.http.Transport})
	if err != nil {
		return err
	}
	return (&worker{client: c, pool: pool}).soak()
}

// soak takes leases, in sessions of up to twenty turns, until nothing is left to do.
func (w *worker) soak() error {
	for {
		session := ""
		for range 1 + w.chance.IntN(20) {
			n, more := w.next()
			if !more {
				return nil
			}
			if session == "" {
				session = fmt.Sprint(w.name, "-s", n)
			}
			if err := w.turn(fmt.Sprint(w.name, "-r", n), session); err != nil {
				return err
			}
		}
		if w.chance.IntN(5) == 0 {
			continue // never ended: its idle time will
		}
		if err := w.pool.EndSession(context.Background(), session, "train"); err != nil {
			return err
		}
	}
}

// patience is how long a worker waits for a lease.
const patience = 30 * time.Second

// turn takes one lease and ends it in one of the ways there are.
func (w *worker) turn(id, session string) error {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	if w.chance.IntN(50) == 0 {
		ctx, cancel = context.WithTimeout(ctx, time.Duration(w.chance.IntN(2000))*time.Microsecond)
		defer cancel()
		if w.chance.IntN(2) == 0 {
			return w.vanish(ctx, id, session)
		}
	}
	lease, err := w.pool.Acquire(ctx, berth.AcquireRequest{RequestID: id, SessionID: session, Sender: "train", Epoch: 1, Wait: patience})
	if err != nil {
		// A client that was cut has given the id up.
		return w.refused(err, berth.ErrNoBackend, berth.ErrContended, context.DeadlineExceeded)
	}
	w.counts["leases"]++
	return w.finish(lease)
}

// vanish asks for a lease and is never heard of again, whether it got one or not.
func (w *worker) vanish(ctx context.Context, id, session string) error {
	body := acquire(id, session)
	body["waitSeconds"] = int(patience.Seconds())
	a, err := w.call(ctx, http.MethodPost, "/leases", body)
	if err != nil {
		return w.refused(err, context.DeadlineExceeded)
	}
	if a.status == http.StatusCreated {
		w.counts["abandoned"]++
		return nil
	}
	w.counts[a.Reason]++
	return allowed(a, "NoBackend", "Contended")
}

// finish ends a lease: nearly always well.
func (w *worker) finish(lease *berth.Lease) error {
	outcome := berth.Succeeded
	switch n := w.chance.IntN(1000); {
	case n < 20:
		w.counts["abandoned"]++
		return nil
	case n < 50:
		outcome = berth.Cancelled
	case n < 51:
		outcome = berth.Ambiguous
	case n < 150:
		// The request is written; the lease may have been lost before.
		if err := lease.Renew(context.Background(), berth.Started); err != nil {
			if err := w.refused(err, berth.ErrExecutionLost, berth.ErrLeaseUnknown); err != nil {
				return err
			}
		}
	}
	w.counts[string(outcome)]++
	return w.release(lease, outcome)
}

// release reports how a lease ended. One that a slow machine brings too late is told so.
func (w *worker) release(lease *berth.Lease, outcome berth.Outcome) error {
	ending, err := lease.Release(context.Background(), berth.Report{Outcome: outcome})
	switch {
	case errors.Is(err, berth.ErrLeaseUnknown):
		w.counts["too late"]++
		return nil
	case err != nil:
		return err
	case outcome == berth.Ambiguous && ending.Fate != berth.FateDead && ending.Fate != berth.FateIsolated:
		return fmt.Errorf("%s was ambiguous and is answered %+v", lease.RequestID, ending)
	}
	return nil
}

// refused is nil for a refusal that is one of those that may be, and counts it.
func (w *worker) refused(err error, may ...error) error {
	i := slices.IndexFunc(may, func(one error) bool { return errors.Is(err, one) })
	if i < 0 {
		return err
	}
	w.counts[may[i].Error()]++
	return nil
}

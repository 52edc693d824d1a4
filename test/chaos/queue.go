package main

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptrace"
	"sync"
	"time"

	"github.com/berthmaster/berthmaster/test/local"
)

// queued is how many calls wait before a replica that stands still.
const queued = 8

// queue is calls that wait before a replica which stands still.
type queue struct {
	chaos   *chaos
	answers chan answer
}

// waitBefore has calls written to a replica that stands still: each asks for a lease.
func (x *chaos) waitBefore(ctx context.Context, r *local.Replica) (*queue, error) {
	q := &queue{chaos: x, answers: make(chan answer, queued)}
	written := make(chan struct{}, queued)
	for range queued {
		told := sync.OnceFunc(func() { written <- struct{}{} })
		go func() {
			traced := httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
				WroteRequest: func(httptrace.WroteRequestInfo) { told() },
			})
			a := x.ask(traced, "http://"+r.Leases)
			told() // if it never came to be written
			q.answers <- a
		}()
	}
	for range queued {
		select {
		case <-written:
		case <-ctx.Done():
			return nil, fmt.Errorf("calls to a replica that stands still: %w", ctx.Err())
		}
	}
	return q, nil
}

// collect reads the answers after the replica went on. A lease among them was granted after that,
// since nobody was there to read the call before.
func (q *queue) collect(ctx context.Context, thawed time.Time) error {
	for range queued {
		select {
		case a := <-q.answers:
			if a.err != nil || a.status != http.StatusCreated {
				continue // it was refused, or the connection was cut: both are fine
			}
			if err := q.chaos.note(a.body, thawed); err != nil {
				return err
			}
		case <-ctx.Done():
			return fmt.Errorf("answers of a replica that stood still: %w", ctx.Err())
		}
	}
	return nil
}

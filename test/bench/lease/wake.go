package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"
)

// woken is a waiting client that has its lease.
type woken struct {
	client  *client
	release []byte
	at      time.Time
	err     error
}

// waking lets n clients wait for the one place of the narrow pool, frees it, and lets whoever
// is woken free it in turn.
func waking(ctx context.Context, address string, n int) ([]time.Duration, error) {
	run := time.Now().UnixNano()
	first, err := newClient(ctx, address, narrowPool, fmt.Sprintf("holder-%d", run))
	if err != nil {
		return nil, err
	}
	defer first.Close()
	release, err := first.acquire()
	if err != nil {
		return nil, err
	}
	answers := make(chan woken, n)
	for i := range n {
		c, err := newClient(ctx, address, narrowPool, fmt.Sprintf("waiter-%d-%d", run, i))
		if err != nil {
			return nil, err
		}
		defer c.Close()
		if err := c.send(c.pool+"/leases", c.acquireBody(600)); err != nil {
			return nil, err
		}
		go func() { answers <- c.awaken() }()
	}
	return chain(ctx, first, release, answers, n)
}

// chain frees the place n times and measures each waking; the clients connected in order, but
// who is next does not matter.
func chain(ctx context.Context, holder *client, release []byte, answers <-chan woken, n int) ([]time.Duration, error) {
	var out []time.Duration
	for range n {
		freed := time.Now()
		if err := holder.release(release); err != nil {
			return nil, err
		}
		select {
		case w := <-answers:
			if w.err != nil {
				return nil, w.err
			}
			out = append(out, w.at.Sub(freed))
			holder, release = w.client, w.release
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	return out, holder.release(release)
}

func (c *client) awaken() woken {
	status, answer, err := c.receive()
	at := time.Now()
	return woken{client: c, release: c.releaseOf(answer), at: at, err: errors.Join(err, expect(status, http.StatusCreated, answer))}
}

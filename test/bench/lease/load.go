package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/berthmaster/berthmaster/test/bench/child"
)

// turnsPerSession is how many leases a session takes; published agent workloads have a median
// of 29 turns.
const turnsPerSession = 29

// client makes leases, one after the other, on a connection of its own.
type client struct {
	*conn
	pool string
	name string
	made int
	// stand is the release sent where the answer has no token, as from the empty handler.
	body, stand []byte
}

func newClient(ctx context.Context, address, pool string, name string) (*client, error) {
	c, err := dial(ctx, address)
	if err != nil {
		return nil, err
	}
	return &client{conn: c, pool: pathOf(pool), name: name, stand: releaseBody(bytes.Repeat([]byte{'t'}, standInToken))}, nil
}

// standInToken is about the size of a token in this set-up; the empty handler issues none.
const standInToken = 380

// acquireBody is the acquire of the client's next turn.
func (c *client) acquireBody(waitSeconds int) []byte {
	c.made++
	b := fmt.Appendf(c.body[:0], `{"requestID":"%s-%012d","sessionID":"%s-s%06d","sender":"train","senderGeneration":1,"epoch":1`,
		c.name, c.made, c.name, c.made/turnsPerSession)
	if waitSeconds > 0 {
		b = fmt.Appendf(b, `,"waitSeconds":%d`, waitSeconds)
	}
	c.body = append(b, '}')
	return c.body
}

func releaseBody(token []byte) []byte {
	return fmt.Appendf(nil, `{"token":"%s","outcome":"Succeeded","outputTokens":512,"weightVersion":"step-42"}`, token)
}

// acquire takes the next lease and returns what releases it.
func (c *client) acquire() (release []byte, err error) {
	status, answer, err := c.call(c.pool+"/leases", c.acquireBody(0))
	if err != nil {
		return nil, err
	}
	return c.releaseOf(answer), expect(status, http.StatusCreated, answer)
}

// releaseOf finds the token in a lease.
func (c *client) releaseOf(answer []byte) []byte {
	_, rest, found := bytes.Cut(answer, []byte(`"token":"`))
	token, _, closed := bytes.Cut(rest, []byte(`"`))
	if !found || !closed {
		return c.stand
	}
	return releaseBody(token)
}

func (c *client) releasePath() string {
	return fmt.Sprintf("%s/leases/%s-%012d/release", c.pool, c.name, c.made)
}

func (c *client) release(body []byte) error {
	status, answer, err := c.call(c.releasePath(), body)
	return errors.Join(err, expect(status, http.StatusOK, answer))
}

// sizes are the lengths of the answers of the lease API.
type sizes struct{ acquire, release int }

func sizesOf(ctx context.Context, address string) (sizes, error) {
	c, err := newClient(ctx, address, widePool, "worker-00000000")
	if err != nil {
		return sizes{}, err
	}
	defer c.Close()
	status, answer, err := c.call(c.pool+"/leases", c.acquireBody(0))
	if err := errors.Join(err, expect(status, http.StatusCreated, answer)); err != nil {
		return sizes{}, err
	}
	out := sizes{acquire: len(answer)}
	status, answer, err = c.call(c.releasePath(), c.releaseOf(answer))
	out.release = len(answer)
	return out, errors.Join(err, expect(status, http.StatusOK, answer))
}

// each runs one function per client at once, and returns the first error.
func each(ctx context.Context, address string, n int, f func(c *client, i int) error) error {
	var wg sync.WaitGroup
	errs := make([]error, n)
	for i := range n {
		wg.Go(func() {
			c, err := newClient(ctx, address, widePool, fmt.Sprintf("worker-%d-%d", time.Now().UnixNano(), i))
			if err != nil {
				errs[i] = err
				return
			}
			defer c.Close()
			errs[i] = f(c, i)
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

// throughput is how many leases per second n clients make, each as fast as it can.
func throughput(ctx context.Context, address string, n int, length time.Duration) (float64, error) {
	var made atomic.Int64
	began := time.Now()
	err := each(ctx, address, n, func(c *client, _ int) error {
		for time.Since(began) < length && ctx.Err() == nil {
			release, err := c.acquire()
			if err != nil {
				return err
			}
			if err := c.release(release); err != nil {
				return err
			}
			made.Add(1)
		}
		return ctx.Err()
	})
	return float64(made.Load()) / time.Since(began).Seconds(), err
}

// latencies are those of the calls of n clients that together make rate leases per second. An
// acquire counts from when it was due, so that a stall is not hidden by sending less meanwhile.
func latencies(ctx context.Context, address string, n int, rate float64, length time.Duration) ([]time.Duration, error) {
	period := time.Duration(float64(n) / rate * float64(time.Second))
	all := make([][]time.Duration, n)
	began := time.Now()
	err := each(ctx, address, n, func(c *client, i int) error {
		wait := time.NewTimer(0)
		defer wait.Stop()
		for due := began.Add(period * time.Duration(i) / time.Duration(n)); due.Sub(began) < length; due = due.Add(period) {
			wait.Reset(time.Until(due))
			select {
			case <-wait.C:
			case <-ctx.Done():
				return ctx.Err()
			}
			release, err := c.acquire()
			acquired := time.Now()
			if err != nil {
				return err
			}
			if err := c.release(release); err != nil {
				return err
			}
			all[i] = append(all[i], acquired.Sub(due), time.Since(acquired))
		}
		return nil
	})
	var out []time.Duration
	for _, v := range all {
		out = append(out, v...)
	}
	return out, err
}

// throughputOf is what n clients make of a server, and the processor time that it spends on each
// pair of calls: the one figure that other work on the machine does not change.
func throughputOf(ctx context.Context, p *child.Process, n int, length time.Duration) (rate float64, each time.Duration, err error) {
	before, err := p.Usage().CPU()
	if err != nil {
		return 0, 0, err
	}
	rate, err = throughput(ctx, p.Address, n, length)
	if err != nil {
		return 0, 0, err
	}
	after, err := p.Usage().CPU()
	if err != nil {
		return 0, 0, err
	}
	return rate, time.Duration(float64(after-before) / (rate * length.Seconds())).Round(100 * time.Nanosecond), nil
}

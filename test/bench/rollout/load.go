package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/berthmaster/berthmaster/client"
	"github.com/berthmaster/berthmaster/test/local"
)

const (
	// clients generate at once, each one turn after the other.
	clients = 24
	// turns are those of a session.
	turns = 10
	// tokens are what a turn generates: a tenth of a second or two on these engines.
	tokens = 8
	// enough grants before and after a change make sure that the traffic flows.
	enough = 100
	// leaseWait is how long a turn waits for its lease: far longer than any change takes.
	leaseWait = time.Minute
)

// load is clients that generate all the time.
type load struct {
	pool *client.Pool
	end  context.CancelFunc
	work sync.WaitGroup

	mu     sync.Mutex
	grants []time.Time // guarded by mu
	broken error       // guarded by mu; the first failure
}

func begin(ctx context.Context, system *local.System) (*load, error) {
	pool, err := client.New(client.Config{BaseURL: system.PoolURL()})
	if err != nil {
		return nil, err
	}
	ctx, end := context.WithCancel(ctx)
	l := &load{pool: pool, end: end}
	run := time.Now().UnixNano()
	for i := range clients {
		l.work.Go(func() { l.generate(ctx, fmt.Sprintf("bench-%d-%d", run, i)) })
	}
	return l, nil
}

// stop ends the clients. It is idempotent.
func (l *load) stop() {
	l.end()
	l.work.Wait()
	l.pool.Close()
}

// generate makes turns, ten to a session, until ctx ends. The turn under way then is finished.
func (l *load) generate(ctx context.Context, name string) {
	for i := 0; ctx.Err() == nil; i++ {
		session := fmt.Sprintf("%s-%d", name, i)
		for k := range turns {
			if err := l.turn(ctx, session, fmt.Sprintf("%s-%d", session, k)); err != nil {
				l.note(ctx, err)
				return
			}
		}
		if err := l.pool.EndSession(ctx, session, "train"); err != nil {
			l.note(ctx, err)
			return
		}
	}
}

// turn takes a lease, notes when, generates under it and gives it back.
func (l *load) turn(ctx context.Context, session, id string) error {
	lease, err := l.pool.Acquire(ctx, client.AcquireRequest{
		RequestID: id, SessionID: session, Sender: "train", Epoch: 1, Wait: leaseWait,
	})
	if err != nil {
		return err
	}
	l.granted(time.Now())
	outcome := client.Ambiguous
	if err = post(ctx, lease); err == nil {
		outcome = client.Succeeded
	}
	_, released := lease.Release(context.WithoutCancel(ctx), client.Report{Outcome: outcome})
	return errors.Join(err, released)
}

// post makes the lease's one request.
func post(ctx context.Context, lease *client.Lease) error {
	body := fmt.Sprintf(`{"rid":%q,"text":"hello","sampling_params":{"max_new_tokens":%d,"ignore_eos":true}}`, lease.RID, tokens)
	call, err := http.NewRequestWithContext(ctx, http.MethodPost, lease.Backend.URL+"/generate", strings.NewReader(body))
	if err != nil {
		return err
	}
	reply, err := http.DefaultClient.Do(call)
	if err != nil {
		return err
	}
	defer reply.Body.Close()
	if _, err := io.Copy(io.Discard, reply.Body); err != nil {
		return err
	}
	if reply.StatusCode != http.StatusOK {
		return fmt.Errorf("%s answered %s", lease.Backend.Name, reply.Status)
	}
	return nil
}

func (l *load) granted(at time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.grants = append(l.grants, at)
}

// note keeps the first failure that is not the end of the load.
func (l *load) note(ctx context.Context, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.broken == nil && ctx.Err() == nil {
		l.broken = err
	}
}

func (l *load) failure() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.broken
}

func (l *load) count() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.grants)
}

func (l *load) moments() []time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.grants)
}

// until waits for so many grants.
func (l *load) until(ctx context.Context, n int) error {
	look := time.NewTicker(10 * time.Millisecond)
	defer look.Stop()
	for l.count() < n {
		select {
		case <-look.C:
		case <-ctx.Done():
			return fmt.Errorf("%d grants, waiting for %d: %w", l.count(), n, ctx.Err())
		}
		if err := l.failure(); err != nil {
			return err
		}
	}
	return nil
}

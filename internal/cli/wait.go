package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/berthmaster/berthmaster/api/v1alpha1"
)

// progress is how far a pool has come.
type progress struct {
	done bool
	// line says it to a person.
	line string
	// never says why it will not come; nil: it may.
	never error
}

// judge says how far a pool has come, whose status describes the generation that was applied.
type judge func(pool *v1alpha1.InferencePool) progress

// waitPeriod is how often a pool is looked at.
const waitPeriod = time.Second

// untold is how it stands when the operator says nothing.
const untold = "the status does not describe the change yet"

// wait looks at the pool until it is where the change wants it, and tells each step once.
func (e *env) wait(ctx context.Context, t *target, generation int64, c *change, timeout time.Duration) error {
	if timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, timeout)
		defer cancel()
	}
	teller := teller{env: e, began: e.clock.Now()}
	ticker := e.clock.NewTicker(waitPeriod)
	defer ticker.Stop()
	for {
		now, err := t.look(ctx, generation, c.judge)
		if err == nil {
			teller.tell(now.line)
			err = now.never
		}
		if now.done || err != nil && ctx.Err() == nil {
			return err
		}
		select {
		case <-ticker.C():
		case <-ctx.Done():
			return gaveUp(ctx, teller.said, c, timeout)
		}
	}
}

// teller tells each step once, and when it was.
type teller struct {
	env   *env
	began time.Time
	said  string
	looks int
}

func (t *teller) tell(line string) {
	t.looks++
	// That the operator has not seen a change at the first look is no news.
	if line == t.said || t.looks == 1 && line == untold {
		return
	}
	t.said = line
	t.env.notef("%6s  %s", t.env.clock.Since(t.began).Round(time.Second), line)
}

// look reads the pool. A moment without the API server is only told.
func (t *target) look(ctx context.Context, generation int64, judge judge) (progress, error) {
	pool := &v1alpha1.InferencePool{}
	if err := t.client.Get(ctx, t.key(), pool); err != nil {
		return unread(ctx, err)
	}
	switch {
	case pool.UID != t.pool.UID:
		return progress{}, errors.New("the pool has been replaced by another of the same name")
	case pool.Status.ObservedGeneration < generation:
		return progress{line: untold}, nil
	}
	return judge(pool), nil
}

// unread is what an error says about the change that is waited for: often nothing yet.
func unread(ctx context.Context, err error) (progress, error) {
	switch {
	case apierrors.IsNotFound(err):
		return progress{}, fmt.Errorf("the pool is gone: %w", err)
	case apierrors.IsForbidden(err), apierrors.IsUnauthorized(err), ctx.Err() != nil:
		return progress{}, err
	}
	return progress{line: "the API server does not answer: " + err.Error()}, nil
}

func gaveUp(ctx context.Context, said string, c *change, timeout time.Duration) error {
	if !errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return fmt.Errorf("interrupted while waiting (%s); the change stands", said)
	}
	next := c.stuck
	if said == "" || said == untold {
		said = untold
		next = "see whether the manager runs and looks at this namespace: kubectl berth doctor"
	}
	return fmt.Errorf("not done after %s: %s; the change stands\n%s", timeout, said, next)
}

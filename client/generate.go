package client

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"
)

// Request is one turn.
type Request struct {
	// Body is the engine's request as JSON. Its rid is set by this package; the map is not changed.
	Body map[string]any
	// Route is the engine's route; empty is /generate.
	Route string
	// Header is sent to the engine in addition.
	Header http.Header
	// Executions is how many sequences it generates, samples times prompts; 0 is 1.
	Executions int64
	// Wait is how long to wait for a lease that cannot be given yet; 0 does not wait.
	Wait time.Duration
	// RequestID is the request's id; empty makes one up. A given id is used for one attempt only.
	RequestID string
	// Each is given the JSON of each event, if the engine streams. An error from it cuts the
	// request. The bytes must not be changed.
	Each func(event []byte) error
}

// Result is a complete reply.
type Result struct {
	// Body is the engine's reply; of a stream the last event.
	Body []byte
	// Lease is the lease under which it was generated, released by now.
	Lease *Lease
	// WeightVersion is the version that the reply names; empty if it names none.
	WeightVersion string
	// OutputTokens is how many tokens the reply counts.
	OutputTokens int64
	// Mixed is true if the router says that the weights changed meanwhile.
	Mixed bool
	// ReleaseErr is why the release did not reach the router, in which case the lease expires by
	// itself; nil if it did. The result is good in either case.
	ReleaseErr error
}

// Generate acquires a lease, posts the request to its engine, keeps the lease, and releases it. It
// makes another attempt, under a new id, only if nothing of the request was written.
//
// It fails with an *OutcomeError once a lease had been granted, otherwise as Acquire does. After
// Ambiguous it returns when the router knows the fate, or when ctx ends. A stale epoch cuts the
// request; the OutcomeError then wraps the *Problem.
func (s *Session) Generate(ctx context.Context, r Request) (*Result, error) {
	wait := firstWait
	for attempt := 1; ; attempt++ {
		result, err := s.attempt(ctx, r)
		last := attempt >= s.pool.config.Attempts || r.RequestID != ""
		if !errors.Is(err, ErrNotSent) || last || ctx.Err() != nil || errors.Is(err, ErrStaleEpoch) {
			return result, err
		}
		if !s.pool.rest(ctx, wait) {
			return result, err
		}
		wait = min(2*wait, lastWait)
	}
}

// attempt makes one request under one lease.
func (s *Session) attempt(ctx context.Context, r Request) (*Result, error) {
	id := r.RequestID
	if id == "" {
		fresh, err := s.pool.newID()
		if err != nil {
			return nil, err
		}
		id = fresh
	}
	// Encoded before anything is asked for, so that what cannot be encoded costs no lease.
	body, err := encode(r.Body)
	if err != nil {
		return nil, fmt.Errorf("encode the request: %w", err)
	}
	lease, err := s.acquire(ctx, id, r)
	if err != nil {
		return nil, err
	}
	return lease.conclude(ctx, lease.run(ctx, r, withRID(body, lease.RID)))
}

// run sends the request while the lease is kept.
func (l *Lease) run(ctx context.Context, r Request, body []byte) verdict {
	ctx, cut := context.WithCancelCause(ctx)
	defer cut(nil)
	kept := keep(ctx, l, cut)
	defer kept.end()
	p := &post{
		pool: l.pool, lease: l, body: body, route: or(r.Route, "/generate"),
		header: r.Header, wrote: kept.tellWritten, each: r.Each,
	}
	return p.send(ctx)
}

// conclude releases the lease and turns the verdict into what Generate returns. The release
// goes on for a while after ctx has ended: an execution that nobody reports stays counted.
func (l *Lease) conclude(ctx context.Context, v verdict) (*Result, error) {
	ctx, cancel := linger(ctx, l.pool.config.ReleaseGrace)
	defer cancel()
	ending, err := l.Release(ctx, Report{
		Outcome: v.outcome, OutputTokens: v.outputTokens, PromptTokens: v.promptTokens, WeightVersion: v.weightVersion,
	})
	if v.outcome == Succeeded {
		return &Result{
			Body: v.body, Lease: l, WeightVersion: v.weightVersion, OutputTokens: v.outputTokens,
			Mixed: l.Mixed(), ReleaseErr: err,
		}, nil
	}
	failed := &OutcomeError{
		Outcome: v.outcome, Fate: ending.Fate, Lease: l, Status: v.status, Message: v.message, Err: v.err, ReleaseErr: err,
	}
	if open := v.outcome == Ambiguous || v.outcome == Cancelled; open && err != nil {
		failed.Fate = FatePending
	}
	return nil, failed
}

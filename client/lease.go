package client

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"net/url"
	"sync"
	"time"
)

// maxPoll is the longest that one acquire asks the router to wait, so that a connection that died
// in silence is noticed.
const maxPoll = 30 * time.Second

// Lease is the right to send one request to one engine. It is safe for concurrent use.
type Lease struct {
	// RequestID is the id under which it was asked for.
	RequestID string
	// Backend is the engine.
	Backend Backend
	// RID must be the request's rid on the engine.
	RID string
	// WeightVersion is the version under which it was granted; empty if the pool promises none.
	WeightVersion string
	// Epoch and Term are the pool's and the router's at the grant.
	Epoch, Term int64
	// TTL is how long it lives after each renewal.
	TTL time.Duration
	// Token proves it to the router. It is a secret.
	Token string
	// Traceparent is the W3C trace context that the engine is to see; empty: it is not traced.
	Traceparent string

	pool *Pool

	mu       sync.Mutex
	startBy  time.Time // guarded by mu; the request may be begun before this
	mixed    bool      // guarded by mu
	state    PoolState // guarded by mu
	reported Report    // guarded by mu; the last report, for AwaitFate
}

// Start says whether the request has been written.
type Start int

const (
	// NotStarted keeps the start window open.
	NotStarted Start = iota
	// Started closes the start window for good.
	Started
)

// Acquire asks for a lease and waits for up to r.Wait where waiting helps. It repeats itself while
// answers are lost. If it gives up without knowing whether a lease was granted, it tells the
// router so. It fails with a *Problem, or wraps ErrUnanswered or the context's error.
func (p *Pool) Acquire(ctx context.Context, r AcquireRequest) (*Lease, error) {
	until := time.Now().Add(r.Wait)
	for {
		asked := time.Now()
		lease, err := p.poll(ctx, r, time.Until(until))
		problem, refused := errors.AsType[*Problem](err)
		switch {
		case err == nil:
			return lease, nil
		case !refused || unanswered(err):
			p.forgo(ctx, r)
			return nil, fmt.Errorf("acquire %s: %w", r.RequestID, err)
		case !waitingHelps(problem) || time.Until(until) <= 0 || ctx.Err() != nil:
			return nil, fmt.Errorf("acquire %s: %w", r.RequestID, err)
		}
		if !p.beforePoll(ctx, problem, time.Since(asked), time.Until(until)) {
			return nil, fmt.Errorf("acquire %s: %w", r.RequestID, errors.Join(err, ctx.Err()))
		}
	}
}

// beforePoll rests before the next acquire, but not after one in which the router waited for us:
// waiters are served in the order in which they came, and a rest loses the place.
func (p *Pool) beforePoll(ctx context.Context, refusal *Problem, took, left time.Duration) bool {
	if took >= time.Second {
		return ctx.Err() == nil
	}
	return p.rest(ctx, min(max(refusal.RetryAfter, firstWait), left))
}

// poll makes one acquire, in which the router may wait for us.
func (p *Pool) poll(ctx context.Context, r AcquireRequest, left time.Duration) (*Lease, error) {
	body := acquireBody{RequestID: r.RequestID, identity: r.identity(), Token: r.Token}
	if r.LastBackend.Name != "" {
		body.LastBackend = &Backend{Name: r.LastBackend.Name, Incarnation: r.LastBackend.Incarnation}
	}
	if left > 0 {
		body.WaitSeconds = int64(math.Ceil(min(left, maxPoll).Seconds()))
	}
	var sent time.Time
	trace := p.traceparent(ctx)
	var reply leaseReply
	err := p.repeat(ctx, call{
		method: http.MethodPost, path: "/leases", body: body,
		patience: time.Duration(body.WaitSeconds) * time.Second, sent: func(at time.Time) { sent = at },
		traced: func(answered string) { trace = cmp.Or(trace, answered) },
	}, &reply)
	if err != nil {
		return nil, err
	}
	if reply.RID == "" || reply.Token == "" || reply.Backend.URL == "" || reply.TTLSeconds <= 0 {
		return nil, errors.New("the router's answer is not a lease")
	}
	return &Lease{
		RequestID: r.RequestID, Backend: reply.Backend, RID: reply.RID, WeightVersion: reply.WeightVersion,
		Epoch: reply.Epoch, Term: reply.Term, TTL: seconds(reply.TTLSeconds), Token: reply.Token, Traceparent: trace,
		pool: p, startBy: sent.Add(seconds(reply.StartSeconds)),
	}, nil
}

// waitingHelps reports whether the same request may be granted later.
func waitingHelps(p *Problem) bool {
	return errors.Is(p, ErrFenced) || errors.Is(p, ErrHeld) || errors.Is(p, ErrNoBackend) || errors.Is(p, ErrContended)
}

// forgo says that the id will not be used, since a lease may have been granted whose answer was
// lost. If this is lost as well, the lease expires by itself.
func (p *Pool) forgo(ctx context.Context, r AcquireRequest) {
	ctx, cancel := linger(ctx, p.config.ReleaseGrace)
	defer cancel()
	_ = p.once(ctx, call{
		method: http.MethodPost, path: leasePath(r.RequestID, "release"),
		body: forgoBody{Outcome: NotSent, identity: r.identity()},
	}, nil)
}

// MayStart reports whether the request may be begun at now. Where it may not, renew first.
func (l *Lease) MayStart(now time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return now.Before(l.startBy)
}

// Mixed reports whether the router has said that the weights changed while the lease lived.
func (l *Lease) Mixed() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.mixed
}

// PoolState is what the last renewal said of the pool.
func (l *Lease) PoolState() PoolState {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.state
}

// Renew extends the lease by its TTL, once: the caller repeats it if the answer is lost. After a
// take-over it introduces the lease to the router's new term.
func (l *Lease) Renew(ctx context.Context, start Start) error {
	var sent time.Time
	var reply renewReply
	err := l.pool.once(ctx, call{
		method: http.MethodPost, path: leasePath(l.RequestID, "renew"),
		body: renewBody{Token: l.Token, Started: start == Started}, sent: func(at time.Time) { sent = at },
	}, &reply)
	if err != nil {
		return fmt.Errorf("renew %s: %w", l.RequestID, err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if start == NotStarted {
		l.startBy = sent.Add(seconds(reply.StartSeconds))
	}
	l.mixed = l.mixed || reply.Mixed
	l.state = reply.State
	return nil
}

func leasePath(requestID, verb string) string {
	return "/leases/" + url.PathEscape(requestID) + "/" + verb
}

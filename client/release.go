package client

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"
)

// fatePoll is how often AwaitFate asks about an execution on which the router does not wait.
const fatePoll = time.Second

// Report is how an execution ended.
type Report struct {
	Outcome Outcome
	// OutputTokens is how many tokens were generated; 0 if that is not known.
	OutputTokens int64
	// PromptTokens is how many tokens the prompts had; 0 if that is not known.
	PromptTokens int64
	// WeightVersion is the version that the engine's reply named; empty if it named none.
	WeightVersion string
}

// Ending is the router's answer to a release.
type Ending struct {
	Outcome Outcome
	// Fate is set for Ambiguous and Cancelled.
	Fate Fate
	// Mixed is true if the weights changed while it ran.
	Mixed bool
}

// Release says how the execution ended, and repeats itself while answers are lost. For Ambiguous
// it waits until the fate is known or ctx ends; an Ending with FatePending then says that the
// router has been told, and AwaitFate may be called later.
func (l *Lease) Release(ctx context.Context, report Report) (Ending, error) {
	l.mu.Lock()
	l.reported = report
	l.mu.Unlock()
	ending, err := l.release(ctx, report)
	if err != nil || report.Outcome != Ambiguous || ending.Fate != FatePending {
		return ending, err
	}
	return l.await(ctx, report, ending)
}

// AwaitFate waits, after a Release as Ambiguous or Cancelled, until the fate is no longer pending
// or ctx ends.
func (l *Lease) AwaitFate(ctx context.Context) (Ending, error) {
	l.mu.Lock()
	report := l.reported
	l.mu.Unlock()
	return l.await(ctx, report, Ending{Outcome: report.Outcome, Fate: FatePending})
}

// await releases again until the router knows the fate. It returns the last answer if ctx ends
// before.
func (l *Lease) await(ctx context.Context, report Report, last Ending) (Ending, error) {
	for last.Fate == FatePending && l.pool.rest(ctx, fatePoll) {
		ending, err := l.release(ctx, report)
		switch {
		case err == nil:
			last = ending
		case ctx.Err() == nil:
			return last, err
		}
	}
	return last, nil
}

func (l *Lease) release(ctx context.Context, report Report) (Ending, error) {
	c := call{
		method: http.MethodPost, path: leasePath(l.RequestID, "release"),
		body: releaseBody{
			Token: l.Token, Outcome: report.Outcome, OutputTokens: report.OutputTokens,
			PromptTokens: report.PromptTokens, WeightVersion: report.WeightVersion,
		},
	}
	if report.Outcome == Ambiguous {
		c.patience = maxPoll
	}
	var reply releaseReply
	err := l.pool.repeat(ctx, c, &reply)
	if report.Outcome == Ambiguous && ctx.Err() == nil && stillWaits(err) {
		return Ending{Outcome: Ambiguous, Fate: FatePending}, nil
	}
	if err != nil {
		return Ending{Outcome: report.Outcome}, fmt.Errorf("release %s: %w", l.RequestID, err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.mixed = l.mixed || reply.Mixed
	return Ending{Outcome: report.Outcome, Fate: reply.Fate, Mixed: l.mixed}, nil
}

// stillWaits reports whether the router has taken an Ambiguous release, and did not answer because
// the fate is open: the call ran out of time, or too many of the pool's calls wait already.
func stillWaits(err error) bool {
	return errors.Is(err, context.DeadlineExceeded) || errors.Is(err, ErrContended)
}

// linger is ctx prolonged: it ends grace after ctx does.
func linger(ctx context.Context, grace time.Duration) (context.Context, context.CancelFunc) {
	longer, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() {
		timer := time.NewTimer(grace)
		defer timer.Stop()
		select {
		case <-timer.C:
			cancel()
		case <-longer.Done():
		}
	})
	return longer, func() {
		stop()
		cancel()
	}
}

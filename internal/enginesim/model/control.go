package model

import (
	"errors"
	"fmt"
	"slices"
	"time"
)

// ErrBusy: the operation needs an engine without requests.
var ErrBusy = errors.New("the engine is not idle")

// Pause stops the loop where it is; the step in progress keeps what it has left. Requests may still be
// submitted and wait. Pausing a paused engine changes nothing.
func (e *Engine) Pause(now time.Duration) {
	e.run(now)
	if e.halt == halted {
		return
	}
	e.halt = halted
	if e.work != idle {
		e.left = e.end - now
	}
}

// Resume lets the loop go on from where Pause stopped it.
func (e *Engine) Resume(now time.Duration) {
	e.run(now)
	if e.halt == going {
		return
	}
	e.halt = going
	e.end = now + e.left
	e.run(now)
}

// RetractAll sends every request that runs or prefills back to the head of the queue, in order of arrival,
// and frees its blocks. The step in progress is lost.
func (e *Engine) RetractAll(now time.Duration) {
	e.run(now)
	active := slices.Concat(e.batch.heap, e.chunked)
	slices.SortFunc(active, func(a, b *request) int { return b.seq - a.seq })
	e.chunked = nil
	for _, r := range active {
		if r.phase == Running {
			e.batch.remove(r)
		}
		e.retract(r)
	}
	e.work, e.left = idle, 0
	e.run(now)
}

// Flush forgets every kept prefix. It fails with ErrBusy, changing nothing, unless the engine has no requests.
func (e *Engine) Flush(now time.Duration) error {
	e.run(now)
	if len(e.requests) > 0 {
		return fmt.Errorf("flush with %d requests: %w", len(e.requests), ErrBusy)
	}
	e.kv.flush()
	return nil
}

// IDs returns the requests in progress, sorted.
func (e *Engine) IDs() []string {
	ids := make([]string, 0, len(e.requests))
	for id := range e.requests {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	return ids
}

// Load is a copy of how busy the engine is.
type Load struct {
	Running int // requests that run or prefill
	Waiting int // requests in the queue, retracted ones included
	// Retracted is how many of Waiting have run before.
	Retracted int
	// WaitingTokens is the prompt tokens in the queue that would have to be computed now.
	WaitingTokens int
	// UsedTokens is the KV cache that cannot be given up; KeptTokens what is kept and could be.
	UsedTokens, KeptTokens int
	// MaxTokens and MaxRunning are the engine's limits.
	MaxTokens, MaxRunning int
	Totals                Totals
}

// Totals counts since the engine began; none of them falls.
type Totals struct {
	Prompt    int64 // prompt tokens of requests admitted
	Cached    int64 // of Prompt: found in the cache
	Generated int64 // output tokens
	Finished  int64 // requests that ended by themselves
	Retracted int64 // retractions
	Steps     int64 // prefill and decode steps
}

// Totals are the engine's counters, as of the last time named.
func (e *Engine) Totals() Totals { return e.totals }

// Load says how busy the engine is, as of the last time named. It costs time in proportion to the queue.
func (e *Engine) Load() Load {
	l := Load{
		Running: e.batch.len() + len(e.chunked), Waiting: e.waiting.Len(),
		UsedTokens: (e.kv.owned + e.kv.pinned) * e.kv.block,
		KeptTokens: (e.kv.kept - e.kv.pinned) * e.kv.block,
		MaxTokens:  e.MaxTokens(), MaxRunning: e.params.MaxRunning, Totals: e.totals,
	}
	for p := e.waiting.Front(); p != nil; p = p.Next() {
		r := p.Value.(*request)
		_, hit := e.kv.lookup(r.Session, r.PromptTokens)
		l.WaitingTokens += r.PromptTokens + r.generated - hit
		if r.retractions > 0 {
			l.Retracted++
		}
	}
	return l
}

// Idle reports whether no request is in progress.
func (e *Engine) Idle() bool { return len(e.requests) == 0 }

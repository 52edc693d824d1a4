package model

import (
	"container/list"
	"errors"
	"fmt"
	"time"
)

// Reasons for which Submit refuses a request.
var (
	// ErrDuplicate: a request of this ID has not ended.
	ErrDuplicate = errors.New("a request of this id is in progress")
	// ErrTooLong: prompt and output together do not fit into the whole KV cache.
	ErrTooLong = errors.New("the request is longer than the KV cache")
	// ErrEmpty: a prompt or an output of no tokens.
	ErrEmpty = errors.New("a request needs at least one prompt and one output token")
)

// Engine is one simulated scheduler. It is not safe for concurrent use. Calls that name a time must name one
// that is not before that of an earlier call.
type Engine struct {
	params Params
	now    time.Duration
	halt   halt

	requests map[string]*request
	seq      int
	waiting  *list.List // of *request
	chunked  []*request // in the prefill step; the last may be half done
	batch    batch
	kv       kv

	work   work
	end    time.Duration // of the step in progress
	length time.Duration // of one decode step of the run in progress
	steps  int           // decode steps left in the run, the one in progress included
	left   time.Duration // while halted: what was left of the step in progress

	events []Event
	totals Totals
}

// halt says whether the engine's loop runs.
type halt int

const (
	going halt = iota
	halted
)

// work is what the step in progress does.
type work int

const (
	idle work = iota
	prefilling
	decoding
)

// New returns an idle engine at time 0. It panics if the parameters do not pass Validate.
func New(p Params) *Engine {
	if err := p.Validate(); err != nil {
		panic(fmt.Sprintf("model: %v", err))
	}
	p = p.WithDefaults()
	return &Engine{
		params: p, requests: map[string]*request{}, waiting: list.New(),
		batch: newBatch(p.BlockTokens), kv: newKV(p.KVTokens, p.BlockTokens),
	}
}

// Submit queues requests that arrive together; those of one call can share a prefill step. It refuses all of
// them, with ErrDuplicate, ErrTooLong or ErrEmpty, if it refuses one.
func (e *Engine) Submit(now time.Duration, reqs ...Request) error {
	e.run(now)
	for i, r := range reqs {
		if err := e.admissible(r, reqs[:i]); err != nil {
			return fmt.Errorf("request %q: %w", r.ID, err)
		}
	}
	for _, q := range reqs {
		e.seq++
		r := &request{Request: q, seq: e.seq, arrived: now, phase: Waiting}
		r.place = e.waiting.PushBack(r)
		e.requests[q.ID] = r
	}
	e.replan()
	return nil
}

func (e *Engine) admissible(r Request, before []Request) error {
	if r.PromptTokens < 1 || r.OutputTokens < 1 {
		return ErrEmpty
	}
	if r.PromptTokens+r.OutputTokens > e.MaxTokens() {
		return ErrTooLong
	}
	if e.requests[r.ID] != nil {
		return ErrDuplicate
	}
	for _, b := range before {
		if b.ID == r.ID {
			return ErrDuplicate
		}
	}
	return nil
}

// MaxTokens is the longest prompt and output, together, that one request may have.
func (e *Engine) MaxTokens() int { return e.kv.total * e.kv.block }

// Advance moves the time to to and returns what happened since the last Advance, in order.
func (e *Engine) Advance(to time.Duration) []Event {
	e.run(to)
	out := e.events
	e.events = nil
	return out
}

// NextEvent is the next time at which Advance may have something to tell, or false if nothing will happen
// before the next Submit or Resume. It may be early: an Advance to it can return nothing.
func (e *Engine) NextEvent() (time.Duration, bool) {
	switch {
	case len(e.events) > 0:
		return e.now, true
	case e.halt == halted || e.work == idle:
		return 0, false
	case e.work == decoding:
		return e.end + time.Duration(e.steps-1)*e.length, true
	default:
		return e.end, true
	}
}

// Abort ends a request in any phase and returns how far it was; Phase is Unknown if there is no such request.
// What a running one had computed is kept for its session, as that of a finished one is.
func (e *Engine) Abort(now time.Duration, id string) Progress {
	e.run(now)
	r := e.requests[id]
	if r == nil {
		return Progress{}
	}
	was := e.progress(r)
	switch r.phase {
	case Waiting:
		e.waiting.Remove(r.place)
	case Prefilling:
		e.leaveChunk(r)
		e.forfeit(r)
	case Running:
		e.batch.remove(r)
		e.settle(r)
	case Unknown:
	}
	delete(e.requests, id)
	e.replan()
	return was
}

// Progress says how far a request is, as of the last time named.
func (e *Engine) Progress(id string) Progress {
	if r := e.requests[id]; r != nil {
		return e.progress(r)
	}
	return Progress{}
}

func (e *Engine) progress(r *request) Progress {
	p := Progress{Phase: r.phase, OutputTokens: r.generated, CachedTokens: r.cached, Retractions: r.retractions}
	if r.phase == Running {
		p.OutputTokens += e.batch.step - r.startStep
	}
	return p
}

package model

import (
	"slices"
	"time"
)

// run moves the time to to, finishing and beginning steps. When it returns, a step is in progress whenever
// there is work for one.
func (e *Engine) run(to time.Duration) {
	if to < e.now {
		panic("model: time went backwards")
	}
	for e.halt == going {
		if e.work == idle && !e.begin() {
			break
		}
		if e.end > to {
			break
		}
		if e.work == prefilling {
			e.now = e.end
			e.finishPrefill()
			continue
		}
		n := min(e.steps, 1+int((to-e.end)/e.length))
		e.now = e.end + time.Duration(n-1)*e.length
		e.finishDecode(n)
	}
	e.now = to
}

// replan lets a change take effect: at the end of the decode step in progress, or now if there is none.
func (e *Engine) replan() {
	if e.work == decoding {
		e.steps = 1
	}
	e.run(e.now)
}

// begin starts a step at now, and reports whether there was anything to do.
func (e *Engine) begin() bool {
	if tokens := e.fillChunk(); tokens > 0 {
		e.work = prefilling
		e.end = e.now + max(1, time.Duration(tokens)*time.Second/time.Duration(e.params.PrefillTokensPerSecond))
		return true
	}
	if e.batch.len() == 0 {
		return false
	}
	e.makeRoom()
	e.work = decoding
	e.length = max(1, e.params.DecodeBase+time.Duration(e.batch.len())*e.params.DecodePerRequest)
	e.steps = e.batch.stepsWithin(e.kv.available(), e.batch.untilFinish())
	e.end = e.now + e.length
	return true
}

// fillChunk decides who prefills in the next step and returns how many tokens that is.
func (e *Engine) fillChunk() int {
	budget := e.params.ChunkTokens
	for _, r := range e.chunked { // at most one, left half done by the step before
		budget -= r.turnWithin(budget)
	}
	for budget > 0 {
		front := e.waiting.Front()
		if front == nil || !e.admit(front.Value.(*request)) {
			break
		}
		budget -= e.chunked[len(e.chunked)-1].turnWithin(budget)
	}
	return e.params.ChunkTokens - budget
}

// turnWithin sets how many of r's prompt tokens the next step takes, and returns it.
func (r *request) turnWithin(budget int) int {
	r.turn = min(budget, r.left)
	return r.turn
}

// admit gives a waiting request its blocks and a place in the prefill step, if there is room.
func (e *Engine) admit(r *request) bool {
	active := e.batch.len() + len(e.chunked)
	if active >= e.params.MaxRunning {
		return false
	}
	length := r.PromptTokens + r.generated
	from, hit := e.kv.lookup(r.Session, r.PromptTokens)
	need := e.kv.blocksFor(length - hit)
	reserve := e.kv.blocksFor(active * e.params.ReserveTokens)
	if need+reserve+e.kv.pinCost(from, hit) > e.kv.available() {
		return false
	}
	e.kv.pin(from, hit)
	e.kv.take(need)
	e.waiting.Remove(r.place)
	r.place, r.phase = nil, Prefilling
	r.from, r.hit, r.own, r.left = from, hit, length-hit, length-hit
	if !r.admitted {
		r.admitted, r.cached, r.queued = true, hit, e.now-r.arrived
		e.totals.Prompt += int64(r.PromptTokens)
		e.totals.Cached += int64(hit)
	}
	e.chunked = append(e.chunked, r)
	return true
}

// finishPrefill ends a prefill step: complete prompts yield a token and run on.
func (e *Engine) finishPrefill() {
	e.work = idle
	e.totals.Steps++
	batch := e.chunked
	e.chunked = nil
	for _, r := range batch {
		if r.left -= r.turn; r.left > 0 {
			e.chunked = append(e.chunked, r)
			continue
		}
		e.firstToken(r)
	}
}

func (e *Engine) firstToken(r *request) {
	r.generated++
	e.totals.Generated++
	if r.generated == 1 {
		e.events = append(e.events, r.event(e.now, FirstToken))
	}
	if r.generated >= r.OutputTokens {
		e.finish(r)
		return
	}
	e.batch.add(r)
}

// finishDecode ends n decode steps of the run in progress and plans the next unless the run goes on.
func (e *Engine) finishDecode(n int) {
	e.kv.take(e.batch.blocksFor(n))
	e.batch.step += n
	e.totals.Steps += int64(n)
	e.totals.Generated += int64(n * e.batch.len())
	if e.steps -= n; e.steps > 0 {
		e.end = e.now + e.length
		return
	}
	e.work = idle
	for e.batch.len() > 0 && e.batch.untilFinish() == 0 {
		r := e.batch.heap[0]
		e.batch.remove(r)
		e.finish(r)
	}
}

func (e *Engine) finish(r *request) {
	e.settle(r)
	delete(e.requests, r.ID)
	e.totals.Finished++
	e.events = append(e.events, r.event(e.now, Finished))
}

// settle hands a request's blocks to its session.
func (e *Engine) settle(r *request) {
	own := e.kv.blocksFor(r.own)
	e.kv.keep(r.Session, own, r.hit+r.own)
	e.kv.unpin(r.from)
	r.from, r.hit, r.own = nil, 0, 0
}

// forfeit frees a request's blocks and keeps nothing of them.
func (e *Engine) forfeit(r *request) {
	e.kv.release(e.kv.blocksFor(r.own))
	e.kv.unpin(r.from)
	r.from, r.hit, r.own, r.left = nil, 0, 0, 0
}

// makeRoom retracts running requests until a decode step fits. The last one always fits: no request is longer
// than the cache.
func (e *Engine) makeRoom() {
	if e.batch.blocksFor(1) <= e.kv.available() {
		return
	}
	for e.batch.len() > 1 && e.batch.blocksFor(retractSteps) > e.kv.available() {
		r := e.batch.victim()
		e.batch.remove(r)
		e.retract(r)
	}
}

// retract sends a request, already out of its batch, back to the head of the queue.
func (e *Engine) retract(r *request) {
	e.forfeit(r)
	r.phase = Waiting
	r.retractions++
	r.place = e.waiting.PushFront(r)
	e.totals.Retracted++
	e.events = append(e.events, r.event(e.now, Retracted))
}

func (e *Engine) leaveChunk(r *request) {
	e.chunked = slices.DeleteFunc(e.chunked, func(c *request) bool { return c == r })
}

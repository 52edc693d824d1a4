package controller

import (
	"fmt"
	"time"

	"github.com/berthmaster/berthmaster/api/v1alpha1"
	"github.com/berthmaster/berthmaster/internal/sglang"
)

// orderKind is what an engine is told to do.
type orderKind int

const (
	// orderNone is nothing.
	orderNone orderKind = iota
	// orderPause stops generation.
	orderPause
	// orderContinue lets a paused engine go on.
	orderContinue
)

// String is the order's name, for people.
func (k orderKind) String() string {
	switch k {
	case orderNone:
		return "nothing"
	case orderPause:
		return "pause"
	case orderContinue:
		return "continue"
	}
	return fmt.Sprintf("order %d", int(k))
}

// order is one thing to tell an engine. Each is idempotent at the engine, so that an order whose
// answer was lost is given again. The zero value is none.
type order struct {
	kind orderKind
	// mode is set with orderPause.
	mode v1alpha1.PauseMode
	// first says that the engine generated until this order and that none like it was given before:
	// only then does its answer prove what ran until the pause.
	first firstness
}

// firstness says whether an order changes what the engine does, as far as anybody knows.
type firstness int

const (
	// again repeats an order whose answer is not known.
	again firstness = iota
	// first is given for the first time.
	first
)

// same reports whether two orders ask the same of an engine.
func (o order) same(other order) bool { return o.kind == other.kind && o.mode == other.mode }

const (
	// abortBound is how long an engine may take to abort what runs: it looks once a second, and a
	// request may be in a long prefill.
	abortBound = 120 * time.Second
	// callBound is how long any other order may take.
	callBound = 30 * time.Second
	// firstRetry and lastRetry are the pauses before an order that failed is given again: the first
	// and the longest.
	firstRetry, lastRetry = time.Second, 30 * time.Second
)

// bound is how long the engine may take to answer.
func (o order) bound() time.Duration {
	if o.kind == orderPause && o.mode == v1alpha1.PauseAbort {
		return abortBound
	}
	return callBound
}

// retryAfter is how long to wait after that many failures in a row.
func retryAfter(failures int) time.Duration {
	wait := firstRetry
	for range failures - 1 {
		if wait *= 2; wait >= lastRetry {
			return lastRetry
		}
	}
	return wait
}

// engineMemory is what this process remembers of its orders to one incarnation. Nothing here has to
// outlive it: an engine of which nothing is remembered is told again.
type engineMemory struct {
	// under is the order that has not been answered yet; the zero value: none.
	under order
	// done is the last order that the engine answered as done, if none was given since; the zero value:
	// none.
	done order
	// failed is the last order, if it failed; failures counts how often in a row, fault says why, and
	// retryAt is when to try again.
	failed   order
	failures int
	fault    string
	retryAt  time.Time
}

// busy reports whether an order is under way.
func (m engineMemory) busy() bool { return m.under.kind != orderNone }

// did reports whether the last order that was done was this one, whether or not for the first time.
func (m engineMemory) did(o order) bool { return m.done.same(o) }

// waits is until when an order that failed must not be given again. Zero: it may be given.
func (m engineMemory) waits(o order, now time.Time) time.Time {
	if m.failed.same(o) && now.Before(m.retryAt) {
		return m.retryAt
	}
	return time.Time{}
}

// began is the memory once an order has been given.
func (m engineMemory) began(o order) engineMemory {
	m.under, m.done = o, order{}
	return m
}

// answered is the memory once the order under way has ended.
func (m engineMemory) answered(err error, now time.Time) engineMemory {
	given := m.under
	m.under = order{}
	if err != nil {
		if !m.failed.same(given) {
			m.failures = 0
		}
		m.failed = given
		m.failures++
		m.fault = fmt.Sprintf("%s: %s", given.kind, callFault(err))
		m.retryAt = now.Add(retryAfter(m.failures))
		return m
	}
	return engineMemory{done: given}
}

// pauseModes are the engine's words for the modes of a pause.
var pauseModes = map[v1alpha1.PauseMode]sglang.PauseMode{
	v1alpha1.PauseAbort: sglang.PauseAbort, v1alpha1.PauseRetract: sglang.PauseRetract, v1alpha1.PauseInPlace: sglang.PauseInPlace,
}

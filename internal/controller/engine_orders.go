package controller

import (
	"errors"
	"fmt"
	"time"

	"github.com/berthmaster/berthmaster/api/v1alpha1"
	"github.com/berthmaster/berthmaster/internal/rollout"
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
	// orderRepause lets it go on and pauses it again, so that requests which came to it while it was
	// paused are dealt with.
	orderRepause
	// orderUpdate loads weights.
	orderUpdate
	// orderStamp writes the name of the weights into it.
	orderStamp
	// orderVerify asks it which weights it has.
	orderVerify
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
	case orderRepause:
		return "pause again"
	case orderUpdate:
		return "update"
	case orderStamp:
		return "name the weights"
	case orderVerify:
		return "read the version"
	}
	return fmt.Sprintf("order %d", int(k))
}

// order is one thing to tell an engine. Each is idempotent at the engine, so that an order whose
// answer was lost is given again. The zero value is none.
type order struct {
	kind orderKind
	// mode is set with orderPause and orderRepause.
	mode v1alpha1.PauseMode
	// version is set with orderUpdate and orderStamp; path and flush with orderUpdate.
	version rollout.Version
	path    string
	flush   sglang.Flush
	// goal is the version that the pool was after when it was given.
	goal rollout.Version
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

// changes reports whether the engine may have other weights afterwards.
func (o order) changes() bool { return o.kind == orderUpdate || o.kind == orderStamp }

const (
	// abortBound is how long an engine may take to abort what runs: it looks once a second, and a
	// request may be in a long prefill.
	abortBound = 120 * time.Second
	// updateBound is how long it may take to load weights, and before that to end what runs.
	updateBound = 30 * time.Minute
	// callBound is how long any other order may take.
	callBound = 30 * time.Second
	// firstRetry and lastRetry are the pauses before an order that failed is given again: the first
	// and the longest.
	firstRetry, lastRetry = time.Second, 30 * time.Second
)

// bound is how long the engine may take to answer.
func (o order) bound() time.Duration {
	switch {
	case o.kind == orderUpdate:
		return updateBound
	case o.kind != orderContinue && o.mode == v1alpha1.PauseAbort:
		return abortBound
	default:
		return callBound
	}
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
	// paused is the mode of the pause that the engine has answered; empty: of none.
	paused v1alpha1.PauseMode
	// continued: the engine has answered that it goes on, and was not told to pause since.
	continued bool
	// settled: the engine has answered, yes or no, the last order to update it.
	settled bool
	// record is what rollouts remember of it; changedAt is when an order that changes weights was last
	// answered.
	record    rollout.Record
	changedAt time.Time
	// failed is the last order, if it failed; failures counts how often in a row, fault says why, and
	// retryAt is when to try again.
	failed   order
	failures int
	fault    string
	retryAt  time.Time
}

// busy reports whether an order is under way.
func (m engineMemory) busy() bool { return m.under.kind != orderNone }

// did reports whether a pause or a continuation has been answered as done, and stands.
func (m engineMemory) did(o order) bool {
	if o.kind == orderContinue {
		return m.continued
	}
	return m.paused != "" && m.paused == o.mode
}

// waits is until when an order that failed must not be given again. Zero: it may be given.
func (m engineMemory) waits(o order, now time.Time) time.Time {
	if m.failed.same(o) && now.Before(m.retryAt) {
		return m.retryAt
	}
	return time.Time{}
}

// began is the memory once an order has been given.
func (m engineMemory) began(o order) engineMemory {
	m.under = o
	m.record = m.record.Began(stepOf(o))
	switch o.kind {
	case orderPause, orderContinue, orderRepause:
		m.paused, m.continued = "", false
	case orderUpdate:
		m.settled = false
	case orderNone, orderStamp, orderVerify:
	}
	return m
}

// answered is the memory once the order under way has ended, with what was read of an order to read.
func (m engineMemory) answered(read rollout.Version, err error, now time.Time) engineMemory {
	given := m.under
	m.under = order{}
	m.record = m.record.Ended(stepOf(given), answerOf(read, err), given.goal, now)
	if given.changes() {
		m.changedAt = now
	}
	if given.kind == orderUpdate {
		m.settled = err == nil || explicit(err)
	}
	if err != nil {
		return m.refused(given, err, now)
	}
	switch given.kind {
	case orderPause, orderRepause:
		m.paused = given.mode
	case orderContinue:
		m.continued = true
	case orderNone, orderUpdate, orderStamp, orderVerify:
	}
	m.failed, m.failures, m.fault, m.retryAt = order{}, 0, "", time.Time{}
	return m
}

// refused is the memory once an order was not carried out, as far as anybody knows.
func (m engineMemory) refused(given order, err error, now time.Time) engineMemory {
	if !m.failed.same(given) {
		m.failures = 0
	}
	m.failed = given
	m.failures++
	m.fault = fmt.Sprintf("%s: %s", given.kind, callFault(err))
	m.retryAt = now.Add(retryAfter(m.failures))
	return m
}

// explicit reports whether an engine has said that it did not do what it was told. A call that was cut
// may yet be carried out.
func explicit(err error) bool {
	return errors.Is(err, sglang.ErrDeclined) || sglang.Code(err) != 0 || sglang.Refused(err)
}

func answerOf(read rollout.Version, err error) rollout.Answer {
	if err != nil {
		return rollout.Answer{Problem: callFault(err)}
	}
	return rollout.Answer{Reported: read}
}

// pauseModes are the engine's words for the modes of a pause.
var pauseModes = map[v1alpha1.PauseMode]sglang.PauseMode{
	v1alpha1.PauseAbort: sglang.PauseAbort, v1alpha1.PauseRetract: sglang.PauseRetract, v1alpha1.PauseInPlace: sglang.PauseInPlace,
}

package prober

import (
	"context"
	"sync"
	"time"

	"github.com/berthmaster/berthmaster/internal/sglang"
)

const (
	// spread is the part of a period by which probes are early or late, so that a pool whose
	// targets were set at once is not probed in bursts.
	spread = 0.1
	// maxFirstDelay bounds how long a new target waits for its first probe.
	maxFirstDelay = time.Second
	// untilWoken is a rest that only a wake-up ends.
	untilWoken time.Duration = -1
)

// target is the loop of one incarnation. The goroutine in run sends the probes; mu orders what
// they bring with pauses and the passing of time.
type target struct {
	key    Key
	client *sglang.Client
	sink   Sink
	jitter func() float64
	landed func(Key, Result, time.Duration)
	wake   chan struct{} // of capacity one: there is something new for the loop
	stop   context.CancelFunc

	// mu is held while sink.Observe is called, which orders observations and makes sure that none
	// follows a stop.
	mu      sync.Mutex
	state   state              // guarded by mu
	spec    Target             // guarded by mu
	seq     uint64             // guarded by mu
	at      time.Time          // guarded by mu; when state last changed or was confirmed
	cut     context.CancelFunc // guarded by mu; ends the probe in flight, nil if there is none
	tick    *time.Timer        // guarded by mu; when the budget ends, nil if none is being spent
	stopped bool               // guarded by mu
}

// flight is one probe that is about to be sent.
type flight struct {
	ctx     context.Context
	cancel  context.CancelFunc
	stamp   uint64
	timeout time.Duration
	period  time.Duration
}

// run probes until ctx ends.
func (t *target) run(ctx context.Context) {
	rest := t.firstDelay()
	for t.sleep(ctx, rest) {
		rest = t.round(ctx)
	}
}

func (t *target) firstDelay() time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	return scale(min(t.spec.Period, maxFirstDelay), t.jitter())
}

// sleep waits for d or a wake-up. It is false once ctx has ended.
func (t *target) sleep(ctx context.Context, d time.Duration) bool {
	var due <-chan time.Time
	if d != untilWoken {
		timer := time.NewTimer(d)
		defer timer.Stop()
		due = timer.C
	}
	select {
	case <-ctx.Done():
	case <-t.wake:
	case <-due:
	}
	return ctx.Err() == nil
}

// round sends one probe and says how long to rest until the next: one period, spread, from the
// start of this one, and at once if it took longer.
func (t *target) round(ctx context.Context) time.Duration {
	f, paused := t.takeOff(ctx)
	if paused {
		return untilWoken
	}
	defer f.cancel()
	sent := time.Now()
	result := probe(f.ctx, t.client, f.timeout)
	result.stamp = f.stamp
	landed := time.Now()
	if f.ctx.Err() == nil { // one that was cut short says nothing about the engine
		t.landed(t.key, resultOf(result.kind), landed.Sub(sent))
	}
	t.happen(result, landed)
	period := scale(f.period, 1-spread+2*spread*t.jitter())
	return max(period-landed.Sub(sent), 0)
}

// takeOff stamps a probe. The second result is true while there is nothing to probe.
func (t *target) takeOff(ctx context.Context) (flight, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.state.mode == pausedByUs {
		return flight{}, true
	}
	f := flight{stamp: t.state.stamp, timeout: t.spec.Timeout, period: t.spec.Period}
	f.ctx, f.cancel = context.WithCancel(ctx)
	t.cut = f.cancel
	return f, false
}

// happen applies an event and reports it, unless it is stale or the target has been stopped.
func (t *target) happen(e event, now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	stale := e.kind.stamped() && e.stamp != t.state.stamp
	if t.stopped || stale {
		return
	}
	before := t.state
	t.state = next(before, e, t.spec.rule(), now)
	if t.state == before && (!e.kind.stamped() || e.kind == budgetDue) {
		return
	}
	if t.state.stamp != before.stamp {
		t.interrupt()
	}
	t.seq++
	t.at = now
	t.armLocked(now)
	t.sink.Observe(t.observationLocked())
}

// interrupt cuts the probe in flight, whose result would be stale, and wakes the loop.
// The caller holds mu.
func (t *target) interrupt() {
	if t.cut != nil {
		t.cut()
	}
	select {
	case t.wake <- struct{}{}:
	default: // one wake-up is already on its way
	}
}

// armLocked sets the timer by which the budget ends without waiting for another probe.
func (t *target) armLocked(now time.Time) {
	if t.tick != nil {
		t.tick.Stop()
		t.tick = nil
	}
	left, spending := t.state.budgetIn(t.spec.rule(), now)
	if !spending {
		return
	}
	due := event{kind: budgetDue, stamp: t.state.stamp}
	t.tick = time.AfterFunc(left, func() { t.happen(due, time.Now()) })
}

// update takes new settings for the same address. The loop goes by them at once.
func (t *target) update(spec Target, now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	same := t.spec.sameSettings(spec)
	t.spec = spec
	if same || t.stopped {
		return
	}
	t.armLocked(now)
	select {
	case t.wake <- struct{}{}:
	default:
	}
}

// end stops the target. No observation follows it.
func (t *target) end() (last uint64, m mode) {
	t.stop()
	t.mu.Lock()
	defer t.mu.Unlock()
	t.stopped = true
	if t.tick != nil {
		t.tick.Stop()
	}
	return t.seq, t.state.mode
}

func (t *target) latest() Observation {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.observationLocked()
}

func (t *target) observationLocked() Observation {
	return Observation{
		Key: t.key, Seq: t.seq, At: t.at, Wanting: t.state.wanting,
		Verdict: t.state.verdict, Reason: t.state.reason, Message: t.state.message,
		Capacity: t.state.capacity, EngineTotal: t.state.total,
		WeightVersion: t.state.version, VersionConfirmed: t.state.confirmed,
	}
}

// keys is the source of the target's credentials, whatever Set last gave.
func (t *target) keys() sglang.Keys {
	t.mu.Lock()
	source := t.spec.Keys
	t.mu.Unlock()
	if source == nil {
		return sglang.Keys{}
	}
	return source()
}

func scale(d time.Duration, by float64) time.Duration { return time.Duration(float64(d) * by) }

package prober

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync"
	"time"

	"github.com/berthmaster/berthmaster/internal/sglang"
)

// ErrUnknownTarget is returned for a target that was never set, or is no longer.
var ErrUnknownTarget = errors.New("no such target")

// Target says which engine to probe, and how.
type Target struct {
	// Incarnation names the backend's life within its pool.
	Incarnation string
	// URL is the engine's address. Another address for the same incarnation starts it anew.
	URL sglang.BaseURL
	// Period is from the start of one probe to the start of the next.
	Period time.Duration
	// Timeout bounds each call of a probe.
	Timeout time.Duration
	// FailureThreshold is how many consecutive failed probes make it unhealthy, at least 1.
	FailureThreshold int
	// Budget is how long it may keep failing; 0 is without limit.
	Budget time.Duration
	// Hint is what the cluster says of the engine, in any words. Another hint has the engine probed at
	// once: one that just became ready need not wait for its turn.
	Hint string
	// Keys gives the engine's credentials, on each call; nil if it has none. It may be called
	// after the target has been forgotten, until Close returns.
	Keys sglang.KeySource
}

func (t Target) rule() rule { return rule{threshold: t.FailureThreshold, budget: t.Budget} }

// sameSettings compares all but the keys, which cannot be compared and take effect anyway.
func (t Target) sameSettings(o Target) bool {
	return t.Incarnation == o.Incarnation && t.URL == o.URL && t.Period == o.Period && t.Timeout == o.Timeout &&
		t.FailureThreshold == o.FailureThreshold && t.Budget == o.Budget && t.Hint == o.Hint
}

// Config holds what a Prober can do without.
type Config struct {
	// Transport carries the probes; nil is a transport of the prober's own.
	Transport http.RoundTripper
	// Jitter gives numbers in [0,1), from many goroutines; nil is a random source.
	Jitter func() float64
	// Landed is told of each probe that was not cut short: how it ended and how long it took. It is
	// called from many goroutines and must not block; nil: nobody is told.
	Landed func(Key, Result, time.Duration)
}

// Prober probes the targets of many pools. Its methods may be called from anywhere but a Sink.
type Prober struct {
	sink      Sink
	jitter    func() float64
	landed    func(Key, Result, time.Duration)
	transport http.RoundTripper
	idle      func() // closes resting connections of a transport of our own
	life      context.Context
	end       context.CancelFunc
	loops     sync.WaitGroup

	mu    sync.Mutex
	pools map[string]*pool // guarded by mu; nil once closed
}

// pool has a lock of its own, so that one pool's sink never delays another pool.
type pool struct {
	mu      sync.Mutex
	targets map[string]*target // guarded by mu; by incarnation; nil once forgotten
	// ended is the latest Seq of all targets that have ended: one that comes back goes on behind it.
	// Guarded by mu.
	ended uint64
}

// New returns a prober that reports to sink. The caller owns it and must Close it.
func New(sink Sink, config Config) *Prober {
	p := &Prober{
		sink: sink, jitter: config.Jitter, landed: config.Landed, transport: config.Transport,
		idle: func() {}, pools: map[string]*pool{},
	}
	p.life, p.end = context.WithCancel(context.Background())
	if p.jitter == nil {
		p.jitter = rand.Float64
	}
	if p.landed == nil {
		p.landed = func(Key, Result, time.Duration) {}
	}
	if p.transport == nil {
		own := sglang.NewTransport()
		p.transport, p.idle = own, own.CloseIdleConnections
	}
	return p
}

// Set makes targets the targets of a pool. Those that are there already go on undisturbed, with
// new settings if they differ; the rest start or end. No observation of an ended target follows.
// It does nothing after Close.
func (p *Prober) Set(poolUID string, targets []Target) {
	po := p.pool(poolUID)
	if po == nil {
		return
	}
	po.mu.Lock()
	defer po.mu.Unlock()
	if po.targets == nil {
		return // forgotten meanwhile
	}
	wanted := make(map[string]Target, len(targets))
	for _, spec := range targets {
		wanted[spec.Incarnation] = spec
	}
	for incarnation, old := range po.targets {
		if _, stays := wanted[incarnation]; !stays {
			last, _ := old.end()
			po.ended = max(po.ended, last)
			delete(po.targets, incarnation)
		}
	}
	for incarnation, spec := range wanted {
		po.targets[incarnation] = p.place(poolUID, po.targets[incarnation], spec, po.ended)
	}
}

// place returns the target for spec: old with new settings, or a new one in its stead. A
// replacement goes on with the numbers of what it replaces, a new one behind seq.
func (p *Prober) place(poolUID string, old *target, spec Target, seq uint64) *target {
	fresh := newState()
	if old != nil {
		if old.client.BaseURL() == spec.URL {
			old.update(spec, time.Now())
			return old
		}
		seq, fresh.mode = old.end()
	}
	t := &target{
		key:  Key{Pool: poolUID, Incarnation: spec.Incarnation},
		sink: p.sink, jitter: p.jitter, landed: p.landed, wake: make(chan struct{}, 1),
		state: fresh, spec: spec, seq: seq,
	}
	t.client = sglang.New(spec.URL, p.transport, t.keys)
	var life context.Context
	life, t.stop = context.WithCancel(p.life)
	p.loops.Go(func() { t.run(life) })
	return t
}

// Forget ends all targets of a pool. No observation of them follows.
func (p *Prober) Forget(poolUID string) {
	p.mu.Lock()
	po := p.pools[poolUID]
	delete(p.pools, poolUID)
	p.mu.Unlock()
	if po != nil {
		po.endAll()
	}
}

// Pause says that this operator is about to pause the engine, or to update its weights. What
// probes that are under way may bring changes nothing any more; none are sent, and no budget is
// spent, until Resume. It is idempotent.
func (p *Prober) Pause(key Key) error { return p.tell(key, wePause) }

// Resume says that the engine runs again. It is probed at once. It is idempotent, and does
// nothing to an engine that is not paused.
func (p *Prober) Resume(key Key) error { return p.tell(key, weResume) }

// Refused says that somebody could not connect to the engine: its version must be read again, by a probe
// that is sent from now on, which is at once; until then it counts as Refused if it was Healthy.
func (p *Prober) Refused(key Key) error { return p.tell(key, weWereRefused) }

func (p *Prober) tell(key Key, k kind) error {
	t := p.target(key)
	if t == nil {
		return fmt.Errorf("probe %s of pool %s: %w", key.Incarnation, key.Pool, ErrUnknownTarget)
	}
	t.happen(event{kind: k}, time.Now())
	return nil
}

// Latest returns what is known of a pool's targets, by incarnation. It includes targets that
// have not been probed yet, which are Unknown.
func (p *Prober) Latest(poolUID string) map[string]Observation {
	p.mu.Lock()
	po := p.pools[poolUID]
	p.mu.Unlock()
	if po == nil {
		return map[string]Observation{}
	}
	po.mu.Lock()
	defer po.mu.Unlock()
	latest := make(map[string]Observation, len(po.targets))
	for incarnation, t := range po.targets {
		latest[incarnation] = t.latest()
	}
	return latest
}

// Close ends all targets and waits for their loops. It is idempotent.
func (p *Prober) Close() {
	p.mu.Lock()
	pools := p.pools
	p.pools = nil
	p.mu.Unlock()
	for _, po := range pools {
		po.endAll()
	}
	p.end()
	p.loops.Wait()
	p.idle()
}

// pool finds or makes the pool. It is nil once the prober is closed.
func (p *Prober) pool(poolUID string) *pool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.pools == nil {
		return nil
	}
	po := p.pools[poolUID]
	if po == nil {
		po = &pool{targets: map[string]*target{}}
		p.pools[poolUID] = po
	}
	return po
}

func (p *Prober) target(key Key) *target {
	p.mu.Lock()
	po := p.pools[key.Pool]
	p.mu.Unlock()
	if po == nil {
		return nil
	}
	po.mu.Lock()
	defer po.mu.Unlock()
	return po.targets[key.Incarnation]
}

func (po *pool) endAll() {
	po.mu.Lock()
	defer po.mu.Unlock()
	for _, t := range po.targets {
		t.end()
	}
	po.targets = nil
}

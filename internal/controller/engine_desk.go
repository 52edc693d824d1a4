package controller

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"github.com/berthmaster/berthmaster/internal/rollout"
	"github.com/berthmaster/berthmaster/internal/router"
	"github.com/berthmaster/berthmaster/internal/sglang"
)

// desk gives orders to engines outside the reconcile workers: at most one at a time to each
// incarnation, each bounded in time, so that an engine which hangs delays nobody else.
type desk struct {
	transport http.RoundTripper
	clock     clock.PassiveClock
	life      context.Context
	end       context.CancelFunc
	calls     sync.WaitGroup

	mu    sync.Mutex
	pools map[types.UID]*deskPool // guarded by mu; nil once closed
}

// deskPool is what a desk has of one pool.
type deskPool struct {
	life    context.Context
	end     context.CancelFunc
	engines map[router.Incarnation]engineMemory
	// leavingSince is when this process first saw that the pool is being deleted.
	leavingSince time.Time
}

// errand is an order to one engine, and what follows from its answer.
type errand struct {
	incarnation router.Incarnation
	url         sglang.BaseURL
	keys        sglang.KeySource
	order       order
	// proven is called, with the time at which the order was given, once the engine has done it. May
	// be nil.
	proven func(begun time.Time)
	// tells is told how it ended. May be nil.
	tells func(error)
	// ended is called once the memory shows the answer.
	ended func(context.Context)
}

func newDesk(transport http.RoundTripper, clock clock.PassiveClock) *desk {
	d := &desk{transport: transport, clock: clock, pools: map[types.UID]*deskPool{}}
	d.life, d.end = context.WithCancel(context.Background())
	return d
}

// remember copies what is remembered of a pool's engines.
func (d *desk) remember(pool types.UID) map[router.Incarnation]engineMemory {
	d.mu.Lock()
	defer d.mu.Unlock()
	if p := d.pools[pool]; p != nil {
		return maps.Clone(p.engines)
	}
	return nil
}

// give has an order carried out, unless one to the same engine is under way.
func (d *desk) give(pool types.UID, e errand) {
	d.mu.Lock()
	defer d.mu.Unlock()
	p := d.poolLocked(pool)
	if p == nil || p.engines[e.incarnation].busy() {
		return
	}
	p.engines[e.incarnation] = p.engines[e.incarnation].began(e.order)
	d.calls.Go(func() { d.run(p, e) })
}

// run carries out an errand.
func (d *desk) run(p *deskPool, e errand) {
	ctx, cancel := context.WithTimeout(p.life, e.order.bound())
	defer cancel()
	begun, read, err := d.carryOut(ctx, sglang.New(e.url, d.transport, e.keys), e.order)
	if err == nil && e.proven != nil {
		e.proven(begun)
	}
	if e.tells != nil {
		e.tells(err)
	}
	d.mu.Lock()
	if memory, known := p.engines[e.incarnation]; known {
		p.engines[e.incarnation] = memory.answered(read, err, d.clock.Now())
	}
	d.mu.Unlock()
	e.ended(p.life)
}

// carryOut tells the engine. It returns when its last call began, and the version that it read.
func (d *desk) carryOut(ctx context.Context, engine *sglang.Client, o order) (begun time.Time, read rollout.Version, err error) {
	begun = d.clock.Now()
	switch o.kind {
	case orderPause:
		err = engine.Pause(ctx, pauseModes[o.mode])
	case orderContinue:
		err = engine.Continue(ctx)
	case orderRepause:
		if err = engine.Continue(ctx); err == nil {
			begun = d.clock.Now()
			err = engine.Pause(ctx, pauseModes[o.mode])
		}
	case orderUpdate:
		err = engine.UpdateFromDisk(ctx, sglang.DiskUpdate{Path: o.path, Version: string(o.version), Flush: o.flush})
	case orderStamp:
		err = engine.SetWeightVersion(ctx, string(o.version))
	case orderVerify:
		var info sglang.ModelInfo
		info, err = engine.ModelInfo(ctx)
		read = rollout.Version(info.WeightVersion)
	case orderNone:
	}
	return begun, read, err
}

// outdate makes what engines said of their weights doubtful: they were out of reach since.
func (d *desk) outdate(pool types.UID, lives []router.Incarnation) {
	d.mu.Lock()
	defer d.mu.Unlock()
	p := d.pools[pool]
	if p == nil {
		return
	}
	for _, life := range lives {
		if memory, known := p.engines[life]; known {
			memory.record = memory.record.Outdated()
			p.engines[life] = memory
		}
	}
}

// forget drops what is remembered of engines that are not among those to keep.
func (d *desk) forget(pool types.UID, keep func(router.Incarnation) bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	p := d.pools[pool]
	if p == nil {
		return
	}
	for incarnation, memory := range p.engines {
		if !keep(incarnation) && !memory.busy() {
			delete(p.engines, incarnation)
		}
	}
}

// leaving is since when this process knows that a pool is being deleted.
func (d *desk) leaving(pool types.UID, now time.Time) time.Time {
	d.mu.Lock()
	defer d.mu.Unlock()
	p := d.poolLocked(pool)
	if p == nil {
		return now
	}
	if p.leavingSince.IsZero() {
		p.leavingSince = now
	}
	return p.leavingSince
}

// drop cuts what is under way for a pool and forgets it: the pool is gone, or another process has it
// now.
func (d *desk) drop(pool types.UID) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if p := d.pools[pool]; p != nil {
		p.end()
		delete(d.pools, pool)
	}
}

// close cuts everything and waits for it.
func (d *desk) close() {
	d.mu.Lock()
	d.pools = nil
	d.mu.Unlock()
	d.end()
	d.calls.Wait()
}

// poolLocked finds or makes a pool's place for a caller that holds mu; nil: the desk is closed.
func (d *desk) poolLocked(pool types.UID) *deskPool {
	if d.pools == nil {
		return nil
	}
	p := d.pools[pool]
	if p == nil {
		p = &deskPool{engines: map[router.Incarnation]engineMemory{}}
		p.life, p.end = context.WithCancel(d.life)
		d.pools[pool] = p
	}
	return p
}

// callFault says why an engine did not do what it was told, in words that stay the same while the
// reason does. The text of Go's own network errors does not: it names the local port.
func callFault(err error) string {
	if status, ok := errors.AsType[*sglang.StatusError](err); ok {
		return status.Error()
	}
	if op, ok := errors.AsType[*net.OpError](err); ok {
		return fmt.Sprint(op.Err)
	}
	switch {
	case errors.Is(err, sglang.ErrDeclined):
		return err.Error()
	case errors.Is(err, context.DeadlineExceeded):
		return "the engine did not answer in time"
	case errors.Is(err, sglang.ErrMalformed), errors.Is(err, sglang.ErrReplyTooLarge):
		return "the engine answered what an SGLang engine would not"
	default:
		return "the connection was cut"
	}
}

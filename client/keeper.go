package client

import (
	"context"
	"errors"
	"sync"
	"time"
)

// keeper renews a lease in the background for as long as its request lives.
type keeper struct {
	lease   *Lease
	written chan struct{} // closed once the request has been written
	once    sync.Once
	over    context.Context // ends once nothing more is to be renewed
	stop    context.CancelFunc
	cancel  context.CancelFunc // of a renewal under way
	done    chan struct{}
}

// lastRenewal is how long a renewal that is under way when its request has ended may go on.
const lastRenewal = time.Second

// keep starts renewing. cut is called once if the router says that the lease has no right to go
// on, with the refusal.
func keep(ctx context.Context, lease *Lease, cut func(error)) *keeper {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	over, stop := context.WithCancel(ctx)
	k := &keeper{lease: lease, written: make(chan struct{}), over: over, stop: stop, cancel: cancel, done: make(chan struct{})}
	go func() {
		defer close(k.done)
		k.run(ctx, cut)
	}()
	return k
}

// end stops renewing and waits until no renewal is under way. One that is gets the time to be answered:
// cut off, it would take its connection along, and it might reach a router after the release has, where a
// new leader, which has not seen the release, would count the lease again.
func (k *keeper) end() {
	k.stop()
	last := time.AfterFunc(lastRenewal, k.cancel)
	<-k.done
	last.Stop()
	k.cancel()
}

// tellWritten closes the lease's start window soon. It may be called more than once.
func (k *keeper) tellWritten() { k.once.Do(func() { close(k.written) }) }

// run renews every third of the TTL, at once when the request has been written, and more often
// while answers are lost. It gives up only once the router calls the lease over: one that comes back
// takes the lease up again by its token, and credentials that fail may be good again soon.
func (k *keeper) run(ctx context.Context, cut func(error)) {
	start, wait := NotStarted, k.lease.TTL/3
	for k.await(&start, wait) {
		err := k.lease.Renew(ctx, start)
		switch {
		case err == nil:
			wait = k.lease.TTL / 3
		case errors.Is(err, ErrStaleEpoch):
			cut(err)
			return
		case over(err):
			// What the engine still answers counts nevertheless: nobody else was given this request.
			return
		default:
			wait = k.lease.TTL / 12
		}
	}
}

// over reports whether the router has no such lease any more.
func over(err error) bool {
	return errors.Is(err, ErrLeaseEnded) || errors.Is(err, ErrExecutionLost) || errors.Is(err, ErrLeaseUnknown) ||
		errors.Is(err, ErrRequestConflict)
}

// await waits for the next renewal to be due. It is false once there is nothing more to renew.
func (k *keeper) await(start *Start, wait time.Duration) bool {
	timer := time.NewTimer(max(wait, time.Millisecond))
	defer timer.Stop()
	select {
	case <-k.over.Done():
		return false
	case <-k.unsaid(*start):
		*start = Started
	case <-timer.C:
	}
	return k.over.Err() == nil
}

// unsaid is the news that the request has been written, as long as it is news.
func (k *keeper) unsaid(start Start) <-chan struct{} {
	if start == Started {
		return nil
	}
	return k.written
}

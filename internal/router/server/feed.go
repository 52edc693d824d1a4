package server

import (
	"context"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/berthmaster/berthmaster/internal/router"
)

// feed is the recent history of one watched pool. Its events are numbered from 1; one that has
// fallen out of the ring cannot be resumed, and its watcher is given the state anew.
type feed struct {
	// life begins every event id, so that ids of another process are not mistaken for ours.
	life  string
	table *router.Table
	size  int

	mu sync.Mutex
	// All below is guarded by mu.
	last     router.Snapshot
	ring     []event // the newest len(ring) events, oldest first
	told     uint64  // the number of the newest event
	more     chan struct{}
	watchers int
	idle     time.Duration // how long there have been none
}

func newFeed(t *router.Table, size int, now time.Time) *feed {
	return &feed{
		life: strconv.FormatInt(now.UnixNano(), 36), table: t, size: size,
		last: t.Snapshot(now), more: make(chan struct{}),
	}
}

// look compares the pool with what it was.
func (f *feed) look(now time.Time) {
	after := f.table.Snapshot(now)
	f.mu.Lock()
	defer f.mu.Unlock()
	news := changesBetween(&f.last, &after)
	f.last = after
	if len(news) == 0 {
		return
	}
	f.ring = append(f.ring, news...)
	if over := len(f.ring) - f.size; over > 0 {
		f.ring = append([]event(nil), f.ring[over:]...)
	}
	f.told += uint64(len(news))
	close(f.more)
	f.more = make(chan struct{})
}

// after returns the events after number n, and what is closed once there are more. It fails
// when n is not in the ring's reach.
func (f *feed) after(n uint64) (news []event, more <-chan struct{}, ok bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	oldest := f.told - uint64(len(f.ring))
	if n < oldest || n > f.told {
		return nil, nil, false
	}
	return f.ring[n-oldest:], f.more, true
}

// state is the pool as of event number n, and what is closed once there are more events.
func (f *feed) state() (e event, n uint64, more <-chan struct{}) {
	f.mu.Lock()
	defer f.mu.Unlock()
	view := viewOf(&f.last)
	return event{Type: eventState, Epoch: f.last.Epoch, Term: f.last.Term, State: &view}, f.told, f.more
}

// id names event number n to clients.
func (f *feed) id(n uint64) string { return f.life + "-" + strconv.FormatUint(n, 10) }

// resume finds the number of the event that a client saw last; false: it is not one of ours.
func (f *feed) resume(id string) (uint64, bool) {
	life, number, ok := strings.Cut(id, "-")
	if !ok || life != f.life {
		return 0, false
	}
	n, err := strconv.ParseUint(number, 10, 64)
	return n, err == nil
}

// left reports whether nobody has watched for as long as linger; step is the time since the
// last call.
func (f *feed) left(step, linger time.Duration) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.idle += step
	if f.watchers > 0 {
		f.idle = 0
	}
	return f.idle > linger
}

func (f *feed) join(by int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.watchers += by
}

// feeds are the pools that somebody watches, each looked at by a goroutine of its own. A pool
// without watchers costs nothing.
type feeds struct {
	limits Limits
	clock  func() time.Time
	ctx    context.Context
	cancel context.CancelFunc
	wg     sync.WaitGroup

	mu     sync.Mutex
	closed bool                    // guarded by mu
	byPool map[*router.Table]*feed // guarded by mu
}

func newFeeds(l Limits, clock func() time.Time) *feeds {
	ctx, cancel := context.WithCancel(context.Background())
	return &feeds{limits: l, clock: clock, ctx: ctx, cancel: cancel, byPool: map[*router.Table]*feed{}}
}

// join returns the feed of a table; leave is to be called once. It fails after close.
func (v *feeds) join(t *router.Table) (f *feed, leave func(), ok bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.closed {
		return nil, nil, false
	}
	f = v.byPool[t]
	if f == nil {
		f = newFeed(t, v.limits.WatchHistory, v.clock())
		v.byPool[t] = f
		v.wg.Go(func() { v.follow(f) })
	}
	f.join(1)
	return f, func() { f.join(-1) }, true
}

// follow looks at a pool until it goes, the server closes, or nobody has watched for a while.
func (v *feeds) follow(f *feed) {
	tick := time.NewTicker(v.limits.WatchPeriod)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			f.look(v.clock())
		case <-f.table.Lifetime().Done():
		case <-v.ctx.Done():
		}
		if v.forget(f) {
			return
		}
	}
}

// forget takes a feed out that nobody needs; a watcher who comes later begins another.
func (v *feeds) forget(f *feed) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	done := v.ctx.Err() != nil || f.table.Lifetime().Err() != nil || f.left(v.limits.WatchPeriod, v.limits.WatchLinger)
	if done {
		delete(v.byPool, f.table)
	}
	return done
}

// close ends every feed and waits for their goroutines.
func (v *feeds) close() {
	v.mu.Lock()
	v.closed = true
	v.mu.Unlock()
	v.cancel()
	v.wg.Wait()
}

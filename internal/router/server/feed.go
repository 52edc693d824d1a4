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
	ring     []event     // the newest len(ring) events, oldest first
	recent   []happening // likewise, and more of it
	told     uint64      // the number of the newest event
	more     chan struct{}
	watchers int
	idle     time.Duration // how long there have been none

	// followed: a goroutine of its own looks at it. Guarded by the mu of feeds.
	followed bool
}

func newFeed(t *router.Table, size int, now time.Time) *feed {
	return &feed{
		life: strconv.FormatInt(now.UnixNano(), 36), table: t, size: size,
		last: t.Snapshot(now), more: make(chan struct{}),
	}
}

// look compares the pool with what it was. The snapshot is taken under mu, so that of two looks the
// later one sees what is later.
func (f *feed) look(now time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	before := f.last
	f.last = f.table.Snapshot(now)
	var news []event
	if before.Epoch > 0 {
		news = changesBetween(&before, &f.last)
	}
	f.recent = newest(append(f.recent, happenedBetween(&before, &f.last, news, now)...), recentHistory)
	switch {
	case before.Epoch == 0 && f.last.Epoch > 0:
		// The router had no fleet before: what it has now is no change, and whoever watches is given
		// the whole state.
		f.ring = nil
		f.told++
	case len(news) == 0:
		return
	default:
		f.ring = newest(append(f.ring, news...), f.size)
		f.told += uint64(len(news))
	}
	close(f.more)
	f.more = make(chan struct{})
}

// newest is the end of a list, at most so long.
func newest[T any](list []T, most int) []T {
	if over := len(list) - most; over > 0 {
		return append([]T(nil), list[over:]...)
	}
	return list
}

// happened copies the recent history.
func (f *feed) happened() []happening {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]happening{}, f.recent...)
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

// feeds are the pools that somebody watches, each looked at by a goroutine of its own, and with keepAll
// all others, which one goroutine looks at less often.
type feeds struct {
	limits Limits
	clock  func() time.Time
	ctx    context.Context
	cancel context.CancelFunc
	wg     sync.WaitGroup

	mu     sync.Mutex
	closed bool                    // guarded by mu
	keeps  bool                    // pools without watchers as well; guarded by mu
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
	f = v.feedLocked(t)
	if !f.followed {
		f.followed = true
		v.wg.Go(func() { v.follow(f) })
	}
	f.join(1)
	return f, func() { f.join(-1) }, true
}

// feedLocked finds or makes the feed of a table for a caller that holds mu.
func (v *feeds) feedLocked(t *router.Table) *feed {
	f := v.byPool[t]
	if f == nil {
		f = newFeed(t, v.limits.WatchHistory, v.clock())
		v.byPool[t] = f
	}
	return f
}

// keepAll has pools remembered that nobody watches.
func (v *feeds) keepAll() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.keeps = true
}

// glance looks at the pools that nobody watches, and forgets those that are gone.
func (v *feeds) glance(pools map[router.PoolKey]*router.Table) {
	for _, f := range v.unfollowed(pools) {
		f.look(v.clock())
	}
}

func (v *feeds) unfollowed(pools map[router.PoolKey]*router.Table) (list []*feed) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for t, f := range v.byPool {
		if !f.followed && t.Lifetime().Err() != nil {
			delete(v.byPool, t)
		}
	}
	for _, t := range pools {
		if f := v.feedLocked(t); !f.followed && !v.closed && t.Lifetime().Err() == nil {
			list = append(list, f)
		}
	}
	return list
}

// happened is the recent history of a table; empty: none is kept.
func (v *feeds) happened(t *router.Table) []happening {
	v.mu.Lock()
	f := v.byPool[t]
	v.mu.Unlock()
	if f == nil {
		return []happening{}
	}
	return f.happened()
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

// forget ends the following of a pool that nobody watches any more, and takes its feed out unless it is
// kept; a watcher who comes later begins again.
func (v *feeds) forget(f *feed) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	over := v.ctx.Err() != nil || f.table.Lifetime().Err() != nil
	if !over && !f.left(v.limits.WatchPeriod, v.limits.WatchLinger) {
		return false
	}
	f.followed = false
	if over || !v.keeps {
		delete(v.byPool, f.table)
	}
	return true
}

// close ends every feed and waits for their goroutines.
func (v *feeds) close() {
	v.mu.Lock()
	v.closed = true
	v.mu.Unlock()
	v.cancel()
	v.wg.Wait()
}

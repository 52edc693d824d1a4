package controller

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/berthmaster/berthmaster/internal/router"
)

// tenures are all pools that this process is in charge of.
type tenures struct {
	pools *router.Pools
	// wake is called, from a goroutine of the tenure, when its table has changed.
	wake func(ctx context.Context, key types.NamespacedName)
	// serve does what a table needs asked of its engines, in a goroutine of the tenure, until ctx
	// ends.
	serve func(ctx context.Context, table *router.Table)

	mu    sync.RWMutex
	byKey map[types.NamespacedName]*tenure // guarded by mu
	byUID map[types.UID]*tenure            // guarded by mu
	work  sync.WaitGroup                   // what runs for tenures
}

func newTenures(
	pools *router.Pools, wake func(context.Context, types.NamespacedName), serve func(context.Context, *router.Table),
) *tenures {
	return &tenures{
		pools: pools, wake: wake, serve: serve,
		byKey: map[types.NamespacedName]*tenure{}, byUID: map[types.UID]*tenure{},
	}
}

// enter returns the tenure of a pool, and begins it if there is none.
func (ts *tenures) enter(ctx context.Context, key types.NamespacedName, uid types.UID, now time.Time) *tenure {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	if t := ts.byKey[key]; t != nil && t.uid == uid {
		return t
	}
	ts.leaveLocked(key)
	return ts.beginLocked(ctx, key, uid, now)
}

// again ends a tenure and begins another of the same pool, which has a table all along. Of what the table
// before knew, the ends of processes alone are true whoever leads; nothing might tell of them again.
func (ts *tenures) again(ctx context.Context, t *tenure, now time.Time) {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	if ts.byKey[t.key] == t {
		t.end()
		next := ts.beginLocked(ctx, t.key, t.uid, now)
		next.table.Gone(t.table.Ended(), now)
	}
}

// beginLocked begins a tenure for a caller that holds mu.
func (ts *tenures) beginLocked(ctx context.Context, key types.NamespacedName, uid types.UID, now time.Time) *tenure {
	t := &tenure{
		key: key, uid: uid, table: router.NewTable(router.PoolUID(uid), nil, now),
		ended: map[router.Incarnation]struct{}{}, nudged: make(chan struct{}, 1),
	}
	life, end := context.WithCancel(context.WithoutCancel(ctx))
	t.end = end
	ts.byKey[key], ts.byUID[uid] = t, t
	ts.work.Go(func() { ts.forward(life, t) })
	ts.work.Go(func() { ts.serve(life, t.table) })
	ts.pools.Put(router.PoolKey{Namespace: key.Namespace, Name: key.Name}, t.table)
	return t
}

// leave ends the tenure of a pool; nil: there is none.
func (ts *tenures) leave(key types.NamespacedName) *tenure {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	return ts.leaveLocked(key)
}

// leaveLocked is leave for a caller that holds mu.
func (ts *tenures) leaveLocked(key types.NamespacedName) *tenure {
	t := ts.byKey[key]
	if t == nil {
		return nil
	}
	delete(ts.byKey, key)
	delete(ts.byUID, t.uid)
	ts.pools.Remove(router.PoolKey{Namespace: key.Namespace, Name: key.Name}, t.table)
	t.end()
	return t
}

// get returns the tenure of a pool; nil: there is none.
func (ts *tenures) get(key types.NamespacedName) *tenure {
	ts.mu.RLock()
	defer ts.mu.RUnlock()
	return ts.byKey[key]
}

// table returns the table of the pool of that UID; nil: there is none.
func (ts *tenures) table(uid types.UID) *router.Table {
	ts.mu.RLock()
	defer ts.mu.RUnlock()
	if t := ts.byUID[uid]; t != nil {
		return t.table
	}
	return nil
}

// all lists every tenure.
func (ts *tenures) all() []*tenure {
	ts.mu.RLock()
	defer ts.mu.RUnlock()
	return slices.Collect(maps.Values(ts.byKey))
}

// in lists the tenures of a namespace.
func (ts *tenures) in(namespace string) []*tenure {
	ts.mu.RLock()
	defer ts.mu.RUnlock()
	var list []*tenure
	for key, t := range ts.byKey {
		if key.Namespace == namespace {
			list = append(list, t)
		}
	}
	return list
}

// close ends every tenure and waits for what ran for them.
func (ts *tenures) close() {
	ts.mu.Lock()
	for key := range ts.byKey {
		ts.leaveLocked(key)
	}
	ts.mu.Unlock()
	ts.work.Wait()
}

// wakePause keeps a table that changes all the time from reconciling all the time, while the first
// change after a pause is passed on at once.
const wakePause = 50 * time.Millisecond

// forward passes the table's changes on until the tenure ends.
func (ts *tenures) forward(ctx context.Context, t *tenure) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.table.Changes():
			ts.wake(ctx, t.key)
		case <-t.nudged:
			ts.wake(ctx, t.key)
		}
		pause := time.NewTimer(wakePause)
		select {
		case <-ctx.Done():
			pause.Stop()
			return
		case <-pause.C:
		}
	}
}

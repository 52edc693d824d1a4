package controller

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/berthmaster/berthmaster/api/v1alpha1"
	"github.com/berthmaster/berthmaster/internal/router"
)

// standing is how far a tenure has come. It moves forward only.
type standing int

const (
	// standingNew has no term yet: the table grants nothing.
	standingNew standing = iota
	// standingLeads has written its term.
	standingLeads
	// standingDeposed has met a higher term than its own and writes nothing any more.
	standingDeposed
)

// origin says whether anybody granted leases of the pool before this tenure.
type origin int

const (
	// originFirst is the pool's first term: nothing of it can be running anywhere.
	originFirst origin = iota
	// originTakenOver follows an earlier term.
	originTakenOver
)

// tenure is this process's time in charge of one pool.
type tenure struct {
	key   types.NamespacedName
	uid   types.UID
	table *router.Table
	end   context.CancelFunc // ends what runs for the tenure

	// reign is the reign in which the term was last seen to stand. Guarded by leadership.mu.
	reign int64
	// nudged holds a notice that leadership has changed.
	nudged chan struct{}

	// The fields of this block belong to the reconcile worker of the pool, of which there is never
	// more than one at a time.
	standing standing
	origin   origin
	term     int64
	// written is the pool as our last status write returned it; nil: none yet. The cache may lag
	// behind it.
	written *v1alpha1.InferencePool
	// told is what the table was last told by a rollout.
	told toldRollout
	// reportedAt is when a report was last written.
	reportedAt time.Time

	mu sync.Mutex
	// selector chooses the pool's pods. Guarded by mu.
	selector labels.Selector
	// pods are those that the router may count something on, selected or not; nil until somebody has
	// looked. Guarded by mu.
	pods map[types.UID]struct{}
	// proxy is spec.proxy. Guarded by mu.
	proxy v1alpha1.ProxySpec
	// nodes are those of the pool's pods whose cordons matter to it. Guarded by mu.
	nodes map[string]struct{}
	// ended are lives that pod events proved ended since the last reconcile that took note. The
	// table may not know them yet, and the cache may not show them any more. Guarded by mu.
	ended map[router.Incarnation]struct{}
}

// bury takes note that lives have ended, for the table now and for a reconcile under way, which may
// have read the pods before.
func (t *tenure) bury(lives []router.Incarnation, now time.Time) {
	if len(lives) == 0 {
		return
	}
	t.mu.Lock()
	for _, life := range lives {
		t.ended[life] = struct{}{}
	}
	t.mu.Unlock()
	t.table.Gone(lives, now)
}

// buried copies the lives that were proven ended and not settled yet.
func (t *tenure) buried() map[router.Incarnation]struct{} {
	t.mu.Lock()
	defer t.mu.Unlock()
	lives := make(map[router.Incarnation]struct{}, len(t.ended))
	for life := range t.ended {
		lives[life] = struct{}{}
	}
	return lives
}

// settle forgets lives of which a reconcile has taken note: it read the pods after them, and its
// fleet is without them.
func (t *tenure) settle(lives map[router.Incarnation]struct{}) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for life := range lives {
		delete(t.ended, life)
	}
}

// watch says which pods concern the pool.
func (t *tenure) watch(selector labels.Selector, pods map[types.UID]struct{}) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.selector, t.pods = selector, pods
}

// concerns reports whether a pod matters to the pool: it is selected, or something may run on it.
func (t *tenure) concerns(uid types.UID, set labels.Set) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if _, known := t.pods[uid]; known {
		return true
	}
	return t.selector != nil && t.selector.Matches(set)
}

// mayCount reports whether something may be counted on a pod: it matters to the pool, or nobody has looked
// yet which do.
func (t *tenure) mayCount(pod *corev1.Pod) bool {
	t.mu.Lock()
	unseen := t.pods == nil
	t.mu.Unlock()
	return unseen || t.concerns(pod.UID, labels.Set(pod.Labels))
}

// standsOn says of which nodes cordons matter to the pool.
func (t *tenure) standsOn(nodes map[string]struct{}) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.nodes = nodes
}

// isOn reports whether a cordon of the node matters to the pool.
func (t *tenure) isOn(node string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	_, on := t.nodes[node]
	return on
}

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

// again ends a tenure and begins another of the same pool, which has a table all along.
func (ts *tenures) again(ctx context.Context, t *tenure, now time.Time) {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	if ts.byKey[t.key] == t {
		t.end()
		ts.beginLocked(ctx, t.key, t.uid, now)
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

// nudge has the pool looked at because leadership has changed.
func (t *tenure) nudge() {
	select {
	case t.nudged <- struct{}{}:
	default: // a notice is pending already
	}
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

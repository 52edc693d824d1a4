package controller

import (
	"context"
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

// nudge has the pool looked at because leadership has changed.
func (t *tenure) nudge() {
	select {
	case t.nudged <- struct{}{}:
	default: // a notice is pending already
	}
}

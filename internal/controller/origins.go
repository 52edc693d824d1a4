package controller

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"

	"github.com/berthmaster/berthmaster/internal/router"
)

// origins remembers where engines come from, to tell whether executions that the router did not
// grant may run on one that it meets: those of an earlier term on an engine older than this
// process, and those of another pool on an engine that served it.
type origins struct {
	mu sync.Mutex
	// old are lives that had begun when this process first saw the cluster. Guarded by mu.
	old map[router.Incarnation]struct{}
	// served is the pool that an engine last served. Guarded by mu.
	served map[string]types.UID
}

func newOrigins() *origins {
	return &origins{old: map[router.Incarnation]struct{}{}, served: map[string]types.UID{}}
}

// met takes note of lives that were there before this process.
func (o *origins) met(lives []router.Incarnation) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, life := range lives {
		o.old[life] = struct{}{}
	}
}

// forget drops lives whose pod is gone or whose process has ended.
func (o *origins) forget(lives []router.Incarnation) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, life := range lives {
		delete(o.old, life)
		delete(o.served, string(life))
	}
}

// isOld reports whether a life had begun when this process first saw the cluster.
func (o *origins) isOld(life router.Incarnation) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	_, old := o.old[life]
	return old
}

// servedOther reports whether an engine served another pool before.
func (o *origins) servedOther(engine string, pool types.UID) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	last, known := o.served[engine]
	return known && last != pool
}

// serve takes note that an engine serves a pool.
func (o *origins) serve(engine string, pool types.UID) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.served[engine] = pool
}

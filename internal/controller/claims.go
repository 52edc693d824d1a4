package controller

import (
	"cmp"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/berthmaster/berthmaster/internal/sglang"
)

// claimant is a pool that claims engines.
type claimant struct {
	uid     types.UID
	key     types.NamespacedName
	created time.Time
}

// claims says whose an engine is: it belongs to the oldest pool that claims it, because two routers
// that count apart would each believe that it has room. Engines are known by their canonical
// host:port.
type claims struct {
	mu       sync.Mutex
	byEngine map[string][]claimant             // guarded by mu; the oldest first
	byPool   map[types.UID]map[string]struct{} // guarded by mu
}

func newClaims() *claims {
	return &claims{byEngine: map[string][]claimant{}, byPool: map[types.UID]map[string]struct{}{}}
}

// stake replaces what a pool claims. It returns the engines among them that an older pool has, and the
// pools that must look again because a claim beside theirs came or went.
func (c *claims) stake(who claimant, engines map[string]struct{}) (lost map[string]struct{}, others []types.NamespacedName) {
	c.mu.Lock()
	defer c.mu.Unlock()
	before := c.byPool[who.uid]
	for engine := range before {
		if _, still := engines[engine]; !still {
			others = append(others, c.removeLocked(who.uid, engine)...)
		}
	}
	for engine := range engines {
		if _, already := before[engine]; !already {
			others = append(others, c.addLocked(who, engine)...)
		}
	}
	c.byPool[who.uid] = engines
	lost = map[string]struct{}{}
	for engine := range engines {
		if c.byEngine[engine][0].uid != who.uid {
			lost[engine] = struct{}{}
		}
	}
	return lost, others
}

// withdraw ends all claims of a pool and returns the pools that must look again.
func (c *claims) withdraw(pool types.UID) []types.NamespacedName {
	_, others := c.stake(claimant{uid: pool}, nil)
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.byPool, pool)
	return others
}

// addLocked adds a claim and returns the others' pools. The caller holds mu.
func (c *claims) addLocked(who claimant, engine string) []types.NamespacedName {
	others := keysOf(c.byEngine[engine])
	list := append(c.byEngine[engine], who)
	slices.SortFunc(list, func(a, b claimant) int {
		return cmp.Or(a.created.Compare(b.created), cmp.Compare(a.uid, b.uid))
	})
	c.byEngine[engine] = list
	return others
}

// removeLocked takes a claim away and returns the others' pools. The caller holds mu.
func (c *claims) removeLocked(pool types.UID, engine string) []types.NamespacedName {
	rest := slices.DeleteFunc(c.byEngine[engine], func(other claimant) bool { return other.uid == pool })
	if len(rest) == 0 {
		delete(c.byEngine, engine)
		return nil
	}
	c.byEngine[engine] = rest
	return keysOf(rest)
}

func keysOf(list []claimant) []types.NamespacedName {
	var keys []types.NamespacedName
	for _, who := range list {
		keys = append(keys, who.key)
	}
	return keys
}

// claim stakes the pool's claims on the engines that it sees, and wakes whom that concerns.
func (r *Reconciler) claim(w *world) []types.NamespacedName {
	engines := map[string]struct{}{}
	for i := range w.pods {
		if s := &w.pods[i]; s.process == processLives {
			addEngine(engines, s.url)
		}
	}
	for _, endpoint := range w.pool.Spec.Backends.Endpoints {
		addEngine(engines, string(endpoint.URL))
	}
	who := claimant{uid: w.pool.UID, key: w.key, created: w.pool.CreationTimestamp.Time}
	lost, others := r.claims.stake(who, engines)
	w.lost = lost
	return others
}

// addEngine adds the engine at a base URL; one that is none claims nothing.
func addEngine(engines map[string]struct{}, url string) {
	if engine := engineAt(url); engine != "" {
		engines[engine] = struct{}{}
	}
}

// engineAt is the canonical host:port of a base URL; empty: it is none.
func engineAt(url string) string {
	base, err := sglang.ParseBaseURL(url)
	if err != nil {
		return ""
	}
	return base.HostPort()
}

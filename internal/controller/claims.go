package controller

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/berthmaster/berthmaster/api/v1alpha1"
	"github.com/berthmaster/berthmaster/internal/sglang"
)

// claimant is a pool that claims engines.
type claimant struct {
	uid     types.UID
	key     types.NamespacedName
	created time.Time
}

// stake is what a pool claims.
type stake struct {
	who     claimant
	engines map[string]struct{}
}

// claims says whose an engine is: it belongs to the oldest pool that claims it, because two routers
// that count apart would each believe that it has room. Engines are known by their canonical
// host:port.
type claims struct {
	mu       sync.Mutex
	byEngine map[string][]claimant          // guarded by mu; the oldest first
	byPool   map[types.NamespacedName]stake // guarded by mu

	// surveyed is set once every pool that there was when this process began has staked. Guarded by
	// survey, which is held meanwhile.
	survey   sync.Mutex
	surveyed bool
}

func newClaims() *claims {
	return &claims{byEngine: map[string][]claimant{}, byPool: map[types.NamespacedName]stake{}}
}

// stake replaces what a pool claims, or what an earlier pool of its name did. It returns the engines
// among them that an older pool has, and the pools that must look again because a claim beside theirs
// came or went.
func (c *claims) stake(who claimant, engines map[string]struct{}) (lost map[string]struct{}, others []types.NamespacedName) {
	c.mu.Lock()
	defer c.mu.Unlock()
	before := c.byPool[who.key]
	if before.who.uid != who.uid {
		others = append(others, c.withdrawLocked(who.key)...)
		before = stake{}
	}
	for engine := range before.engines {
		if _, still := engines[engine]; !still {
			others = append(others, c.removeLocked(who.uid, engine)...)
		}
	}
	for engine := range engines {
		if _, already := before.engines[engine]; !already {
			others = append(others, c.addLocked(who, engine)...)
		}
	}
	c.byPool[who.key] = stake{who: who, engines: engines}
	lost = map[string]struct{}{}
	for engine := range engines {
		if c.byEngine[engine][0].uid != who.uid {
			lost[engine] = struct{}{}
		}
	}
	return lost, others
}

// withdraw ends all claims of a pool and returns the pools that must look again.
func (c *claims) withdraw(key types.NamespacedName) []types.NamespacedName {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.withdrawLocked(key)
}

// withdrawLocked is withdraw for a caller that holds mu.
func (c *claims) withdrawLocked(key types.NamespacedName) []types.NamespacedName {
	var others []types.NamespacedName
	for engine := range c.byPool[key].engines {
		others = append(others, c.removeLocked(c.byPool[key].who.uid, engine)...)
	}
	delete(c.byPool, key)
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

// claim stakes the pool's claims on the engines that it sees, and returns whom that concerns. Before the
// first, every pool's are staked: a younger pool that is looked at first after a restart must not take
// an engine that an older one has.
func (r *Reconciler) claim(ctx context.Context, w *world) ([]types.NamespacedName, error) {
	if err := r.surveyClaims(ctx); err != nil {
		return nil, err
	}
	lost, others := r.claims.stake(claimantOf(w.pool), enginesOf(&w.pool.Spec, w.pods))
	w.lost = lost
	return others, nil
}

// surveyClaims stakes the claims of every pool that the cache has, once.
func (r *Reconciler) surveyClaims(ctx context.Context) error {
	r.claims.survey.Lock()
	defer r.claims.survey.Unlock()
	if r.claims.surveyed {
		return nil
	}
	var list v1alpha1.InferencePoolList
	if err := r.client.List(ctx, &list); err != nil {
		return fmt.Errorf("list the pools that may claim engines: %w", err)
	}
	for i := range list.Items {
		pool := &list.Items[i]
		if pool.DeletionTimestamp != nil {
			continue
		}
		pods, err := podsOf(ctx, r.client, pool)
		if err != nil {
			return err
		}
		r.claims.stake(claimantOf(pool), enginesOf(&pool.Spec, sightPods(pods, &pool.Spec.Backends)))
	}
	r.claims.surveyed = true
	return nil
}

func claimantOf(pool *v1alpha1.InferencePool) claimant {
	return claimant{
		uid: pool.UID, created: pool.CreationTimestamp.Time,
		key: types.NamespacedName{Namespace: pool.Namespace, Name: pool.Name},
	}
}

// enginesOf are the engines that a pool claims.
func enginesOf(spec *v1alpha1.InferencePoolSpec, pods []sighting) map[string]struct{} {
	engines := map[string]struct{}{}
	for i := range pods {
		if s := &pods[i]; s.process == processLives {
			addEngine(engines, s.url)
		}
	}
	for _, endpoint := range spec.Backends.Endpoints {
		addEngine(engines, string(endpoint.URL))
	}
	return engines
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

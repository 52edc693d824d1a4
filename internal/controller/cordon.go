package controller

import (
	"context"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/berthmaster/berthmaster/api/v1alpha1"
	"github.com/berthmaster/berthmaster/internal/router"
)

// +kubebuilder:rbac:groups="",resources=nodes,verbs=list;watch

// nodesPause is when a pool looks again that waits for the first list of nodes.
const nodesPause = time.Second

// Informers is where nodes are watched, from the first pool on that asks for it. A manager's cache is
// one.
type Informers interface {
	GetInformer(ctx context.Context, object client.Object, options ...cache.InformerGetOption) (cache.Informer, error)
}

// nodeSight says how much a decision knows about the nodes of its pods.
type nodeSight int

const (
	// nodesIgnored: the pool does not ask.
	nodesIgnored nodeSight = iota
	// nodesKnown: every cordon that the API server has told of.
	nodesKnown
	// nodesAwaited: the first list has not come.
	nodesAwaited
	// nodesBarred: this manager may not look at nodes.
	nodesBarred
)

// cordons knows which nodes take no new pods. It watches none until somebody asks.
type cordons struct {
	informers Informers // nil: this manager may not look at nodes
	// used reports whether pods of some pool are on a node; nudge wakes those pools.
	used  func(node string) bool
	nudge func(node string)

	mu sync.Mutex
	// watch tells whether the first list has been handled; nil: nobody has asked. Guarded by mu.
	watch toolscache.ResourceEventHandlerRegistration
	// cordoned are the nodes with spec.unschedulable, and, false, those of them that have been deleted:
	// what runs there is about to be deleted, too. Guarded by mu.
	cordoned map[string]bool
}

func newCordons(informers Informers, all func() []*tenure) *cordons {
	c := &cordons{informers: informers, cordoned: map[string]bool{}}
	c.nudge = func(node string) {
		for _, t := range all() {
			if t.isOn(node) {
				t.nudge()
			}
		}
	}
	c.used = func(node string) bool {
		for _, t := range all() {
			if t.isOn(node) {
				return true
			}
		}
		return false
	}
	return c
}

// sight begins the watch if it has not begun, and says what is known. It does not wait.
func (c *cordons) sight(ctx context.Context) (nodeSight, error) {
	if c.informers == nil {
		return nodesBarred, nil
	}
	c.mu.Lock()
	begun := c.watch
	c.mu.Unlock()
	if begun == nil {
		informer, err := c.informers.GetInformer(ctx, &corev1.Node{}, cache.BlockUntilSynced(false))
		if err != nil {
			return nodesAwaited, fmt.Errorf("watch the nodes: %w", err)
		}
		if begun, err = c.follow(informer); err != nil {
			return nodesAwaited, fmt.Errorf("watch the nodes: %w", err)
		}
	}
	if !begun.HasSynced() {
		return nodesAwaited, nil
	}
	return nodesKnown, nil
}

// follow has the informer's news handled, once.
func (c *cordons) follow(informer cache.Informer) (toolscache.ResourceEventHandlerRegistration, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.watch != nil {
		return c.watch, nil
	}
	watch, err := informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		AddFunc:    func(object any) { c.saw(object) },
		UpdateFunc: func(_, object any) { c.saw(object) },
		DeleteFunc: func(object any) { c.lost(object) },
	})
	if err == nil {
		c.watch = watch
	}
	return watch, err
}

// saw takes note of a node as it is.
func (c *cordons) saw(object any) {
	node, isNode := object.(*corev1.Node)
	if !isNode {
		return
	}
	c.mu.Lock()
	_, before := c.cordoned[node.Name]
	if node.Spec.Unschedulable {
		c.cordoned[node.Name] = true
	} else {
		delete(c.cordoned, node.Name)
	}
	c.mu.Unlock()
	if before != node.Spec.Unschedulable {
		c.nudge(node.Name)
	}
}

// lost takes note of a node that is not there any more, for as long as pods of it are.
func (c *cordons) lost(object any) {
	name, err := toolscache.DeletionHandlingObjectToName(object)
	if err != nil {
		return
	}
	if c.used(name.Name) {
		c.mu.Lock()
		c.cordoned[name.Name] = false
		c.mu.Unlock()
		c.nudge(name.Name)
	} else {
		c.mu.Lock()
		delete(c.cordoned, name.Name)
		c.mu.Unlock()
	}
	c.prune()
}

// prune forgets deleted nodes that no pod is on.
func (c *cordons) prune() {
	c.mu.Lock()
	var gone []string
	for node, exists := range c.cordoned {
		if !exists {
			gone = append(gone, node)
		}
	}
	c.mu.Unlock()
	for _, node := range gone {
		if c.used(node) {
			continue
		}
		c.mu.Lock()
		if exists, known := c.cordoned[node]; known && !exists {
			delete(c.cordoned, node)
		}
		c.mu.Unlock()
	}
}

// on reports whether a node takes no new pods.
func (c *cordons) on(node string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	_, cordoned := c.cordoned[node]
	return cordoned
}

// readCordons finds the pods whose nodes are cordoned, if the spec asks. From here on a change of such
// a node wakes the pool, so that none is missed between this look and the next.
func (r *Reconciler) readCordons(ctx context.Context, w *world) error {
	nodes := map[string]struct{}{}
	if policy := w.pool.Spec.Backends.OnCordon; policy == "" || policy == v1alpha1.CordonIgnore {
		w.nodes = nodesIgnored
		w.tenure.standsOn(nil)
		return nil
	}
	for i := range w.pods {
		if node := w.pods[i].node; node != "" {
			nodes[node] = struct{}{}
		}
	}
	w.tenure.standsOn(nodes)
	var err error
	w.nodes, err = r.cordons.sight(ctx)
	for i := range w.pods {
		w.pods[i].cordoned = w.nodes == nodesKnown && r.cordons.on(w.pods[i].node)
	}
	return err
}

// cordonCause is the drain that a cordon starts; the zero value: none. While the nodes are awaited, a
// drain goes on of which the status says that it began: to know no cordon is not to know that there is
// none.
func cordonCause(w *world, s *sighting, began time.Time) drainCause {
	undecided := w.nodes == nodesAwaited && s.node != "" && !began.IsZero()
	if !s.cordoned && !undecided {
		return drainCause{}
	}
	cause := drainCause{reason: v1alpha1.ReasonNodeCordoned, mode: router.DrainMove}
	if w.pool.Spec.Backends.OnCordon == v1alpha1.CordonKeep {
		cause.mode = router.DrainKeep
	}
	return cause
}

// TrimNode is the transform of the manager's cache of nodes: it keeps what this package reads.
// Objects that are no nodes pass as they are.
func TrimNode(object any) (any, error) {
	node, ok := object.(*corev1.Node)
	if !ok {
		return object, nil
	}
	trimmed := &corev1.Node{Spec: corev1.NodeSpec{Unschedulable: node.Spec.Unschedulable}}
	trimmed.Name, trimmed.UID, trimmed.ResourceVersion = node.Name, node.UID, node.ResourceVersion
	return trimmed, nil
}

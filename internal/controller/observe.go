package controller

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/berthmaster/berthmaster/api/v1alpha1"
	"github.com/berthmaster/berthmaster/internal/prober"
	"github.com/berthmaster/berthmaster/internal/router"
	"github.com/berthmaster/berthmaster/internal/sglang"
)

// world is all that a decision looks at.
type world struct {
	key types.NamespacedName
	// pool is nil when there is no such pool, or it is being deleted; nothing else is set then.
	pool *v1alpha1.InferencePool
	// setBack: its status was set back by somebody, and what we last wrote stands in its place here.
	setBack bool
	tenure  *tenure
	// admits refuses static endpoints that the manager may not call; nil: none.
	admits func(sglang.BaseURL) error
	// leaving is a pool that is being deleted and may have paused engines, which are among strays then;
	// pool is nil.
	leaving *v1alpha1.InferencePool
	// leavingSince is when this process first saw that.
	leavingSince time.Time
	// told is what the router was last told by a rollout.
	told toldRollout
	// engines is what this process remembers of its orders to engines, by incarnation.
	engines map[router.Incarnation]engineMemory
	// standing, origin and term are the tenure's when the world was seen.
	standing standing
	origin   origin
	term     int64
	election Election
	// self is this process.
	self v1alpha1.RouterStatus
	// authority is this process's when it began to look, in that reign; seenIn is the reign in which
	// the tenure's term was last seen to stand.
	authority     authority
	reign, seenIn int64
	// pods are the backends that the selector finds, as the API server has them.
	pods []sighting
	// nodes says whether the cordons among pods are known.
	nodes nodeSight
	// strays are incarnations that the router may count something on and that are not among pods.
	strays []stray
	// ended are lives that pod events proved ended and that no reconcile has taken note of.
	ended map[router.Incarnation]struct{}
	// verdicts are the prober's, by incarnation.
	verdicts map[string]prober.Observation
	snapshot router.Snapshot
	// keys gives the engines' credentials at the time of each call. keysFault says why they are not
	// what the secret has; rereadAt is when to read it again, and zero if the pool names none.
	keys      sglang.KeySource
	keysFault string
	rereadAt  time.Time
	// lost are the engines, by canonical host:port, that an older pool claims.
	lost map[string]struct{}
	// servedOther reports whether an engine, by its key, served another pool before.
	servedOther func(engine string) bool
	// old reports whether a life had begun before this process did.
	old func(life router.Incarnation) bool
}

// observe reads everything that a decision about a pool needs. A pool that is missing is seen, not
// an error. Until the tenure leads, the API server is asked itself and not the cache: a term is
// raised, and executions of earlier terms are judged, on nothing stale.
func (r *Reconciler) observe(ctx context.Context, key types.NamespacedName, now time.Time) (world, error) {
	w := world{key: key, self: r.self, admits: r.admits}
	// Authority is looked at first: what is read after that is later than what any earlier leader did.
	w.election = r.leadership.election
	w.authority, w.reign = r.leadership.at(now)
	pool, err := r.readPool(ctx, key, w.authority, w.reign)
	if err != nil || pool == nil {
		return w, err
	}
	if pool.DeletionTimestamp != nil {
		return w, r.observeLeaving(ctx, &w, pool, now)
	}
	w.pool = pool
	w.engines = r.desk.remember(pool.UID)
	if earlier := r.tenures.get(key); earlier != nil && earlier.uid != pool.UID {
		r.dismiss(earlier.uid)
	}
	w.tenure = r.tenures.enter(ctx, key, pool.UID, now)
	w.standing, w.origin, w.term = w.tenure.standing, w.tenure.origin, w.tenure.term
	w.restore()
	w.told = w.tenure.told
	w.ended = w.tenure.buried()
	w.snapshot = w.tenure.table.Snapshot(now)
	w.verdicts = r.prober.Latest(string(pool.UID))
	w.old = r.origins.isOld
	w.servedOther = func(engine string) bool { return r.origins.servedOther(engine, pool.UID) }
	w.seenIn = r.leadership.reignOf(w.tenure)
	r.readCredentials(ctx, &w, pool, now)
	reader := r.readerFor(w.tenure, w.authority, w.reign)
	if err := r.readPods(ctx, reader, &w); err != nil {
		return w, err
	}
	if err := r.readCordons(ctx, &w); err != nil {
		return w, err
	}
	others, err := r.claim(ctx, &w)
	if err != nil {
		return w, err
	}
	for _, other := range others {
		r.wake(ctx, other)
	}
	return w, r.readStrays(ctx, reader, &w)
}

// readerFor is whom to ask about a pool: the cache, but the API server itself where a term is about
// to be raised, or to be seen to stand.
func (r *Reconciler) readerFor(t *tenure, command authority, reign int64) client.Reader {
	if command == authorityHeld && (t == nil || t.standing == standingNew || r.leadership.reignOf(t) != reign) {
		return r.live
	}
	return r.client
}

// readPool returns the pool as it was last written or read, whichever is newer; nil: there is none, or
// none that this process has to do with any more.
func (r *Reconciler) readPool(ctx context.Context, key types.NamespacedName, command authority, reign int64) (*v1alpha1.InferencePool, error) {
	t := r.tenures.get(key)
	reader := r.readerFor(t, command, reign)
	var pool v1alpha1.InferencePool
	if err := reader.Get(ctx, key, &pool); err != nil {
		if apierrors.IsNotFound(err) {
			return nil, nil
		}
		return nil, fmt.Errorf("read the pool: %w", err)
	}
	if pool.DeletionTimestamp != nil && !r.mustFinish(&pool, command) {
		return nil, nil
	}
	if t != nil && t.written != nil && t.written.UID == pool.UID && pool.DeletionTimestamp == nil && newer(t.written, &pool) {
		return t.written.DeepCopy(), nil
	}
	return &pool, nil
}

// restore puts what we last wrote in the place of a status that somebody has set back while we lead:
// facts that were wiped hold none the less, until they are written again.
func (w *world) restore() {
	if w.standing == standingLeads && w.pool.Status.Term < w.term && w.tenure.written != nil {
		w.pool.Status, w.setBack = *w.tenure.written.Status.DeepCopy(), true
	}
}

// newer reports whether a is a later state of the object than b.
func newer(a, b metav1.Object) bool {
	order, err := resourceversion.CompareResourceVersion(a.GetResourceVersion(), b.GetResourceVersion())
	return err == nil && order > 0
}

// readPods finds the pods that the spec selects.
func (r *Reconciler) readPods(ctx context.Context, reader client.Reader, w *world) error {
	backends := &w.pool.Spec.Backends
	if backends.Selector == nil {
		w.tenure.watch(nil, w.countedOn())
		return nil
	}
	selector, err := selectorOf(backends)
	if err != nil {
		return err
	}
	// From here on events of such pods wake the pool, so that none is missed between this list and
	// the next.
	w.tenure.watch(selector, w.countedOn())
	pods, err := podsOf(ctx, reader, w.pool)
	if err != nil {
		return err
	}
	w.pods = sightPods(pods, backends)
	for i := range pods {
		for _, life := range endedLives(&pods[i]) {
			w.ended[life] = struct{}{}
		}
	}
	return nil
}

func selectorOf(backends *v1alpha1.BackendsSpec) (labels.Selector, error) {
	selector, err := metav1.LabelSelectorAsSelector(backends.Selector.LabelSelector())
	if err != nil {
		return nil, fmt.Errorf("spec.backends.selector: %w", err)
	}
	return selector, nil
}

// podsOf lists the pods that a pool selects, the oldest first: of two at one address the older keeps it.
func podsOf(ctx context.Context, reader client.Reader, pool *v1alpha1.InferencePool) ([]corev1.Pod, error) {
	if pool.Spec.Backends.Selector == nil {
		return nil, nil
	}
	selector, err := selectorOf(&pool.Spec.Backends)
	if err != nil {
		return nil, err
	}
	var list corev1.PodList
	if err := reader.List(ctx, &list, client.InNamespace(pool.Namespace), client.MatchingLabelsSelector{Selector: selector}); err != nil {
		return nil, fmt.Errorf("list the pods that spec.backends.selector selects: %w", err)
	}
	slices.SortFunc(list.Items, func(a, b corev1.Pod) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
	})
	return list.Items, nil
}

// sightPods reads pods as backends, but for those that are over.
func sightPods(pods []corev1.Pod, backends *v1alpha1.BackendsSpec) []sighting {
	var seen []sighting
	for i := range pods {
		if !podOver(&pods[i]) {
			seen = append(seen, sightPod(&pods[i], backends))
		}
	}
	return seen
}

// countedOn lists the pods that the router may count something on, and before this process leads those
// that the status names: the leader of before may.
func (w *world) countedOn() map[types.UID]struct{} {
	pods := map[types.UID]struct{}{}
	add := func(life router.Incarnation) {
		if uid, isPod := podOf(life); isPod {
			pods[uid] = struct{}{}
		}
	}
	for i := range w.snapshot.Backends {
		add(w.snapshot.Backends[i].Incarnation)
	}
	if w.standing == standingNew {
		for i := range w.pool.Status.Backends {
			add(router.Incarnation(w.pool.Status.Backends[i].Incarnation))
		}
	}
	return pods
}

// nobodys are the ends of lives that the status does not name: no earlier term counts anything there.
func (w *world) nobodys() map[router.Incarnation]struct{} {
	lives := maps.Clone(w.ended)
	for i := range w.pool.Status.Backends {
		delete(lives, router.Incarnation(w.pool.Status.Backends[i].Incarnation))
	}
	return lives
}

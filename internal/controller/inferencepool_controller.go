package controller

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/berthmaster/berthmaster/api/v1alpha1"
	"github.com/berthmaster/berthmaster/internal/prober"
	"github.com/berthmaster/berthmaster/internal/router"
	"github.com/berthmaster/berthmaster/internal/sglang"
)

// +kubebuilder:rbac:groups=inference.berthmaster.io,resources=inferencepools,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=inference.berthmaster.io,resources=inferencepools/status,verbs=patch
// +kubebuilder:rbac:groups="",resources=pods,verbs=get;list;watch
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

const (
	// concurrency is how many pools are reconciled at once. No reconcile waits for an engine, so a
	// few are enough for thousands of pools.
	concurrency = 4
	// conflictPause is how long to wait for the cache to show what another writer did.
	conflictPause = 100 * time.Millisecond
	// tablePoll is how often AwaitPools looks.
	tablePoll = 50 * time.Millisecond
)

// Prober watches the health of engines. *prober.Prober is one.
type Prober interface {
	// Set makes targets the targets of the pool of that UID.
	Set(poolUID string, targets []prober.Target)
	// Forget ends all targets of a pool.
	Forget(poolUID string)
	// Pause says that this operator is about to pause a target's engine.
	Pause(key prober.Key) error
	// Resume says that the engine runs again.
	Resume(key prober.Key) error
	// Latest is what is known of a pool's targets, by incarnation.
	Latest(poolUID string) map[string]prober.Observation
}

// Config is what a Reconciler works with. Every field is required, but for Nodes.
type Config struct {
	// Client reads from the cache and writes to the API server.
	Client client.Client
	// Live reads from the API server itself.
	Live client.Reader
	// Pools is where the servers find the tables of pools; the reconciler puts and removes them.
	Pools *router.Pools
	// Nodes is where nodes are watched once a pool asks for it; nil: this manager has no right to.
	Nodes Informers
	// NewProber makes the prober that reports to sink. The reconciler's caller closes it, after the
	// reconciler.
	NewProber func(sink prober.Sink) Prober
	// Settle carries out what a pool's table needs asked of its engines, with the keys that they have
	// at the time, until ctx ends. It runs in a goroutine of its own for each pool.
	Settle func(ctx context.Context, table *router.Table, keys sglang.KeySource)
	// Self is this replica, as the status names it while it leads.
	Self v1alpha1.RouterStatus
	// Admits refuses static endpoints that the manager may not call; nil: none.
	Admits func(sglang.BaseURL) error
	// Engines carries the orders to engines: to pause, and to go on.
	Engines http.RoundTripper
	// Election says whether this process has to be elected first; the zero value: it leads.
	Election Election
	// Events takes the events.
	Events EventRecorder
	// Clock tells the time.
	Clock clock.PassiveClock
}

// Reconciler keeps routers in step with pools. See the package comment.
type Reconciler struct {
	client     client.Client
	live       client.Reader
	prober     Prober
	events     chronicle
	clock      clock.PassiveClock
	admits     func(sglang.BaseURL) error // nil: every endpoint
	tenures    *tenures
	origins    *origins
	claims     *claims
	keyring    *keyring
	cordons    *cordons
	desk       *desk
	leadership leadership
	self       v1alpha1.RouterStatus
	changed    chan event.TypedGenericEvent[types.NamespacedName]
}

// New returns a reconciler. The caller must Close it once it no longer reconciles.
func New(config Config) *Reconciler {
	r := &Reconciler{
		client: config.Client, live: config.Live, events: chronicle{config.Events}, clock: config.Clock, admits: config.Admits,
		leadership: leadership{election: config.Election}, self: config.Self,
		origins: newOrigins(), claims: newClaims(), keyring: newKeyring(),
		desk:    newDesk(config.Engines, config.Clock),
		changed: make(chan event.TypedGenericEvent[types.NamespacedName]),
	}
	r.tenures = newTenures(config.Pools, r.wake, func(ctx context.Context, table *router.Table) {
		config.Settle(ctx, table, r.keyring.source(types.UID(table.Snapshot(r.clock.Now()).Pool)))
	})
	r.cordons = newCordons(config.Nodes, r.tenures.all)
	r.prober = config.NewProber(r.tenures)
	return r
}

// wake has a pool reconciled because its table has changed, or another pool's claims have.
func (r *Reconciler) wake(ctx context.Context, key types.NamespacedName) {
	select {
	case r.changed <- event.TypedGenericEvent[types.NamespacedName]{Object: key}:
	case <-ctx.Done():
	}
}

// Close forgets every pool: their tables are not found any more, and no engine is told anything.
func (r *Reconciler) Close() {
	r.desk.close()
	r.tenures.close()
}

// AwaitPools returns once every pool that the cache lists has a table, so that a client that calls
// after a restart is not told that its pool does not exist. It fails when ctx ends first.
func (r *Reconciler) AwaitPools(ctx context.Context) error {
	return wait.PollUntilContextCancel(ctx, tablePoll, true, func(ctx context.Context) (bool, error) {
		var list v1alpha1.InferencePoolList
		// Nothing is changed in what is listed, so thousands of pools need not be copied at every look.
		if err := r.client.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
			return false, fmt.Errorf("list the pools: %w", err)
		}
		for i := range list.Items {
			pool := &list.Items[i]
			if pool.DeletionTimestamp == nil && r.tenures.table(pool.UID) == nil {
				return false, nil
			}
		}
		return true, nil
	})
}

// SetupWithManager has the manager run the reconciler.
func (r *Reconciler) SetupWithManager(manager ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(manager).
		Named("inferencepool").
		For(&v1alpha1.InferencePool{}, builder.WithPredicates(news())).
		WatchesRawSource(source.TypedKind(manager.GetCache(), &corev1.Pod{}, r.podHandler())).
		WatchesRawSource(source.Channel(r.changed, tableHandler())).
		WithOptions(controller.Options{MaxConcurrentReconciles: concurrency}).
		WithLogConstructor(r.logOf(manager.GetLogger())).
		Complete(r)
}

// Reconcile brings one pool's router, probes and status in step with what is asked and seen.
func (r *Reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	now := r.clock.Now()
	seen, err := r.observe(ctx, request.NamespacedName, now)
	if err != nil {
		return ctrl.Result{}, err
	}
	todo := decide(seen, now)
	if err := r.apply(ctx, &seen, &todo, now); err != nil {
		return afterError(err) // of a plan that was not carried out there is nothing true to report
	}
	held, err := r.report(ctx, &seen, &todo)
	if err != nil {
		return afterError(err)
	}
	return ctrl.Result{RequeueAfter: cmp.Or(r.overtaken(&seen, &todo), r.again(&todo, held))}, nil
}

// afterError requeues a conflict without a word: someone else wrote first, and what they wrote will
// be seen.
func afterError(err error) (ctrl.Result, error) {
	if apierrors.IsConflict(err) || errors.Is(err, errTooLate) {
		return ctrl.Result{RequeueAfter: conflictPause}, nil
	}
	return ctrl.Result{}, err
}

// overtaken is when a pool must be looked at because it is to follow from now on, or leadership has
// changed while it was looked at; 0: neither.
func (r *Reconciler) overtaken(w *world, p *plan) time.Duration {
	command, reign := r.leadership.at(r.clock.Now())
	if reign != w.reign || command == authorityHeld && w.authority == authorityNone || p.course == courseYield && w.election == ElectionAwaited {
		return time.Millisecond
	}
	return 0
}

// again is when the pool must be looked at although nothing happens; 0: never.
func (r *Reconciler) again(p *plan, held time.Duration) time.Duration {
	if p.deadline.IsZero() {
		return held
	}
	deadline := max(p.deadline.Sub(r.clock.Now()), time.Millisecond)
	return min(cmp.Or(held, deadline), deadline)
}

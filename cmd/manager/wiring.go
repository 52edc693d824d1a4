package main

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/berthmaster/berthmaster/api/v1alpha1"
	"github.com/berthmaster/berthmaster/internal/controller"
	"github.com/berthmaster/berthmaster/internal/prober"
	"github.com/berthmaster/berthmaster/internal/router"
	"github.com/berthmaster/berthmaster/internal/router/proxy"
	"github.com/berthmaster/berthmaster/internal/router/proxy/wire"
	"github.com/berthmaster/berthmaster/internal/router/server"
	"github.com/berthmaster/berthmaster/internal/settler"
	"github.com/berthmaster/berthmaster/internal/sglang"
)

// serve runs the manager until ctx ends.
func serve(ctx context.Context, cluster *rest.Config, o *options) error {
	pools := router.NewPools()
	guard, manager, err := guarded(ctx, cluster, pools, o)
	if err != nil {
		return err
	}
	name, err := o.self()
	if err != nil {
		return err
	}
	told := newTelemetry(pools, guard.doors)
	engines := guard.reach.NewTransport()
	defer engines.CloseIdleConnections()
	reconciler := controller.New(controller.Config{
		Client: told.StatusWrites(manager.GetClient()), Live: manager.GetAPIReader(), Pools: pools,
		NewProber: func(sink prober.Sink) controller.Prober {
			told.probes = prober.New(sink, prober.Config{Transport: told.Engines(engines), Landed: told.Probed})
			return told.probes
		},
		Settle: func(ctx context.Context, table *router.Table, keys sglang.KeySource) {
			settler.Run(ctx, table, settler.Config{Transport: told.Engines(engines), Keys: keys})
		},
		Engines: told.Engines(engines), Admits: guard.reach.Endpoint,
		Nodes:  nodesFor(manager, o),
		Events: manager.GetEventRecorder("berthmaster"), Clock: clock.RealClock{},
		Election: o.election.electionOf(), Self: name,
	})
	defer func() { told.probes.Close() }()
	defer reconciler.Close()
	if err := reconciler.SetupWithManager(manager); err != nil {
		return fmt.Errorf("set up the controller: %w", err)
	}
	clients, err := electionClients(cluster, o)
	if err != nil {
		return err
	}
	self, err := newReplica(clients, o, reconciler)
	if err != nil {
		return err
	}
	keys, follow, err := o.keys(ctx, clients)
	if err != nil {
		return err
	}
	leases, err := newLeaseAPI(manager.GetLogger(), o, server.Config{Pools: pools, Keys: keys, Leadership: self.leadership()},
		proxy.Config{
			Pools: pools, Settings: proxied(reconciler), Transport: wire.New(wire.Config{Dial: guard.reach.Dial}), Refused: told.refused,
		}, guard, reconciler.AwaitPools)
	if err != nil {
		return err
	}
	defer told.withdraw()
	if err := errors.Join(leases.addTo(manager), guard.addTo(manager, o, leases.check), told.publish(leases.meter, self.candidate)); err != nil {
		return err
	}
	if err := self.run(ctx, manager, func(ctx context.Context) { follow(ctx, leases.leases) }); err != nil {
		return fmt.Errorf("run: %w", err)
	}
	return nil
}

// guarded makes the manager, and what guards its ports.
func guarded(ctx context.Context, cluster *rest.Config, pools *router.Pools, o *options) (*security, ctrl.Manager, error) {
	guard, err := newSecurity(ctx, cluster, pools, o)
	if err != nil {
		return nil, nil, err
	}
	manager, err := newManager(cluster, o)
	return guard, manager, err
}

func newManager(cluster *rest.Config, o *options) (ctrl.Manager, error) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, v1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			return nil, fmt.Errorf("build the scheme: %w", err)
		}
	}
	manager, err := ctrl.NewManager(cluster, ctrl.Options{
		Scheme: scheme, Cache: cachesFor(o),
		// Ports of our own answer, by TLS and behind doors.
		Metrics: metricsserver.Options{BindAddress: "0"}, HealthProbeBindAddress: "0",
	})
	if err != nil {
		return nil, fmt.Errorf("set up the manager: %w", err)
	}
	return manager, nil
}

// nodesFor is where nodes are watched; nil: a manager of one namespace has no right to.
func nodesFor(manager ctrl.Manager, o *options) controller.Informers {
	if o.namespace != "" {
		return nil
	}
	return manager.GetCache()
}

// cachesFor keeps what is read again and again: of pods, only what is read.
func cachesFor(o *options) cache.Options {
	caches := cache.Options{
		DefaultTransform: cache.TransformStripManagedFields(),
		ByObject: map[client.Object]cache.ByObject{
			&corev1.Pod{}:  {Transform: controller.TrimPod},
			&corev1.Node{}: {Transform: controller.TrimNode},
		},
	}
	if o.namespace != "" {
		caches.DefaultNamespaces = map[string]cache.Config{o.namespace: {}}
	}
	return caches
}

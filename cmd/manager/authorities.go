package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	"k8s.io/client-go/kubernetes"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/berthmaster/berthmaster/api/v1alpha1"
	"github.com/berthmaster/berthmaster/internal/certs"
)

// authorities publishes what clients trust the lease API by, in the manager's namespace and in every one
// that has a pool. The manager runs it once its caches are filled, whoever leads.
type authorities struct {
	publisher certs.Publisher
	holder    *certs.Holder
}

func newAuthorities(manager ctrl.Manager, clients kubernetes.Interface, holder *certs.Holder, home string) authorities {
	return authorities{
		holder: holder,
		publisher: certs.Publisher{
			ConfigMaps: clients.CoreV1(), Name: authorityConfigMap, Manager: fieldManager, Clock: time.Now,
			Namespaces: func(ctx context.Context) ([]string, error) { return namespacesOf(ctx, manager.GetClient(), home) },
		},
	}
}

// namespacesOf are those with pools, and home.
func namespacesOf(ctx context.Context, reader client.Reader, home string) ([]string, error) {
	var list v1alpha1.InferencePoolList
	if err := reader.List(ctx, &list); err != nil {
		return nil, fmt.Errorf("list the pools: %w", err)
	}
	namespaces := []string{home}
	for i := range list.Items {
		namespaces = append(namespaces, list.Items[i].Namespace)
	}
	slices.Sort(namespaces)
	return slices.Compact(namespaces), nil
}

// NeedLeaderElection says that every replica publishes.
func (authorities) NeedLeaderElection() bool { return false }

// Start publishes until ctx ends.
func (a authorities) Start(ctx context.Context) error {
	log := ctrl.Log.WithName("authorities")
	a.publisher.Follow(ctx, a.holder, publishPeriod, func(err error) { log.Error(err, "clients may not find whom to trust") })
	return nil
}

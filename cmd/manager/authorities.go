package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/berthmaster/berthmaster/api/v1alpha1"
	"github.com/berthmaster/berthmaster/internal/certs"
)

// maxOwners bounds the list of pools that a namespace's ConfigMap belongs to. When they all go and others
// are left, it is made again within publishPeriod.
const maxOwners = 100

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
			Places: func(ctx context.Context) ([]certs.Place, error) { return placesOf(ctx, manager.GetClient(), home) },
		},
	}
}

// placesOf are home and the namespaces with pools, each owned by its pools but for home, whose ConfigMap
// goes with the namespace.
func placesOf(ctx context.Context, reader client.Reader, home string) ([]certs.Place, error) {
	var list v1alpha1.InferencePoolList
	// Nothing is changed in what is listed, so thousands of pools need not be copied at every look.
	if err := reader.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list the pools: %w", err)
	}
	owners := map[string][]metav1.OwnerReference{}
	for i := range list.Items {
		pool := &list.Items[i]
		owners[pool.Namespace] = append(owners[pool.Namespace], metav1.OwnerReference{
			APIVersion: v1alpha1.GroupVersion.String(), Kind: v1alpha1.InferencePoolKind, Name: pool.Name, UID: pool.UID,
		})
	}
	owners[home] = nil
	places := make([]certs.Place, 0, len(owners))
	for _, namespace := range slices.Sorted(maps.Keys(owners)) {
		pools := owners[namespace]
		slices.SortFunc(pools, func(a, b metav1.OwnerReference) int { return strings.Compare(a.Name, b.Name) })
		places = append(places, certs.Place{Namespace: namespace, Owners: pools[:min(len(pools), maxOwners)]})
	}
	return places, nil
}

// NeedLeaderElection says that every replica publishes.
func (authorities) NeedLeaderElection() bool { return false }

// Start publishes until ctx ends.
func (a authorities) Start(ctx context.Context) error {
	log := ctrl.Log.WithName("authorities")
	a.publisher.Follow(ctx, a.holder, publishPeriod, func(err error) { log.Error(err, "clients may not find whom to trust") })
	return nil
}

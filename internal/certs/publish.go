package certs

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	metav1ac "k8s.io/client-go/applyconfigurations/meta/v1"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
)

// Publisher keeps the bundle of authorities in a ConfigMap of every namespace in which clients are expected,
// under the key ca.crt.
type Publisher struct {
	// ConfigMaps writes them.
	ConfigMaps corev1client.ConfigMapsGetter
	// Name is the name of each.
	Name string
	// Manager is the field manager.
	Manager string
	// Places lists where; an error leaves things as they are.
	Places func(context.Context) ([]Place, error)
	// Clock tells the time.
	Clock func() time.Time
}

// Place is a namespace in which clients are expected.
type Place struct {
	// Namespace is its name.
	Namespace string
	// Owners are what clients come for, of the same namespace, in an order that does not change: with the
	// last of them the cluster's garbage collector takes the ConfigMap away, whether a manager runs or not.
	// None: it stays.
	Owners []metav1.OwnerReference
}

// again is when a ConfigMap is written anew although nothing has changed: somebody may have
// removed or changed it.
const again = time.Minute

// published is what was written last in a namespace, and when.
type published struct {
	bundle string
	owners []metav1.OwnerReference
	at     time.Time
}

// stands reports whether what was written then is what there ought to be now.
func (p published) stands(bundle string, owners []metav1.OwnerReference, now time.Time) bool {
	same := func(a, b metav1.OwnerReference) bool { return a.UID == b.UID }
	return p.bundle == bundle && slices.EqualFunc(p.owners, owners, same) && now.Before(p.at.Add(again))
}

// Follow looks every period for new places, other owners and a new bundle, until ctx ends. What goes wrong is told to
// complain, and tried again.
func (p Publisher) Follow(ctx context.Context, h *Holder, period time.Duration, complain func(error)) {
	tick := time.NewTicker(period)
	defer tick.Stop()
	known := map[string]published{}
	for {
		if err := p.publish(ctx, string(h.Bundle()), known); err != nil && ctx.Err() == nil {
			complain(err)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

func (p Publisher) publish(ctx context.Context, bundle string, known map[string]published) error {
	places, err := p.Places(ctx)
	if err != nil || bundle == "" {
		return err
	}
	maps.DeleteFunc(known, func(namespace string, _ published) bool {
		return !slices.ContainsFunc(places, func(place Place) bool { return place.Namespace == namespace })
	})
	var failed []error
	for _, place := range places {
		now := p.Clock()
		if known[place.Namespace].stands(bundle, place.Owners, now) {
			continue
		}
		if err := p.write(ctx, place, bundle); err != nil {
			failed = append(failed, err)
			continue
		}
		known[place.Namespace] = published{bundle, place.Owners, now}
	}
	return errors.Join(failed...)
}

func (p Publisher) write(ctx context.Context, place Place, bundle string) error {
	wanted := corev1ac.ConfigMap(p.Name, place.Namespace).WithData(map[string]string{caCert: bundle})
	for _, owner := range place.Owners {
		wanted.WithOwnerReferences(metav1ac.OwnerReference().
			WithAPIVersion(owner.APIVersion).WithKind(owner.Kind).WithName(owner.Name).WithUID(owner.UID))
	}
	_, err := p.ConfigMaps.ConfigMaps(place.Namespace).Apply(ctx, wanted, metav1.ApplyOptions{FieldManager: p.Manager, Force: true})
	if err != nil {
		return fmt.Errorf("publish the authorities in the namespace %s: %w", place.Namespace, err)
	}
	return nil
}

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
	// Namespaces lists where; an error leaves things as they are.
	Namespaces func(context.Context) ([]string, error)
	// Clock tells the time.
	Clock func() time.Time
}

// again is when a ConfigMap is written anew although nothing has changed: somebody may have
// removed or changed it.
const again = time.Minute

// published is what was written last in a namespace, and when.
type published struct {
	bundle string
	at     time.Time
}

// Follow looks every period for new namespaces and a new bundle, until ctx ends. What goes wrong is told to
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
	namespaces, err := p.Namespaces(ctx)
	if err != nil || bundle == "" {
		return err
	}
	maps.DeleteFunc(known, func(namespace string, _ published) bool { return !slices.Contains(namespaces, namespace) })
	var failed []error
	for _, namespace := range namespaces {
		now := p.Clock()
		if was := known[namespace]; was.bundle == bundle && now.Before(was.at.Add(again)) {
			continue
		}
		if err := p.write(ctx, namespace, bundle); err != nil {
			failed = append(failed, err)
			continue
		}
		known[namespace] = published{bundle, now}
	}
	return errors.Join(failed...)
}

func (p Publisher) write(ctx context.Context, namespace, bundle string) error {
	wanted := corev1ac.ConfigMap(p.Name, namespace).WithData(map[string]string{caCert: bundle})
	_, err := p.ConfigMaps.ConfigMaps(namespace).Apply(ctx, wanted, metav1.ApplyOptions{FieldManager: p.Manager, Force: true})
	if err != nil {
		return fmt.Errorf("publish the authorities in the namespace %s: %w", namespace, err)
	}
	return nil
}

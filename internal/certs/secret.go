package certs

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
)

// SelfMade keeps certificates of the manager's own in a Secret that replicas share. Any replica
// replaces what is due; of two that do so at once, one is told by the API server and takes what the other made.
type SelfMade struct {
	// Secrets are those of the manager's namespace.
	Secrets corev1client.SecretInterface
	// Name is the Secret's.
	Name string
	// Names are the DNS names that the certificate is for; at least one.
	Names []string
	// Clock tells the time.
	Clock func() time.Time
}

// attempts is how often another replica may be first before it is no coincidence.
const attempts = 5

// errContended: the Secret changes each time that it is looked at.
var errContended = errors.New("others keep changing it")

// Load takes what the Secret holds into use, after replacing in it what is due.
func (m SelfMade) Load(ctx context.Context, h *Holder) error {
	for range attempts {
		c, err := m.keep(ctx)
		if apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) {
			continue
		}
		if err != nil {
			return fmt.Errorf("certificates in the Secret %s: %w", m.Name, err)
		}
		material, err := c.material()
		if err != nil {
			return fmt.Errorf("certificates in the Secret %s: %w", m.Name, err)
		}
		h.Use(material)
		return nil
	}
	return fmt.Errorf("certificates in the Secret %s: %w", m.Name, errContended)
}

// keep reads the Secret and writes what is due.
func (m SelfMade) keep(ctx context.Context) (chain, error) {
	secret, err := m.Secrets.Get(ctx, m.Name, metav1.GetOptions{})
	missing := apierrors.IsNotFound(err)
	if err != nil && !missing {
		return nil, err
	}
	if missing {
		secret = &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: m.Name}, Type: corev1.SecretTypeOpaque}
	}
	due, err := chain(secret.Data).next(m.Names, m.Clock())
	if err != nil || due.same(secret.Data) {
		return due, err
	}
	secret.Data = due
	if missing {
		_, err = m.Secrets.Create(ctx, secret, metav1.CreateOptions{})
	} else {
		_, err = m.Secrets.Update(ctx, secret, metav1.UpdateOptions{})
	}
	return due, err
}

// Follow looks every period, until ctx ends. What goes wrong is told to complain; what is in use stays in use.
func (m SelfMade) Follow(ctx context.Context, h *Holder, period time.Duration, complain func(error)) {
	tick := time.NewTicker(period)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if err := m.Load(ctx, h); err != nil && ctx.Err() == nil {
			complain(err)
		}
	}
}

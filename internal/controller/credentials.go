package controller

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/berthmaster/berthmaster/api/v1alpha1"
	"github.com/berthmaster/berthmaster/internal/sglang"
)

// +kubebuilder:rbac:groups="",resources=secrets,verbs=get

const (
	// credentialsFresh is how long a secret is not read again, whatever wakes the pool.
	credentialsFresh = 2 * time.Second
	// credentialsPeriod is how often a secret is read although nothing happens. Watching it would
	// need the right to list every secret.
	credentialsPeriod = 10 * time.Second
)

// credentials are what was last read of the secret that a pool names.
type credentials struct {
	secret string
	keys   sglang.Keys
	readAt time.Time
	// fault says to a person why keys are not what the secret has now. Empty: they are.
	fault string
}

// keyring keeps credentials where calls find them without waiting. They are nowhere else: not in a
// plan, a log, a status or an event.
type keyring struct {
	mu     sync.RWMutex
	byPool map[types.UID]credentials // guarded by mu
}

func newKeyring() *keyring { return &keyring{byPool: map[types.UID]credentials{}} }

func (k *keyring) get(pool types.UID) credentials {
	k.mu.RLock()
	defer k.mu.RUnlock()
	return k.byPool[pool]
}

func (k *keyring) put(pool types.UID, c credentials) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.byPool[pool] = c
}

func (k *keyring) forget(pool types.UID) {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.byPool, pool)
}

// source gives the keys that the pool has at the time of each call.
func (k *keyring) source(pool types.UID) sglang.KeySource {
	return func() sglang.Keys { return k.get(pool).keys }
}

// readCredentials reads the secret that the pool names, if it is time to. That it cannot be read stops
// nothing else: fences and drains do not wait for it.
func (r *Reconciler) readCredentials(ctx context.Context, w *world, pool *v1alpha1.InferencePool, now time.Time) {
	w.keys = r.keyring.source(pool.UID)
	ref := pool.Spec.Backends.CredentialsSecretRef
	if ref == nil {
		r.keyring.forget(pool.UID)
		return
	}
	last := r.keyring.get(pool.UID)
	if last.secret != ref.Name || !now.Before(last.readAt.Add(credentialsFresh)) {
		last = readSecret(ctx, r.live, w.key.Namespace, ref, last)
		last.readAt = now
		r.keyring.put(pool.UID, last)
	}
	w.keysFault, w.rereadAt = last.fault, last.readAt.Add(credentialsPeriod)
}

// readSecret reads a secret by name. If it cannot, what was known of the same secret stays: a secret
// that is replaced by deleting it is missing for a moment.
func readSecret(ctx context.Context, reader client.Reader, namespace string, ref *v1alpha1.CredentialsReference, last credentials) credentials {
	c := credentials{secret: ref.Name}
	if last.secret == ref.Name {
		c.keys = last.keys
	}
	var secret corev1.Secret
	err := reader.Get(ctx, client.ObjectKey{Namespace: namespace, Name: ref.Name}, &secret)
	switch {
	case err != nil:
		c.fault = fmt.Sprintf("spec.backends.credentialsSecretRef: the secret %s could not be read: %s", ref.Name, faultOf(err))
		return c
	case len(secret.Data[v1alpha1.CredentialsAPIKey])+len(secret.Data[v1alpha1.CredentialsAdminAPIKey]) == 0:
		c.fault = fmt.Sprintf("spec.backends.credentialsSecretRef: the secret %s has neither %s nor %s",
			ref.Name, v1alpha1.CredentialsAPIKey, v1alpha1.CredentialsAdminAPIKey)
	}
	c.keys = sglang.Keys{
		API:   strings.TrimSpace(string(secret.Data[v1alpha1.CredentialsAPIKey])),
		Admin: strings.TrimSpace(string(secret.Data[v1alpha1.CredentialsAdminAPIKey])),
	}
	return c
}

// faultOf is why a read failed, in words that stay the same while it does.
func faultOf(err error) string {
	if reason := apierrors.ReasonForError(err); reason != "" {
		return string(reason)
	}
	return "the API server did not answer"
}

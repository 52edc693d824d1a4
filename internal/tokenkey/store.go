package tokenkey

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
)

const (
	// current and previous are the keys of the Secret's data.
	current  = "current"
	previous = "previous"
	// keyBytes is the size of a key that is made here.
	keyBytes = 32
)

// Pair is the two keys. Previous is empty if there is none.
type Pair struct{ Current, Previous []byte }

func (p Pair) equal(other Pair) bool {
	return bytes.Equal(p.Current, other.Current) && bytes.Equal(p.Previous, other.Previous)
}

// Store is the Secret.
type Store struct {
	// Secrets are those of the manager's namespace.
	Secrets corev1client.SecretInterface
	// Name is the Secret's.
	Name string
}

// Open returns the keys, and makes the Secret if there is none.
func (s Store) Open(ctx context.Context) (Pair, error) {
	pair, err := s.Read(ctx)
	if !apierrors.IsNotFound(err) {
		return pair, err
	}
	key := make([]byte, keyBytes)
	_, _ = rand.Read(key) // never fails: crypto/rand documents that it aborts instead
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: s.Name}, Type: corev1.SecretTypeOpaque,
		Data: map[string][]byte{current: key},
	}
	_, err = s.Secrets.Create(ctx, secret, metav1.CreateOptions{})
	switch {
	case apierrors.IsAlreadyExists(err):
		return s.Read(ctx) // another replica was first
	case err != nil:
		return Pair{}, fmt.Errorf("make the Secret %s of lease tokens: %w", s.Name, err)
	}
	return Pair{Current: key}, nil
}

// Read returns the keys. Its error tells a Secret that is not there.
func (s Store) Read(ctx context.Context) (Pair, error) {
	secret, err := s.Secrets.Get(ctx, s.Name, metav1.GetOptions{})
	if err != nil {
		return Pair{}, fmt.Errorf("read the Secret %s of lease tokens: %w", s.Name, err)
	}
	return Pair{Current: secret.Data[current], Previous: secret.Data[previous]}, nil
}

// Follow looks every period and hands over keys that differ from known, until ctx ends. What goes
// wrong is told to complain; the keys in use stay in use then.
func (s Store) Follow(ctx context.Context, period time.Duration, known Pair, use func(Pair) error, complain func(error)) {
	tick := time.NewTicker(period)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		pair, err := s.Read(ctx)
		if err == nil && !pair.equal(known) {
			if err = use(pair); err == nil {
				known = pair
			}
		}
		if err != nil && !errors.Is(err, context.Canceled) {
			complain(err)
		}
	}
}

package local

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1alpha1 "github.com/berthmaster/berthmaster/api/v1alpha1"
)

// tokenKeySecret has the keys that replicas share.
const tokenKeySecret = "berthmaster-token-key"

// WipeStatus takes the pool's status away, as a person can by hand.
func (s *System) WipeStatus(ctx context.Context) error {
	return until(ctx, statusPatience, "the status to be wiped", func(ctx context.Context) error {
		pool, err := s.Pool(ctx)
		if err != nil {
			return err
		}
		pool.Status = v1alpha1.InferencePoolStatus{}
		if err := s.pools.watcher.Status().Update(ctx, pool); err != nil {
			return fmt.Errorf("wipe the status: %w", err) // of a conflict the next look knows nothing
		}
		return nil
	})
}

// DeletePool removes the pool and waits until it is gone, for which a manager may be needed.
func (s *System) DeletePool(ctx context.Context) error {
	pool, err := s.Pool(ctx)
	if err != nil {
		return err
	}
	if err := s.pools.watcher.Delete(ctx, pool); err != nil {
		return fmt.Errorf("delete the pool: %w", err)
	}
	return until(ctx, statusPatience, "the pool to be gone", func(ctx context.Context) error {
		switch _, err := s.Pool(ctx); {
		case apierrors.IsNotFound(err):
			return nil
		case err != nil:
			return err
		}
		return errors.New("it is still there")
	})
}

// ForgetReplicas removes what replicas leave in their namespace: the Lease and the keys. None may run.
func (s *System) ForgetReplicas(ctx context.Context) error {
	err := s.clients.CoordinationV1().Leases(managerNamespace).Delete(ctx, leaderLease, metav1.DeleteOptions{})
	if err != nil {
		return fmt.Errorf("the Lease of the replicas: %w", err)
	}
	if err := s.clients.CoreV1().Secrets(managerNamespace).Delete(ctx, tokenKeySecret, metav1.DeleteOptions{}); err != nil {
		return fmt.Errorf("the Secret of lease tokens: %w", err)
	}
	return nil
}

package local

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/berthmaster/berthmaster/api/v1alpha1"
)

// statusPatience bounds how long the status may take to show something that
// nothing but the operator decides.
const statusPatience = 2 * time.Minute

// poolClient reads and watches pools past every cache.
type poolClient struct {
	watcher client.WithWatch
}

func newPoolClient(c *rest.Config) (poolClient, error) {
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		return poolClient{}, fmt.Errorf("types of the API: %w", err)
	}
	watcher, err := client.NewWithWatch(c, client.Options{Scheme: scheme})
	if err != nil {
		return poolClient{}, fmt.Errorf("client for pools: %w", err)
	}
	return poolClient{watcher: watcher}, nil
}

// PoolName returns the namespace and the name of the pool.
func (s *System) PoolName() (namespace, name string) { return s.sample.Namespace, s.sample.Name }

// Pool reads the pool.
func (s *System) Pool(ctx context.Context) (*v1alpha1.InferencePool, error) {
	pool := &v1alpha1.InferencePool{}
	if err := s.pools.watcher.Get(ctx, client.ObjectKeyFromObject(s.sample), pool); err != nil {
		return nil, fmt.Errorf("pool %s: %w", s.sample.Name, err)
	}
	return pool, nil
}

// Until waits for the pool to be as look wants it; look's error says what is
// missing.
func (s *System) Until(ctx context.Context, what string, look func(*v1alpha1.InferencePool) error) error {
	return until(ctx, statusPatience, what, func(ctx context.Context) error {
		pool, err := s.Pool(ctx)
		if err != nil {
			return err
		}
		return look(pool)
	})
}

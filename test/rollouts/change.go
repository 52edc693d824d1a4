package rollouts

import (
	"context"
	"fmt"
	"time"

	v1alpha1 "github.com/berthmaster/berthmaster/api/v1alpha1"
	"github.com/berthmaster/berthmaster/test/local"
)

// Change is a rollout from disk.
type Change struct {
	// Version is asked for; its weights are at /weights/VERSION as far as the engines care.
	Version string
	// Strategy is AllAtOnce, Rolling or InPlace.
	Strategy string
	// More are further fields of spec.weights, in YAML's flow style; empty: none.
	More string
}

// Done is when a change was asked for and when every backend was on its version.
type Done struct {
	Change
	Begun, Ended time.Time
}

// Make asks for a change and waits until the pool has converged on it.
func Make(ctx context.Context, system *local.System, c Change) (Done, error) {
	done := Done{Change: c, Begun: time.Now()}
	if err := Ask(ctx, system, c); err != nil {
		return done, err
	}
	if err := system.Until(ctx, c.Version+" to be published and on every backend", Converged(c.Version)); err != nil {
		return done, err
	}
	done.Ended = time.Now()
	return done, nil
}

// Ask asks for a change.
func Ask(ctx context.Context, system *local.System, c Change) error {
	weights := fmt.Sprintf("version: %q, epoch: 1, source: Disk, path: /weights/%s, strategy: %s", c.Version, c.Version, c.Strategy)
	if c.More != "" {
		weights += ", " + c.More
	}
	return system.SetWeights(ctx, weights)
}

// Converged is a look at a pool that serves one version everywhere.
func Converged(version string) func(*v1alpha1.InferencePool) error {
	return func(pool *v1alpha1.InferencePool) error {
		weights := pool.Status.Weights
		if weights == nil || weights.Published != version {
			return fmt.Errorf("published is %+v", weights)
		}
		for i := range pool.Status.Backends {
			if b := &pool.Status.Backends[i]; b.State != v1alpha1.BackendServing || b.WeightVersion != version {
				return fmt.Errorf("%s is %s (%s) on %q", b.Name, b.State, b.Message, b.WeightVersion)
			}
		}
		return nil
	}
}

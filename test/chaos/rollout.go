package main

import (
	"context"
	"fmt"

	v1alpha1 "github.com/berthmaster/berthmaster/api/v1alpha1"
	"github.com/berthmaster/berthmaster/test/local"
	"github.com/berthmaster/berthmaster/test/rollouts"
)

// loading is how long engines take to load weights, by their own clock: two seconds of ours.
const loading = "40s"

// moment is a point of a rollout at which its leader may end.
type moment struct {
	name string
	// come reports whether the status shows that it has come.
	come func(pool *v1alpha1.InferencePool, version string) bool
}

// moments are those that a status shows, in the order in which they come.
func moments() []moment {
	return []moment{
		{"noticed", func(p *v1alpha1.InferencePool, v string) bool {
			return p.Status.Weights != nil && p.Status.Weights.Target == v
		}},
		{"an update begun", func(p *v1alpha1.InferencePool, v string) bool {
			return count(p, func(b *v1alpha1.BackendStatus) bool { return b.Updating == v }) > 0
		}},
		{"an engine updated", func(p *v1alpha1.InferencePool, v string) bool {
			return count(p, func(b *v1alpha1.BackendStatus) bool { return b.WeightVersion == v }) > 0
		}},
		{"published", func(p *v1alpha1.InferencePool, v string) bool {
			return p.Status.Weights != nil && p.Status.Weights.Published == v
		}},
	}
}

func count(p *v1alpha1.InferencePool, match func(*v1alpha1.BackendStatus) bool) int {
	n := 0
	for i := range p.Status.Backends {
		if match(&p.Status.Backends[i]) {
			n++
		}
	}
	return n
}

// inRollout kills the leader at some moment of a rollout by a strategy. Whoever leads next finishes it.
func inRollout(strategy string) func(*chaos, context.Context, *local.Replica) (func(context.Context) error, error) {
	return func(x *chaos, ctx context.Context, leader *local.Replica) (func(context.Context) error, error) {
		x.versions++
		version, list := fmt.Sprintf("step-%d", x.versions), moments()
		chosen := list[x.random.IntN(len(list))]
		history, err := x.system.Record(ctx)
		if err != nil {
			return nil, err
		}
		if err := rollouts.Ask(ctx, x.system, rollouts.Change{Version: version, Strategy: strategy}); err != nil {
			return nil, err
		}
		_, err = history.After(ctx, 0, version+" to be "+chosen.name, func(p *v1alpha1.InferencePool) error {
			if chosen.come(p, version) {
				return nil
			}
			return fmt.Errorf("not %s: %+v", chosen.name, p.Status.Weights)
		})
		if err != nil {
			return nil, err
		}
		leader.Kill()
		x.say(fmt.Sprintf("  %s by %s: the leader was killed once it was %s", version, strategy, chosen.name))
		if _, err := x.system.StartReplica(ctx); err != nil {
			return nil, err
		}
		return func(ctx context.Context) error {
			return x.system.Until(ctx, version+" to be on every backend", rollouts.Converged(version))
		}, nil
	}
}

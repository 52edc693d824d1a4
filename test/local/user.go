package local

import (
	"context"
	"fmt"
	"path/filepath"

	v1alpha1 "github.com/berthmaster/berthmaster/api/v1alpha1"
)

// resource is the full name of the kind; another project has one that is also
// called InferencePool.
const resource = "inferencepools.inference.berthmaster.io"

// ApplySample creates the pool from its manifest. It has to be a server-side
// apply: over an object that was made by a plain one, kubectl hands all of its
// fields to whoever applies the first single entry, and the next such apply
// would then remove the rest of the spec.
func (s *System) ApplySample(ctx context.Context) error {
	_, err := s.Kubectl().Run(ctx, "apply", "--server-side", "-f", filepath.Join(s.config.Root, Sample))
	return err
}

// Show returns what kubectl prints about the pool.
func (s *System) Show(ctx context.Context) (string, error) {
	return s.Kubectl().Run(ctx, "get", resource, "-n", s.sample.Namespace)
}

// Drain takes a backend out of service. The entry is applied alone, under a
// field manager of its own, so that nobody else's entries are touched and
// Undrain gives up just this one.
func (s *System) Drain(ctx context.Context, backend string) error {
	return s.applyEntry(ctx, "drain-"+backend, fmt.Sprintf("drain: [{backend: %s, sessions: Move}]", backend))
}

// Undrain ends the drain of a backend.
func (s *System) Undrain(ctx context.Context, backend string) error {
	return s.applyEntry(ctx, "drain-"+backend, "drain: []")
}

// SetAccess opens or fences a sender, likewise by its one entry.
func (s *System) SetAccess(ctx context.Context, sender string, access v1alpha1.SenderAccess) error {
	return s.applyEntry(ctx, "access-"+sender, fmt.Sprintf("senders: [{name: %s, access: %s}]", sender, access))
}

// SetWeights asks for a version of the weights; weights is what stands in the braces of spec.weights. A
// trainer does so under one name, for each version anew.
func (s *System) SetWeights(ctx context.Context, weights string) error {
	return s.applyEntry(ctx, "trainer", "weights: {"+weights+"}")
}

// SetLeases sets terms of leases, given by what stands in the braces of spec.leases.
func (s *System) SetLeases(ctx context.Context, leases string) error {
	return s.applyEntry(ctx, "leases", "leases: {"+leases+"}")
}

// applyEntry applies one line of the spec. The access of a sender belongs to
// whoever wrote the pool until somebody takes it over, which is what forcing
// means here.
func (s *System) applyEntry(ctx context.Context, manager, entry string) error {
	manifest := fmt.Sprintf(`apiVersion: %s
kind: InferencePool
metadata: {name: %s, namespace: %s}
spec:
  %s
`, v1alpha1.GroupVersion, s.sample.Name, s.sample.Namespace, entry)
	_, err := s.Kubectl().Apply(ctx, manifest, "--server-side", "--force-conflicts", "--field-manager="+manager)
	return err
}

package cli

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/berthmaster/berthmaster/api/v1alpha1"
)

// entry is one part of a spec that a command sets, and nothing else.
type entry struct {
	// manager is the field manager of this part; applying again under it replaces what was applied.
	manager string
	// spec is the part, as it stands below spec.
	spec map[string]any
}

// longestManager is how long the API server lets the name of a field manager be.
const longestManager = 128

// managerOf names the field manager of one entry. A name that would be too long is cut, and told apart
// by a hash of the whole.
func managerOf(parts ...string) string {
	name := "kubectl-berth-" + strings.Join(parts, "-")
	if len(name) <= longestManager {
		return name
	}
	sum := sha256.Sum256([]byte(name))
	return name[:longestManager-17] + "-" + hex.EncodeToString(sum[:8])
}

// manifest is what is applied. The UID lets a pool that was replaced meanwhile, or is gone, refuse it:
// an apply would otherwise make a pool of this one entry.
func (en *entry) manifest(pool *v1alpha1.InferencePool) *unstructured.Unstructured {
	object := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": v1alpha1.GroupVersion.String(), "kind": v1alpha1.InferencePoolKind, "spec": en.spec,
	}}
	object.SetName(pool.Name)
	object.SetNamespace(pool.Namespace)
	object.SetUID(pool.UID)
	return object
}

// conflicts says what becomes of a field that another manager holds.
type conflicts int

const (
	respectOthers conflicts = iota
	takeOver
)

// apply applies one entry and returns the pool as it is then, or as it would be on a dry run.
func (t *target) apply(ctx context.Context, en *entry, dryRun dryRun, on conflicts) (*v1alpha1.InferencePool, error) {
	options := []client.ApplyOption{client.FieldOwner(en.manager)}
	if dryRun == dryRunServer {
		options = append(options, client.DryRunAll)
	}
	if on == takeOver {
		options = append(options, client.ForceOwnership)
	}
	object := en.manifest(t.pool)
	if err := t.client.Apply(ctx, client.ApplyConfigurationFromUnstructured(object), options...); err != nil {
		return nil, explainConflict(err, t.pool.UID)
	}
	after := &v1alpha1.InferencePool{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, after); err != nil {
		return nil, fmt.Errorf("read the pool that was applied to: %w", err)
	}
	return after, nil
}

// explainConflict says who holds the fields, and what to do.
func explainConflict(err error, uid types.UID) error {
	var status *apierrors.StatusError
	if !errors.As(err, &status) || status.ErrStatus.Details == nil {
		return err
	}
	var held []string
	replaced := apierrors.IsConflict(err)
	for _, cause := range status.ErrStatus.Details.Causes {
		switch {
		case cause.Type == metav1.CauseTypeFieldManagerConflict:
			held = append(held, fmt.Sprintf("  %s: %s", strings.TrimPrefix(cause.Field, "."), cause.Message))
		case cause.Field == "metadata.uid":
			replaced = true
		}
	}
	switch {
	case len(held) > 0:
		return fmt.Errorf("another field manager holds what this would change; nothing was changed:\n%s\n"+
			"Change it where that manager's manifest is, or repeat the command with --force-conflicts to take the field over, "+
			"and leave it out of that manifest from then on", strings.Join(held, "\n"))
	case replaced:
		return fmt.Errorf("the pool with the UID %s is gone or was replaced; nothing was changed. Look at it again, then repeat the command: %w", uid, err)
	}
	return err
}

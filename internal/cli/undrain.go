package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/berthmaster/berthmaster/api/v1alpha1"
)

func newUndrain(e *env) *cobra.Command {
	var common changeFlags
	cmd := &cobra.Command{
		Use:               "undrain BACKEND",
		Short:             "Take a drained backend back into service",
		Example:           `  kubectl berth undrain sglang-3 --wait`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: firstArgument(e.drainedNames),
		RunE: func(cmd *cobra.Command, args []string) error {
			return e.steer(cmd.Context(), &common, func(ctx context.Context, t *target) (*change, error) {
				return e.undrainOf(ctx, t, args[0], &common)
			})
		},
	}
	e.bindPool(cmd)
	common.bind(cmd)
	return cmd
}

// undrainOf gives up the entry that drain applied, which removes it unless others hold it too.
func (e *env) undrainOf(ctx context.Context, t *target, backend string, f *changeFlags) (*change, error) {
	i := slices.IndexFunc(t.pool.Spec.Drain, func(d v1alpha1.DrainSpec) bool { return d.Backend == backend })
	if i < 0 {
		return nil, notDrained(t.pool, backend)
	}
	manager := managerOf("drain", backend)
	others := slices.DeleteFunc(holders(t.pool, `k:{"backend":"`+backend+`"}`), func(m string) bool { return m == manager })
	if len(others) > 0 {
		if !f.force {
			return nil, fmt.Errorf("the drain of %s is held by the field manager %s, and stays as long as that one wants it.\n"+
				"Take the entry out of its manifest, or remove it in spite of that with --force-conflicts", backend, strings.Join(others, ", "))
		}
		if err := t.removeDrain(ctx, i, backend, dryRun(f.dryRun)); err != nil {
			return nil, err
		}
	}
	return &change{
		entry: entry{manager: manager, spec: map[string]any{"drain": []any{}}},
		did:   fmt.Sprintf("the drain of backend %s has ended", backend),
		judge: func(p *v1alpha1.InferencePool) progress { return servesAgain(p, backend) },
		stuck: "see why it does not serve:  kubectl berth doctor" + ofPool(t.pool),
	}, nil
}

// notDrained says why there is nothing to take back.
func notDrained(pool *v1alpha1.InferencePool, backend string) error {
	for i := range pool.Status.Backends {
		b := &pool.Status.Backends[i]
		if b.Name != backend {
			continue
		}
		switch b.Reason {
		case v1alpha1.ReasonDrainAnnotation:
			return fmt.Errorf("backend %s drains because its pod carries an annotation: kubectl annotate pod -n %s %s %s-",
				backend, pool.Namespace, backend, v1alpha1.AnnotationDrain)
		case v1alpha1.ReasonNodeCordoned:
			return fmt.Errorf("backend %s drains because its node is cordoned: kubectl uncordon it, or change spec.backends.onCordon", backend)
		case v1alpha1.ReasonPodDeleted:
			return fmt.Errorf("backend %s drains because its pod is being deleted, which cannot be taken back", backend)
		default:
			return fmt.Errorf("backend %s is not being drained: it is %s", backend, b.State)
		}
	}
	return fmt.Errorf("pool %s has no backend %s; it has: %s", pool.Name, backend, oneOf(backendsOf(pool)))
}

// removeDrain removes an entry, whoever holds it. The test keeps it from removing another one, should
// the list have changed.
func (t *target) removeDrain(ctx context.Context, at int, backend string, dry dryRun) error {
	patch, err := json.Marshal([]map[string]any{
		{"op": "test", "path": fmt.Sprintf("/spec/drain/%d/backend", at), "value": backend},
		{"op": "remove", "path": fmt.Sprintf("/spec/drain/%d", at)},
	})
	if err != nil {
		return fmt.Errorf("encode the patch: %w", err)
	}
	options := []client.PatchOption{client.FieldOwner(managerOf("drain", backend))}
	if dry == dryRunServer {
		options = append(options, client.DryRunAll)
	}
	if dry == dryRunClient {
		return nil
	}
	if err := t.client.Patch(ctx, t.pool.DeepCopy(), client.RawPatch(types.JSONPatchType, patch), options...); err != nil {
		return fmt.Errorf("remove the drain of %s: %w", backend, err)
	}
	return nil
}

// holders are the field managers that hold a list entry, known by its key in the form of managed
// fields.
func holders(pool *v1alpha1.InferencePool, key string) []string {
	var names []string
	for _, f := range pool.ManagedFields {
		if f.FieldsV1 == nil || f.Subresource != "" || !holds(f.FieldsV1, key) {
			continue
		}
		names = append(names, f.Manager)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

func holds(fields *metav1.FieldsV1, key string) bool {
	var tree struct {
		Spec struct {
			Drain map[string]json.RawMessage `json:"f:drain"`
		} `json:"f:spec"`
	}
	if json.Unmarshal(fields.GetRawBytes(), &tree) != nil {
		return false
	}
	_, held := tree.Spec.Drain[key]
	return held
}

// servesAgain: the drain is over; whether it serves is another matter, and is told.
func servesAgain(pool *v1alpha1.InferencePool, backend string) progress {
	for i := range pool.Status.Backends {
		b := &pool.Status.Backends[i]
		if b.Name != backend || b.State == v1alpha1.BackendRetired {
			continue
		}
		return progress{done: b.State == v1alpha1.BackendServing, line: stateLine(b)}
	}
	if someUnlisted(pool) {
		return progress{done: true, line: backend + " is not drained any more"}
	}
	return progress{line: "the status does not list " + backend}
}

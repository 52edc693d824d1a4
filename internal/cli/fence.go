package cli

import (
	"context"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/berthmaster/berthmaster/api/v1alpha1"
)

func newFence(e *env) *cobra.Command {
	return e.newAccess("fence", v1alpha1.SenderFenced, "Refuse a sender new leases, and no other sender",
		`Refuse one sender new leases. What it runs goes on, and other senders are not disturbed. It is
fenced once the status says so: nothing of it is counted, and nothing of it can be running.`)
}

func newUnfence(e *env) *cobra.Command {
	return e.newAccess("unfence", v1alpha1.SenderOpen, "Let a sender take leases again", "")
}

func (e *env) newAccess(verb string, to v1alpha1.SenderAccess, short, long string) *cobra.Command {
	var common changeFlags
	cmd := &cobra.Command{
		Use: verb + " SENDER", Short: short, Long: long, Example: "  kubectl berth " + verb + " eval --wait",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: firstArgument(e.senderNames),
		RunE: func(cmd *cobra.Command, args []string) error {
			return e.steer(cmd.Context(), &common, func(_ context.Context, t *target) (*change, error) {
				return accessOf(t.pool, args[0], to)
			})
		},
	}
	e.bindPool(cmd)
	common.bind(cmd)
	return cmd
}

// accessOf opens or fences a sender that the pool has: an entry for another would add it, for good.
func accessOf(pool *v1alpha1.InferencePool, sender string, to v1alpha1.SenderAccess) (*change, error) {
	if names := sendersOf(pool); !slices.Contains(names, sender) {
		return nil, fmt.Errorf("pool %s has no sender %s; it has: %s", pool.Name, sender, oneOf(names))
	}
	c := &change{entry: entry{
		manager: managerOf("access", sender),
		spec:    map[string]any{"senders": []any{map[string]any{"name": sender, "access": string(to)}}},
	}}
	want := v1alpha1.SenderStateOpen
	c.did = fmt.Sprintf("sender %s is open", sender)
	c.stuck = "see what is the matter:  kubectl berth doctor" + ofPool(pool)
	if to == v1alpha1.SenderFenced {
		want = v1alpha1.SenderStateFenced
		c.did = fmt.Sprintf("sender %s is being fenced: it gets no new lease", sender)
		c.next = []string{
			fmt.Sprintf("To wait until nothing of it runs:  kubectl berth fence %s --wait%s", sender, ofPool(pool)),
			fmt.Sprintf("To let it in again:                kubectl berth unfence %s%s", sender, ofPool(pool)),
		}
		c.stuck = fmt.Sprintf("see what of it still runs:  kubectl berth sessions --sender %s%s", sender, ofPool(pool))
	}
	c.judge = func(p *v1alpha1.InferencePool) progress { return senderIs(p, sender, want) }
	return c, nil
}

func senderIs(pool *v1alpha1.InferencePool, sender string, want v1alpha1.SenderState) progress {
	for _, s := range pool.Status.Senders {
		if s.Name != sender {
			continue
		}
		return progress{done: s.Access == want, line: fmt.Sprintf("sender %s is %s", sender, s.Access)}
	}
	return progress{line: "the status does not list sender " + sender}
}

func sendersOf(pool *v1alpha1.InferencePool) []string {
	names := make([]string, 0, len(pool.Spec.Senders))
	for i := range pool.Spec.Senders {
		names = append(names, pool.Spec.Senders[i].Name)
	}
	return names
}

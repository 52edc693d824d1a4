package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/berthmaster/berthmaster/api/v1alpha1"
)

func newHold(e *env) *cobra.Command {
	return e.newLeasing("hold", v1alpha1.LeasingHeld, "Grant no new lease to anybody; clients wait", `Grant no new lease to any sender. What runs goes on and may be renewed and released; clients that ask
with a time to wait do wait, and others are told Held. The pool is held once the status says so: nothing is counted, and nothing can be running.`)
}

func newOpen(e *env) *cobra.Command {
	return e.newLeasing("open", v1alpha1.LeasingOpen, "Grant leases again", "")
}

func (e *env) newLeasing(verb string, to v1alpha1.Leasing, short, long string) *cobra.Command {
	var common changeFlags
	cmd := &cobra.Command{
		Use: verb, Short: short, Long: long, Example: "  kubectl berth " + verb + " --wait", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return e.steer(cmd.Context(), &common, func(_ context.Context, t *target) (*change, error) {
				return leasingOf(t.pool, to), nil
			})
		},
	}
	e.bindPool(cmd)
	common.bind(cmd)
	return cmd
}

func leasingOf(pool *v1alpha1.InferencePool, to v1alpha1.Leasing) *change {
	c := &change{entry: entry{manager: managerOf("leasing"), spec: map[string]any{"leasing": string(to)}}}
	if to == v1alpha1.LeasingHeld {
		c.did = "leasing is held: no new lease is granted"
		c.next = []string{
			"To wait until nothing runs:  kubectl berth hold --wait" + ofPool(pool),
			"To grant leases again:       kubectl berth open" + ofPool(pool),
		}
		c.judge = func(p *v1alpha1.InferencePool) progress {
			return byCondition(p, v1alpha1.ConditionHeld, metav1.ConditionTrue, "leasing is held, and nothing runs")
		}
		c.stuck = "see what still runs:  kubectl berth top" + ofPool(pool)
		return c
	}
	c.did = "leasing is open"
	c.judge = func(p *v1alpha1.InferencePool) progress {
		return byCondition(p, v1alpha1.ConditionReady, metav1.ConditionTrue, "leases are granted")
	}
	c.stuck = "see why none is granted:  kubectl berth doctor" + ofPool(pool)
	return c
}

// byCondition is done once a condition that describes this generation has the status.
func byCondition(pool *v1alpha1.InferencePool, kind string, want metav1.ConditionStatus, done string) progress {
	c := meta.FindStatusCondition(pool.Status.Conditions, kind)
	switch {
	case c == nil || c.ObservedGeneration < pool.Generation:
		return progress{line: untold}
	case c.Status == want:
		return progress{done: true, line: done}
	}
	return progress{line: conditionLine(c)}
}

// conditionLine is a condition as one line.
func conditionLine(c *metav1.Condition) string {
	line := fmt.Sprintf("%s is %s (%s)", c.Type, c.Status, c.Reason)
	if c.Message != "" {
		line += ": " + c.Message
	}
	return line
}

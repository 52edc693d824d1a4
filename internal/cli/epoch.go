package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/berthmaster/berthmaster/api/v1alpha1"
)

func newRaiseEpoch(e *env) *cobra.Command {
	var common changeFlags
	var agreed bool
	cmd := &cobra.Command{
		Use:   "raise-epoch",
		Short: "End every lease and session, and take a failed pool back into service",
		Long: `Raise the epoch of the pool by one. Every lease and session granted before ends: clients that still
hold one are refused, and begin anew under the new epoch. It is the one way out of a failed pool,
and what fences the clients of an earlier run for good.`,
		Example: `  kubectl berth raise-epoch --yes --wait`,
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return e.steer(cmd.Context(), &common, func(_ context.Context, t *target) (*change, error) {
				if !agreed && dryRun(common.dryRun) == dryRunNone {
					return nil, errors.New(whatEnds(t.pool))
				}
				return epochOf(t.pool), nil
			})
		},
	}
	e.bindPool(cmd)
	common.bind(cmd)
	cmd.Flags().BoolVar(&agreed, "yes", false, "raise it; without it the command only says what would end")
	return cmd
}

// whatEnds says what raising the epoch costs, to those who have not agreed yet.
func whatEnds(pool *v1alpha1.InferencePool) string {
	text := fmt.Sprintf("raising the epoch of pool %s from %d to %d ends every lease and every session", pool.Name, currentEpoch(pool), currentEpoch(pool)+1)
	if f := pool.Status.Failure; f != nil {
		text += fmt.Sprintf(".\nThe pool failed at %s: request %s of session %s on %s could not be proven dead. What it generated "+
			"must not be used", f.Time.UTC().Format("2006-01-02 15:04:05Z"), f.RequestID, f.SessionID, f.Backend)
	} else {
		text += ", and the pool has not failed"
	}
	return text + ".\nIf that is what you want, repeat the command with --yes"
}

// epochOf asks for a number and not for one more, so that two people who do it at once raise it once.
func epochOf(pool *v1alpha1.InferencePool) *change {
	next := currentEpoch(pool) + 1
	return &change{
		entry: entry{manager: managerOf("epoch"), spec: map[string]any{"epoch": next}},
		did:   fmt.Sprintf("epoch %d: leases and sessions of earlier epochs have ended", next),
		next:  []string{fmt.Sprintf("Clients must be started anew, or told the epoch: %d.", next)},
		judge: func(p *v1alpha1.InferencePool) progress {
			return progress{done: p.Status.Epoch >= next, line: fmt.Sprintf("leases are granted under epoch %d", p.Status.Epoch)}
		},
		stuck: "see what is the matter:  kubectl berth doctor" + ofPool(pool),
	}
}

// currentEpoch is the epoch that the spec asks for; empty: 1.
func currentEpoch(pool *v1alpha1.InferencePool) int64 { return max(1, pool.Spec.Epoch) }

package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/berthmaster/berthmaster/api/v1alpha1"
)

// pauses are the values of --mode.
var pauses = []string{"Abort", "Retract", "InPlace"}

func newPause(e *env) *cobra.Command {
	var common changeFlags
	var mode string
	cmd := &cobra.Command{
		Use:   "pause",
		Short: "Pause every engine of the pool",
		Long: `Stop leases, then pause every engine of the pool. It is done once every engine has answered. What becomes
of what runs is the mode's: Abort ends it, Retract puts it back into the engine's queue, InPlace stops
it where it is. Engines that somebody else paused are left alone, now and when the pool goes on.`,
		Example: `  kubectl berth pause --mode Retract --wait`,
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if !slices.Contains(pauses, mode) {
				return fmt.Errorf("--mode: %q is none of %s", mode, strings.Join(pauses, ", "))
			}
			return e.steer(cmd.Context(), &common, func(_ context.Context, t *target) (*change, error) {
				return pauseOf(t.pool, v1alpha1.EngineMode("Paused"+mode)), nil
			})
		},
	}
	e.bindPool(cmd)
	common.bind(cmd)
	cmd.Flags().StringVar(&mode, "mode", "", "what becomes of what runs: "+strings.Join(pauses, ", ")+"; needed, since nothing is a harmless default")
	_ = cmd.MarkFlagRequired("mode")
	_ = cmd.RegisterFlagCompletionFunc("mode", cobra.FixedCompletions(pauses, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

func newContinue(e *env) *cobra.Command {
	var common changeFlags
	cmd := &cobra.Command{
		Use:     "continue",
		Short:   "Let the engines that this pool paused go on",
		Example: `  kubectl berth continue --wait`,
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return e.steer(cmd.Context(), &common, func(_ context.Context, t *target) (*change, error) {
				return continueOf(t.pool), nil
			})
		},
	}
	e.bindPool(cmd)
	common.bind(cmd)
	return cmd
}

func engineEntry(mode v1alpha1.EngineMode) entry {
	return entry{manager: managerOf("engine-mode"), spec: map[string]any{"engineMode": string(mode)}}
}

func pauseOf(pool *v1alpha1.InferencePool, mode v1alpha1.EngineMode) *change {
	return &change{
		entry: engineEntry(mode),
		did:   "the engines are being paused (" + string(mode) + ")",
		next: []string{
			"To wait until all are:  kubectl berth pause --mode " + strings.TrimPrefix(string(mode), "Paused") + " --wait" + ofPool(pool),
			"To let them go on:      kubectl berth continue" + ofPool(pool),
		},
		judge: func(p *v1alpha1.InferencePool) progress {
			return byCondition(p, v1alpha1.ConditionEnginesPaused, metav1.ConditionTrue, "every engine is paused")
		},
		stuck: "see which engine does not answer:  kubectl berth doctor" + ofPool(pool),
	}
}

func continueOf(pool *v1alpha1.InferencePool) *change {
	return &change{
		entry: engineEntry(v1alpha1.EnginesRunning),
		did:   "the engines go on",
		judge: engineAllRun,
		stuck: "see which engine does not answer:  kubectl berth doctor" + ofPool(pool),
	}
}

// engineAllRun: the condition is False while engines are being continued, too; its reason tells.
func engineAllRun(pool *v1alpha1.InferencePool) progress {
	c := meta.FindStatusCondition(pool.Status.Conditions, v1alpha1.ConditionEnginesPaused)
	switch {
	case c == nil || c.ObservedGeneration < pool.Generation:
		return progress{line: untold}
	case c.Reason == v1alpha1.ReasonEnginesRunning:
		return progress{done: true, line: "the engines run"}
	}
	return progress{line: conditionLine(c)}
}

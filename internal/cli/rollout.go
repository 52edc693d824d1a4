package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/berthmaster/berthmaster/api/v1alpha1"
)

func newRollout(e *env) *cobra.Command {
	cmd := &cobra.Command{Use: "rollout", Short: "See how a change of weights goes, or take it back"}
	cmd.AddCommand(newRolloutStatus(e), newRolloutUndo(e))
	return cmd
}

func newRolloutStatus(e *env) *cobra.Command {
	var output string
	cmd := &cobra.Command{
		Use:     "status",
		Short:   "See which weights the pool serves, and how far it is with the next",
		Example: `  kubectl berth rollout status`,
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := validObject(output); err != nil {
				return err
			}
			t, err := e.find(cmd.Context())
			if err != nil {
				return err
			}
			return e.rolloutStatus(t.pool, output)
		},
	}
	e.bindPool(cmd)
	cmd.Flags().StringVarP(&output, "output", "o", "", "json or yaml; empty: words")
	_ = cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions([]string{"json", "yaml"}, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

func (e *env) rolloutStatus(pool *v1alpha1.InferencePool, output string) error {
	if pool.Status.Weights == nil {
		return fmt.Errorf("pool %s does not look at weights: name a version with kubectl berth publish", pool.Name)
	}
	if output != "" {
		return printValue(e.streams.Out, output, pool.Status.Weights)
	}
	if pool.Status.ObservedGeneration < pool.Generation {
		e.notef("The status does not describe the latest change of the spec yet.")
	}
	fmt.Fprintln(e.streams.Out, rolloutLine(pool))
	rows := [][]cell{{{"BACKEND", bold}, {"WEIGHTS", bold}, {"STATE", bold}, {"MESSAGE", bold}}}
	for i := range pool.Status.Backends {
		b := &pool.Status.Backends[i]
		weights := cell{text: orNone(b.WeightVersion)}
		if b.WeightVersion != pool.Status.Weights.Target {
			weights.colour = yellow
		}
		rows = append(rows, []cell{{text: b.Name}, weights, {text: string(b.State)}, {text: b.Message}})
	}
	s := screenOf(e.streams.Out)
	(&lines{out: e.streams.Out, width: s.width}).table(rows, painter(s.colour))
	return nil
}

func newRolloutUndo(e *env) *cobra.Command {
	var common changeFlags
	cmd := &cobra.Command{
		Use:   "undo",
		Short: "Take a change of weights back that is under way",
		Long: `Have the pool serve the version again that it has published. Engines that were updated already go back to it:
by themselves where the weights are on disk, by the trainer's push where they are not. A version
that is published is taken back by publishing another.`,
		Example: `  kubectl berth rollout undo --wait`,
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return e.steer(cmd.Context(), &common, func(_ context.Context, t *target) (*change, error) {
				return undoOf(t.pool)
			})
		},
	}
	e.bindPool(cmd)
	common.bind(cmd)
	return cmd
}

func undoOf(pool *v1alpha1.InferencePool) (*change, error) {
	w, asked := pool.Status.Weights, pool.Spec.Weights
	switch {
	case w == nil || asked == nil || w.Published == "":
		return nil, fmt.Errorf("pool %s has published no version that it could go back to", pool.Name)
	case string(asked.Version) == w.Published:
		return nil, fmt.Errorf("no change of weights is under way: %s is published. To serve another version: kubectl berth publish VERSION%s", w.Published, ofPool(pool))
	}
	f := &publishFlags{}
	if asked.Source == v1alpha1.WeightsDisk {
		if w.PublishedPath == "" {
			return nil, fmt.Errorf("where the weights of %s are is not known: kubectl berth publish %s --path PATH%s", w.Published, w.Published, ofPool(pool))
		}
		f.path, f.strategy = w.PublishedPath, string(asked.Strategy)
	}
	c, err := publishOf(pool, w.Published, f)
	if err != nil {
		return nil, err
	}
	c.did = fmt.Sprintf("the change to %s is taken back: weights %s are to be served", asked.Version, w.Published)
	c.next, c.stuck = nil, "see which backend is not back yet:  kubectl berth rollout status"+ofPool(pool)
	return c, nil
}

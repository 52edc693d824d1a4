package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/berthmaster/berthmaster/api/v1alpha1"
)

// publishFlags are those of publish alone.
type publishFlags struct {
	path     string
	strategy string
}

func newPublish(e *env) *cobra.Command {
	var common changeFlags
	var f publishFlags
	cmd := &cobra.Command{
		Use:   "publish VERSION",
		Short: "Have the pool serve other weights",
		Long: `Name the weights that the pool is to serve. Without --path they are in the engines already: the trainer
has pushed them, under a fence or hold. With --path the operator has the engines load them from there.
It is done once the pool's status says that the version is published; no backend serves under it before
it is known to have it. What the flags do not say (verification, deadlines) is the manifest's, or the default.`,
		Example: `  kubectl berth publish step-42 --wait
  kubectl berth publish step-42 --path /checkpoints/step-42 --strategy Rolling --wait`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return e.steer(cmd.Context(), &common, func(_ context.Context, t *target) (*change, error) {
				return publishOf(t.pool, args[0], &f)
			})
		},
	}
	e.bindPool(cmd)
	common.bind(cmd)
	flags := cmd.Flags()
	flags.StringVar(&f.path, "path", "", "where the engines find the weights; empty: they have them already")
	flags.StringVar(&f.strategy, "strategy", "", "with --path: AllAtOnce, Rolling or InPlace")
	_ = cmd.RegisterFlagCompletionFunc("strategy", cobra.FixedCompletions([]string{"AllAtOnce", "Rolling", "InPlace"}, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

// publishOf names the epoch along with the version: a writer that was replaced, and does not know it,
// cannot set an old version again.
func publishOf(pool *v1alpha1.InferencePool, version string, f *publishFlags) (*change, error) {
	weights := map[string]any{"version": version, "epoch": currentEpoch(pool)}
	switch disk := sourceOf(pool) == v1alpha1.WeightsDisk; {
	case f.path != "":
		weights["source"], weights["path"] = string(v1alpha1.WeightsDisk), f.path
	case f.strategy != "":
		return nil, errors.New("--strategy says how engines load weights, and needs --path")
	case disk:
		return nil, errors.New("the pool's engines load their weights from a path (source Disk): say where with --path")
	}
	if f.strategy != "" {
		weights["strategy"] = f.strategy
	}
	return &change{
		entry: entry{manager: managerOf("weights"), spec: map[string]any{"weights": weights}},
		did:   fmt.Sprintf("weights %s are to be served", version),
		next: []string{
			"To see how it goes:     kubectl berth rollout status" + ofPool(pool),
			"To take it back:        kubectl berth rollout undo" + ofPool(pool),
		},
		judge: func(p *v1alpha1.InferencePool) progress { return publishedYet(p, version) },
		stuck: "see which backend is not there yet:  kubectl berth rollout status" + ofPool(pool) + "\n" +
			"to take it back:                     kubectl berth rollout undo" + ofPool(pool),
	}, nil
}

func sourceOf(pool *v1alpha1.InferencePool) v1alpha1.WeightsSource {
	if pool.Spec.Weights == nil {
		return ""
	}
	return pool.Spec.Weights.Source
}

// publishedYet: the version is published in one step, once the pool promises it.
func publishedYet(pool *v1alpha1.InferencePool, version string) progress {
	w := pool.Status.Weights
	if w != nil && w.Published == version {
		return progress{done: true, line: version + " is published"}
	}
	if w == nil || w.Target != version {
		return progress{line: untold}
	}
	return progress{line: rolloutLine(pool)}
}

// rolloutLine is how far the weights are, as one line.
func rolloutLine(pool *v1alpha1.InferencePool) string {
	w := pool.Status.Weights
	line := "published " + orNone(w.Published)
	if w.Target != "" && w.Target != w.Published {
		line += ", going to " + w.Target
		if w.Progress != "" {
			line += " (" + w.Progress + ")"
		}
	}
	c := meta.FindStatusCondition(pool.Status.Conditions, v1alpha1.ConditionWeightsConverged)
	if c != nil && c.Status != metav1.ConditionTrue {
		line += ": " + strings.TrimSuffix(c.Reason+": "+c.Message, ": ")
	}
	return line
}

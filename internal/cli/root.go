package cli

import (
	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"
)

// New returns the command line, which reads and writes the given streams.
func New(streams genericiooptions.IOStreams) *cobra.Command {
	root := &cobra.Command{
		Use:   "kubectl-berth",
		Short: "Look at and steer pools of inference replicas",
		Long: `Look at and steer the pools of inferencepools.inference.berthmaster.io.

Commands work on the one pool of the namespace, or on the one that --pool names. Those that
change something apply one entry of the spec, server-side and under a field manager of its own.`,
		Annotations:       map[string]string{cobra.CommandDisplayNameAnnotation: "kubectl berth"},
		SilenceUsage:      true,
		DisableAutoGenTag: true,
	}
	root.SetIn(streams.In)
	root.SetOut(streams.Out)
	root.SetErr(streams.ErrOut)
	root.AddGroup(
		&cobra.Group{ID: groupLook, Title: "Look:"},
		&cobra.Group{ID: groupSteer, Title: "Steer:"},
		&cobra.Group{ID: groupTry, Title: "Try out:"},
	)
	e := newEnv(streams)
	e.kube.AddFlags(root.PersistentFlags())
	e.complete(root, "namespace", e.namespaceNames)
	for group, commands := range map[string][]*cobra.Command{
		groupLook:  {newTop(e), newSessions(e), newExplain(e), newDoctor(e)},
		groupSteer: steering(e),
		groupTry:   {newSimulate(), newReplay(e)},
	} {
		for _, c := range commands {
			c.GroupID = group
			root.AddCommand(c)
		}
	}
	return root
}

const (
	groupLook  = "look"
	groupSteer = "steer"
	groupTry   = "try"
)

func steering(e *env) []*cobra.Command {
	return []*cobra.Command{
		newDrain(e), newUndrain(e), newHold(e), newOpen(e), newFence(e), newUnfence(e),
		newPause(e), newContinue(e), newPublish(e), newRollout(e), newRaiseEpoch(e),
	}
}

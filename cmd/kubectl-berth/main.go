// Command kubectl-berth is the user's command line: a kubectl plugin, called as
// `kubectl berth`.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := newRoot().ExecuteContext(ctx)
	stop()
	if err != nil {
		os.Exit(1) // cobra has printed the error
	}
}

func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:          "kubectl-berth",
		Short:        "Look at and steer pools of inference replicas",
		Annotations:  map[string]string{cobra.CommandDisplayNameAnnotation: "kubectl berth"},
		SilenceUsage: true,
	}
	root.AddCommand(newSimulate())
	return root
}

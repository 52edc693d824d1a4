// Command kubectl-berth is the user's command line: a kubectl plugin, called as
// `kubectl berth`.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/berthmaster/berthmaster/internal/cli"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	root := cli.New(genericiooptions.IOStreams{In: os.Stdin, Out: os.Stdout, ErrOut: os.Stderr})
	err := root.ExecuteContext(ctx)
	stop()
	if err != nil {
		os.Exit(1) // cobra has printed the error
	}
}

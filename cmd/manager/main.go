package main

import (
	"context"
	"flag"
	"fmt"
	"os"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client/config"
)

func main() {
	if err := run(ctrl.SetupSignalHandler(), os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "manager:", err)
		os.Exit(1)
	}
}

// run is the manager from its flags to its end.
func run(ctx context.Context, arguments []string) error {
	var o options
	flags := flag.NewFlagSet("manager", flag.ContinueOnError)
	config.RegisterFlags(flags)
	o.bind(flags)
	if err := flags.Parse(arguments); err != nil {
		return err
	}
	if err := o.validate(flags.Args()); err != nil {
		return err
	}
	use(o.logging.logger(os.Stderr))
	cluster, err := config.GetConfig()
	if err != nil {
		return fmt.Errorf("find the cluster: %w", err)
	}
	// The API server's own priority and fairness decides, not a guess on this side.
	cluster.QPS = -1
	return serve(ctx, cluster, &o)
}

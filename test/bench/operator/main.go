package main

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

// options are the flags.
type options struct {
	root, manager, assets string
	pools, backends       int
	many                  int
	idle                  time.Duration
	samples               int
}

// layout is how many pools there are, and how many backends each has.
type layout struct {
	pools, backends int
	// suffix of the figures' names.
	suffix string
}

func main() {
	var o options
	flag.StringVar(&o.root, "root", ".", "the folder of the project")
	flag.StringVar(&o.manager, "manager", "bin/manager", "the manager's program")
	flag.StringVar(&o.assets, "assets", cmp.Or(os.Getenv("KUBEBUILDER_ASSETS"), "bin/k8s"), "the folder of etcd and kube-apiserver")
	flag.IntVar(&o.pools, "pools", 10, "pools of the first round")
	flag.IntVar(&o.backends, "backends", 100, "backends of each of them")
	flag.IntVar(&o.many, "many", 1000, "pools of two backends in the second round; 0: no second round")
	flag.DurationVar(&o.idle, "idle", 30*time.Second, "how long the manager is watched while nothing happens")
	flag.IntVar(&o.samples, "samples", 200, "engines that become ready, one after the other")
	flag.Parse()
	log.SetLogger(logr.Discard()) // the figures speak
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, &o); err != nil {
		fmt.Fprintln(os.Stderr, "bench/operator:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, o *options) error {
	layouts := []layout{{o.pools, o.backends, "1000_backends"}}
	if o.many > 0 {
		layouts = append(layouts, layout{o.many, 2, "1000_pools"})
	}
	for _, l := range layouts {
		if err := measure(ctx, o, l); err != nil {
			return fmt.Errorf("%d pools of %d: %w", l.pools, l.backends, err)
		}
	}
	return nil
}

// measure prints the figures of one layout.
func measure(ctx context.Context, o *options, l layout) (err error) {
	s, err := openSite(ctx, o, l)
	if err != nil {
		return err
	}
	defer func() { err = s.close(err) }()
	if err := s.settle(ctx); err != nil {
		return err
	}
	millicores, err := s.manager.idle(ctx, o.idle)
	if err != nil {
		return err
	}
	// The same memory whatever garbage there was: the most that it ever had.
	mib, err := s.manager.usage().PeakMiB()
	if err != nil {
		return err
	}
	waits, err := s.readiness(ctx, o.samples)
	if err != nil {
		return err
	}
	figure := func(name string, value float64, unit string) {
		fmt.Printf("figure %s_%s %.0f %s\n", name, l.suffix, value, unit)
	}
	figure("idle_millicores", millicores, "millicores")
	figure("manager_mib", mib, "MiB")
	name := "ready_to_admissible_p99_ms"
	if l.suffix != "1000_backends" {
		name += "_" + l.suffix
	}
	fmt.Printf("figure %s %.0f ms\n", name, float64(quantile(waits, 0.99))/float64(time.Millisecond))
	return nil
}

package main

import (
	"context"
	"flag"
	"fmt"
	"net/netip"
	"os"
	"os/signal"
	"slices"
	"syscall"
	"time"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/berthmaster/berthmaster/test/local"
	"github.com/berthmaster/berthmaster/test/story"
)

func main() {
	log.SetLogger(logr.Discard()) // the API client's own complaints come back as errors
	c := local.Config{
		Engines: 1, FirstAddress: netip.MustParseAddr("127.0.0.71"), Speed: 1, Replicas: 2,
		Say: func(line string) { fmt.Fprintln(os.Stderr, line) },
	}
	rounds := flag.Int("rounds", 3, "rounds of each kind")
	c.Flags(flag.CommandLine, "takeover")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, c, *rounds); err != nil {
		fmt.Fprintln(os.Stderr, "takeover:", err)
		os.Exit(1)
	}
}

// end is how a leader goes away.
type end struct {
	figure string
	strike func(context.Context, *local.Replica)
}

func run(ctx context.Context, c local.Config, rounds int) error {
	system, err := local.Start(ctx, c)
	if err != nil {
		return err
	}
	defer system.Close()
	if err := system.ApplySample(ctx); err != nil {
		return err
	}
	if err := system.Until(ctx, "every engine to serve", story.AllServe(c.Engines)); err != nil {
		return err
	}
	for _, e := range []end{
		{"takeover_seconds", func(_ context.Context, r *local.Replica) { r.Kill() }},
		{"takeover_seconds_clean", func(ctx context.Context, r *local.Replica) { r.Quit(ctx) }},
	} {
		var gaps []time.Duration
		for range rounds {
			gap, err := measure(ctx, system, e)
			if err != nil {
				return fmt.Errorf("%s: %w", e.figure, err)
			}
			c.Say(fmt.Sprintf("%s: %.2f s", e.figure, gap.Seconds()))
			gaps = append(gaps, gap)
		}
		slices.Sort(gaps)
		fmt.Printf("figure %s %.2f s\n", e.figure, gaps[len(gaps)/2].Seconds())
	}
	return nil
}

// measure is the longest time without a grant while the leader goes away and another takes over.
func measure(ctx context.Context, system *local.System, e end) (time.Duration, error) {
	const patience = 2 * time.Minute
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	leader, err := system.Leader(ctx)
	if err != nil {
		return 0, err
	}
	asking := newAsking(ctx, system.PoolURL())
	defer asking.stop()
	before, err := asking.untilGrants(ctx, 0)
	if err != nil {
		return 0, err
	}
	asking.forget()
	e.strike(ctx, leader)
	if _, err := asking.untilGrants(ctx, before); err != nil {
		return 0, err
	}
	gap := asking.gap()
	asking.stop()
	next, err := system.StartReplica(ctx)
	if err != nil {
		return 0, err
	}
	return gap, system.UntilReady(ctx, next)
}

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
	"github.com/berthmaster/berthmaster/test/rollouts"
	"github.com/berthmaster/berthmaster/test/story"
)

func main() {
	log.SetLogger(logr.Discard()) // the API client's own complaints come back as errors
	c := local.Config{
		Engines: 8, FirstAddress: netip.MustParseAddr("127.0.0.81"), Speed: 1, EngineFlags: []string{"--update-time", "500ms"},
		Say: func(line string) { fmt.Fprintln(os.Stderr, line) },
	}
	rounds := flag.Int("rounds", 3, "changes by each strategy")
	c.Flags(flag.CommandLine, "rollout")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, c, *rounds); err != nil {
		fmt.Fprintln(os.Stderr, "rollout:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, c local.Config, rounds int) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Minute)
	defer cancel()
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
	if _, err := rollouts.Make(ctx, system, rollouts.Change{Version: "step-0", Strategy: "AllAtOnce"}); err != nil {
		return err
	}
	version := 0
	for _, strategy := range []struct{ name, figure string }{
		{"AllAtOnce", "rollout_stall_ms_all_at_once"}, {"Rolling", "rollout_stall_ms_rolling"},
	} {
		var stalls []time.Duration
		for range rounds {
			version++
			stall, err := measure(ctx, system, rollouts.Change{Version: fmt.Sprint("step-", version), Strategy: strategy.name})
			if err != nil {
				return fmt.Errorf("%s: %w", strategy.name, err)
			}
			c.Say(fmt.Sprintf("%s: %.1f ms", strategy.name, milliseconds(stall)))
			stalls = append(stalls, stall)
		}
		slices.Sort(stalls)
		fmt.Printf("figure %s %.1f ms\n", strategy.figure, milliseconds(stalls[len(stalls)/2]))
	}
	return nil
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// measure is the longest time between two grants while a change is made, from just before it is asked for
// until grants have gone on after it.
func measure(ctx context.Context, system *local.System, c rollouts.Change) (time.Duration, error) {
	load, err := begin(ctx, system)
	if err != nil {
		return 0, err
	}
	defer load.stop()
	if err := load.until(ctx, enough); err != nil {
		return 0, err
	}
	done, err := rollouts.Make(ctx, system, c)
	if err != nil {
		return 0, err
	}
	if err := load.until(ctx, load.count()+enough); err != nil {
		return 0, err
	}
	load.stop()
	stall, _ := rollouts.Longest(load.moments(), done.Begun, done.Ended)
	return stall, load.failure()
}

package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"time"

	"github.com/berthmaster/berthmaster/test/bench/child"
)

// options are the flags.
type options struct {
	role         role
	seconds      float64
	rounds       int
	connections  int
	waiters      int
	acquireBytes int
	releaseBytes int
}

// role is which of the processes this one is.
type role string

const (
	conductor role = "" // starts the others, and is the load
	leases    role = "leases"
	empty     role = "empty"
)

func main() {
	var o options
	flag.StringVar((*string)(&o.role), "role", "", "internal: which process this is")
	flag.IntVar(&o.acquireBytes, "acquire-bytes", 0, "internal: size of an acquire's answer")
	flag.IntVar(&o.releaseBytes, "release-bytes", 0, "internal: size of a release's answer")
	flag.Float64Var(&o.seconds, "seconds", 1, "length of a round, in seconds")
	flag.IntVar(&o.rounds, "rounds", 11, "rounds of each kind")
	flag.IntVar(&o.connections, "connections", 32, "connections at once")
	flag.IntVar(&o.waiters, "waiters", 256, "clients that wait at once")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, o); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, o options) error {
	switch o.role {
	case leases:
		return serveLeases(ctx)
	case empty:
		return serveEmpty(ctx, o.acquireBytes, o.releaseBytes)
	case conductor:
		return measure(ctx, o)
	}
	return fmt.Errorf("no role %q", o.role)
}

// measure runs the rounds and prints the figures.
func measure(ctx context.Context, o options) error {
	api, err := child.Start(ctx, "-role", string(leases))
	if err != nil {
		return err
	}
	defer api.Stop()
	sizes, err := sizesOf(ctx, api.Address)
	if err != nil {
		return err
	}
	noop, err := child.Start(ctx, "-role", string(empty), "-acquire-bytes", fmt.Sprint(sizes.acquire), "-release-bytes", fmt.Sprint(sizes.release))
	if err != nil {
		return err
	}
	defer noop.Stop()
	rate, err := compareThroughput(ctx, o, api, noop)
	if err != nil {
		return err
	}
	if err := compareLatency(ctx, o, api, noop, rate/2); err != nil {
		return err
	}
	return measureWaking(ctx, o, api)
}

// compareThroughput prints the ratio and returns the leases per second.
func compareThroughput(ctx context.Context, o options, api, noop *child.Process) (float64, error) {
	length := time.Duration(o.seconds * float64(time.Second))
	var ratios, rates []float64
	for range o.rounds {
		base, baseCPU, err := throughputOf(ctx, noop, o.connections, length)
		if err != nil {
			return 0, fmt.Errorf("empty handler: %w", err)
		}
		got, cpu, err := throughputOf(ctx, api, o.connections, length)
		if err != nil {
			return 0, fmt.Errorf("lease API: %w", err)
		}
		fmt.Fprintf(os.Stderr, "lease API %.0f leases/s at %v of processor each, empty handler %.0f pairs/s at %v\n", got, cpu, base, baseCPU)
		ratios, rates = append(ratios, got/base), append(rates, got)
	}
	fmt.Printf("figure http_lease_vs_noop %.3f ratio\n", median(ratios))
	return median(rates), nil
}

// compareLatency prints the ratio of the 99th percentiles at a given number of leases per second.
func compareLatency(ctx context.Context, o options, api, noop *child.Process, rate float64) error {
	length := time.Duration(o.seconds * float64(time.Second))
	var ratios []float64
	for range o.rounds {
		base, err := latencies(ctx, noop.Address, o.connections, rate, length)
		if err != nil {
			return fmt.Errorf("empty handler: %w", err)
		}
		got, err := latencies(ctx, api.Address, o.connections, rate, length)
		if err != nil {
			return fmt.Errorf("lease API: %w", err)
		}
		fmt.Fprintf(os.Stderr, "at %.0f leases/s: lease API p99 %v, empty handler p99 %v\n", rate, percentile(got, 99), percentile(base, 99))
		ratios = append(ratios, float64(percentile(got, 99))/float64(percentile(base, 99)))
	}
	fmt.Printf("figure http_lease_p99_vs_noop %.3f ratio\n", median(ratios))
	return nil
}

// measureWaking prints the median of how long a freed place takes to reach who waits for it.
func measureWaking(ctx context.Context, o options, api *child.Process) error {
	var all []time.Duration
	for range o.rounds {
		got, err := waking(ctx, api.Address, o.waiters)
		if err != nil {
			return fmt.Errorf("waiting clients: %w", err)
		}
		all = append(all, got...)
	}
	fmt.Printf("figure waiters_wake_us %.0f us\n", float64(percentile(all, 50))/float64(time.Microsecond))
	return nil
}

func median(v []float64) float64 {
	slices.Sort(v)
	return v[len(v)/2]
}

// percentile sorts v and returns its p-th percentile.
func percentile(v []time.Duration, p int) time.Duration {
	slices.Sort(v)
	return v[min(len(v)*p/100, len(v)-1)]
}

package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/berthmaster/berthmaster/test/bench/child"
)

// options are the flags.
type options struct {
	role    role
	address string
	abuse   string
	length  time.Duration
	rounds  int
	rate    float64
	only    string
}

// role is which of the processes this one is.
type role string

const (
	conductor role = "" // starts the others, and is the well-behaved client
	served    role = "served"
	abuser    role = "abuser"
)

func main() {
	var o options
	flag.StringVar((*string)(&o.role), "role", "", "internal: which process this is")
	flag.StringVar(&o.address, "address", "", "internal: of the server")
	flag.StringVar(&o.abuse, "abuse", "", "internal: what the abuser does")
	flag.DurationVar(&o.length, "length", 2*time.Second, "length of a round")
	flag.IntVar(&o.rounds, "rounds", 7, "rounds of each kind")
	flag.Float64Var(&o.rate, "rate", 300, "leases per second of the well-behaved client")
	flag.StringVar(&o.only, "only", "", "these abuses only, separated by commas")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, &o); err != nil {
		fmt.Fprintln(os.Stderr, "bench/abuse:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, o *options) error {
	switch o.role {
	case served:
		return serve(ctx)
	case abuser:
		return misbehave(ctx, o)
	case conductor:
		return measure(ctx, o)
	}
	return fmt.Errorf("no role %q", o.role)
}

// idleAbuse is the one whose memory is told by itself.
const idleAbuse = "idle_15k"

// measure goes through the abuses and prints the figures.
func measure(ctx context.Context, o *options) error {
	server, err := child.Start(ctx, "-role", string(served))
	if err != nil {
		return err
	}
	defer server.Stop()
	worst, peak := 0.0, 0.0
	for _, name := range names() {
		if o.only != "" && !slices.Contains(strings.Split(o.only, ","), name) {
			continue
		}
		r, err := compare(ctx, o, server, name)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		fmt.Printf("figure abuse_%s_p99_vs_quiet %.2f ratio\n", name, r.ratio)
		worst = max(worst, r.ratio)
		if name == idleAbuse {
			fmt.Printf("figure %s_rss_mib %.0f MiB\n", name, r.mib)
			continue
		}
		peak = max(peak, r.mib)
	}
	fmt.Printf("figure abuse_p99_vs_quiet %.2f ratio\n", worst)
	fmt.Printf("figure abuse_peak_rss_mib %.0f MiB\n", peak)
	return nil
}

// result is what one abuse did.
type result struct {
	ratio float64
	mib   float64
}

// compare measures the client while the server is quiet, and while it is abused.
func compare(ctx context.Context, o *options, server *child.Process, name string) (result, error) {
	client := newClient(server.Address)
	defer client.close()
	quiet, err := client.p99s(ctx, o)
	if err != nil {
		return result{}, fmt.Errorf("while it is quiet: %w", err)
	}
	if err := forgetPeak(server); err != nil {
		return result{}, err
	}
	bad, err := child.Start(ctx, "-role", string(abuser), "-abuse", name, "-address", server.Address)
	if err != nil {
		return result{}, err
	}
	defer bad.Stop()
	abused, err := client.p99s(ctx, o)
	if err != nil {
		return result{}, fmt.Errorf("while it is abused: %w", err)
	}
	mib, err := memory(server, name)
	if err != nil {
		return result{}, fmt.Errorf("the server is dead: %w", err)
	}
	if _, err := bad.Usage().ResidentMiB(); err != nil {
		return result{}, fmt.Errorf("the abuser has ended: %w", err)
	}
	fmt.Fprintf(os.Stderr, "%s: p99 quiet %v, abused %v, memory %.0f MiB\n", name, quiet, abused, mib)
	return result{ratio: float64(slices.Min(abused)) / float64(slices.Min(quiet)), mib: mib}, nil
}

// forgetPeak has the kernel measure the peak of a process's memory from now on (proc_pid_clear_refs(5)).
func forgetPeak(p *child.Process) error {
	const peak = "5"
	return os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", p.Usage().PID), []byte(peak), 0)
}

// memory is what the server has resident with idle connections, or the most that it had with others.
func memory(server *child.Process, abuse string) (float64, error) {
	if abuse == idleAbuse {
		return server.Usage().ResidentMiB()
	}
	return server.Usage().PeakMiB()
}

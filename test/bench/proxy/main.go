package main

import (
	"context"
	"flag"
	"fmt"
	"net/http"
	"os"
	"os/signal"
	"time"

	"github.com/berthmaster/berthmaster/test/bench/child"
)

// options are the flags.
type options struct {
	role    role
	engine  string
	seconds float64
	rounds  int
	workers int
	streams int
}

// role is which of the processes this one is.
type role string

const (
	conductor role = "" // starts the others, and is the client
	engine    role = "engine"
	bare      role = "bare"
	leasing   role = "leasing"
)

func main() {
	var o options
	flag.StringVar((*string)(&o.role), "role", "", "internal: which process this is")
	flag.StringVar(&o.engine, "engine", "", "internal: the engine's URL")
	flag.Float64Var(&o.seconds, "seconds", 3, "length of a round, in seconds")
	flag.IntVar(&o.rounds, "rounds", 5, "rounds of each kind")
	flag.IntVar(&o.workers, "workers", 32, "requests at once")
	flag.IntVar(&o.streams, "streams", 8000, "streams to hold open")
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
	case engine:
		return child.Serve(ctx, &http.Server{Handler: engineHandler()})
	case bare:
		return child.Serve(ctx, &http.Server{Handler: bareProxy(o.engine)})
	case leasing:
		h, err := leasingProxy(o.engine)
		if err != nil {
			return err
		}
		return child.Serve(ctx, &http.Server{Handler: h})
	case conductor:
	}
	return conduct(ctx, o)
}

// conduct starts the processes, measures, and ends them.
func conduct(ctx context.Context, o options) error {
	e, err := child.Start(ctx, "-role", string(engine))
	if err != nil {
		return err
	}
	defer e.Stop()
	b, err := child.Start(ctx, "-role", string(bare), "-engine", e.URL())
	if err != nil {
		return err
	}
	defer b.Stop()
	p, err := child.Start(ctx, "-role", string(leasing), "-engine", e.URL())
	if err != nil {
		return err
	}
	defer p.Stop()
	if err := compareRates(ctx, o, b.URL(), p.URL()+proxyPath); err != nil {
		return err
	}
	if err := compareFirstBytes(ctx, o, e.URL(), p.URL()+proxyPath); err != nil {
		return err
	}
	return measureStreams(ctx, o, p)
}

// figure prints one result.
func figure(name string, value float64, unit string) {
	fmt.Printf("figure %s %.3f %s\n", name, value, unit)
}

// lap is how long a round of the load is.
func (o options) lap() time.Duration { return time.Duration(o.seconds * float64(time.Second)) }

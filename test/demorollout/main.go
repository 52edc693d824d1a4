package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net/netip"
	"os"
	"os/signal"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/berthmaster/berthmaster/test/local"
)

// options are the flags.
type options struct {
	local    local.Config
	svg      string
	sessions int
	columns  int
}

func main() {
	log.SetLogger(logr.Discard()) // the API client's own complaints come back as errors
	o := parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, o); err != nil {
		fmt.Fprintln(os.Stderr, "demo-rollout:", err)
		os.Exit(1)
	}
}

func parse() options {
	var o options
	first := "127.0.0.11"
	o.local.Flags(flag.CommandLine, "demo-rollout")
	flag.Float64Var(&o.local.Speed, "speed", 25, "how much faster than real time workload and engines run")
	flag.IntVar(&o.local.Engines, "engines", 8, "how many simulated engines to run")
	flag.StringVar(&first, "first-address", first, "loopback address of the first engine")
	flag.StringVar(&o.svg, "svg", "", "where to draw the timeline; empty: timeline.svg in the folder for logs")
	flag.IntVar(&o.sessions, "sessions", 96, "how many sessions run at once; each is followed by another")
	flag.IntVar(&o.columns, "columns", 110, "width of the timeline in the terminal")
	flag.Parse()
	o.local.FirstAddress = netip.MustParseAddr(first)
	o.local.Say = newStage().say
	return o
}

// stage shows lines behind the time since the start.
type stage struct {
	begun time.Time
	mu    sync.Mutex
}

func newStage() *stage { return &stage{begun: time.Now()} }

func (s *stage) say(line string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	fmt.Printf("%6.1fs  %s\n", time.Since(s.begun).Seconds(), line)
}

// run shows the whole piece, and judges it after everything has stopped.
func run(ctx context.Context, o options) (err error) {
	for _, folder := range []*string{&o.local.Root, &o.local.Bin, &o.local.Assets, &o.local.Work} {
		if *folder, err = filepath.Abs(*folder); err != nil {
			return err
		}
	}
	if o.svg == "" {
		o.svg = filepath.Join(o.local.Work, "timeline.svg")
	}
	// An update of such weights takes half a minute; compressed like all the rest.
	o.local.EngineFlags = []string{"--update-time", "30s"}
	system, err := local.Start(ctx, o.local)
	if err != nil {
		return err
	}
	p := &piece{options: o, system: system}
	played := p.play(ctx)
	system.Close()
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return errors.Join(played, p.judge())
}

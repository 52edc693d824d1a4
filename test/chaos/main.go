package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net/netip"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/berthmaster/berthmaster/test/local"
)

const (
	engines = 4
	speed   = 20
)

func main() {
	log.SetLogger(logr.Discard()) // the API client's own complaints come back as errors
	var c local.Config
	number := flag.Int("rounds", 5, "how often something happens")
	flag.IntVar(&c.Replicas, "managers", 2, "how many managers there are, 2 or more")
	only := flag.String("only", "", "only the kind whose name contains this")
	single := flag.Bool("alone", false, "one manager without an election, and the API server away from it")
	seed := flag.Uint64("seed", 1, "chooses the moments")
	c.Flags(flag.CommandLine, "chaos")
	flag.Parse()
	c.Engines, c.FirstAddress, c.Speed = engines, netip.MustParseAddr("127.0.0.61"), speed
	c.EngineFlags = []string{"--update-time", loading}
	c.Say = func(line string) { fmt.Println(line) }
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	err := errors.New("no kind has that name")
	if *single {
		err = alone(ctx, c, *seed)
	} else if list := named(*only); len(list) > 0 {
		err = rounds(ctx, c, list, *number, *seed)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "chaos:", err)
		os.Exit(1)
	}
}

// named are the kinds whose name contains a text.
func named(text string) []kind {
	return slices.DeleteFunc(kinds(), func(k kind) bool { return !strings.Contains(k.name, text) })
}

package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
)

func main() {
	if ran, err := clientsIfAsked(os.Stdout); ran {
		exit(err)
	}
	leases := flag.Int("leases", 1_000_000, "how many leases to take")
	abuse := flag.Bool("abuse", false, "go through the list of abuses instead")
	ids := flag.Int("ids", 1_000_000, "how many distinct ids an abuser sends")
	waiting := flag.Int("waiting", 10_000, "how many clients wait at once")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if *abuse {
		exit(runAbuse(ctx, os.Stdout, *ids, *waiting))
	}
	exit(runSoak(ctx, os.Stdout, *leases))
}

func exit(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "soak:", err)
		os.Exit(1)
	}
	os.Exit(0)
}

// sayf tells a person what goes on.
func sayf(w io.Writer, format string, args ...any) { fmt.Fprintf(w, "soak: "+format+"\n", args...) }

package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"
)

func main() {
	cache := flag.String("cache", ".cache/proxyclients", "folder for the clients' packages")
	only := flag.String("only", "python,node,curl", "which clients to run")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, *cache, strings.Split(*only, ",")); err != nil {
		fmt.Fprintln(os.Stderr, "proxyclients:", err)
		os.Exit(1)
	}
}

// errSkip is wrapped by what keeps a client from being run without being a fault of the proxy.
var errSkip = errors.New("skipped")

// run runs each client against a house of its own, so that their counts do not mix.
func run(ctx context.Context, cache string, names []string) error {
	clients := map[string]func(context.Context, string, *house) error{"python": python, "node": node, "curl": curl}
	var failed []error
	for _, name := range names {
		client := clients[name]
		if client == nil {
			return fmt.Errorf("-only %q: there are python, node and curl", name)
		}
		err := visit(ctx, cache, client)
		switch {
		case errors.Is(err, errSkip):
			fmt.Printf("SKIP %s: %v\n", name, err)
		case err != nil:
			fmt.Printf("FAIL %s: %v\n", name, err)
			failed = append(failed, fmt.Errorf("%s: %w", name, err))
		default:
			fmt.Printf("PASS %s\n", name)
		}
	}
	return errors.Join(failed...)
}

func visit(ctx context.Context, cache string, client func(context.Context, string, *house) error) error {
	h, err := open(ctx)
	if err != nil {
		return err
	}
	defer h.close()
	if err := client(ctx, cache, h); err != nil {
		return err
	}
	return h.judge(ctx)
}

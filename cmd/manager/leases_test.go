package main

import (
	"context"
	"errors"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/berthmaster/berthmaster/internal/router"
	"github.com/berthmaster/berthmaster/internal/router/server"
)

// startAPI serves leases on a free port until the test ends. known lets it answer.
func startAPI(t *testing.T, known func(context.Context) error) (*leaseAPI, <-chan error) {
	t.Helper()
	keys, err := (&options{}).tokenKeys()
	if err != nil {
		t.Fatal(err)
	}
	var lc net.ListenConfig
	free, err := lc.Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := free.Addr().String()
	_ = free.Close() // the API binds it next
	api, err := server.New(server.Config{Pools: router.NewPools(), Keys: keys, BindAddress: address})
	if err != nil {
		t.Fatal(err)
	}
	leases := &leaseAPI{address: address, server: api, poolsKnown: known}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- leases.Start(ctx) }()
	t.Cleanup(cancel)
	return leases, ended
}

func TestLeaseAPIKeepsCallersWaitingUntilThePoolsAreKnown(t *testing.T) {
	known, asked := make(chan struct{}), make(chan struct{})
	leases, _ := startAPI(t, func(context.Context) error {
		close(asked)
		<-known
		return nil
	})
	<-asked
	if err := leases.check(nil); !errors.Is(err, errStarting) {
		t.Errorf("ready says %v before the pools are known", err)
	}
	answered := make(chan int, 1)
	go func() { answered <- status(t.Context(), leases.address) }()
	select {
	case code := <-answered:
		t.Fatalf("answered %d before the pools were known", code)
	case <-time.After(200 * time.Millisecond):
	}
	close(known)
	select {
	case code := <-answered:
		if code != http.StatusNotFound {
			t.Errorf("answered %d, want 404 for a pool that does not exist", code)
		}
	case <-time.After(time.Minute):
		t.Fatal("no answer after the pools were known")
	}
	if err := leases.check(nil); err != nil {
		t.Errorf("ready says %v", err)
	}
}

func TestLeaseAPIEndsQuietlyWhenTheManagerDoes(t *testing.T) {
	for name, c := range map[string]struct {
		err   error
		quiet bool
	}{"the manager ends": {context.Canceled, true}, "the pools cannot be listed": {errors.New("forbidden"), false}} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			leases := &leaseAPI{address: "127.0.0.1:0", poolsKnown: func(context.Context) error {
				if c.quiet {
					cancel()
				}
				return c.err
			}}
			if err := leases.Start(ctx); (err == nil) != c.quiet {
				t.Errorf("Start: %v, want quiet: %t", err, c.quiet)
			}
		})
	}
}

// status is the HTTP status of a call about a pool that does not exist; 0: there was no answer.
func status(ctx context.Context, address string) int {
	call, err := http.NewRequestWithContext(ctx, http.MethodGet,
		"http://"+address+"/v1alpha1/namespaces/rl/inferencepools/policy", nil)
	if err != nil {
		return 0
	}
	reply, err := http.DefaultClient.Do(call)
	if err != nil {
		return 0
	}
	defer reply.Body.Close()
	return reply.StatusCode
}

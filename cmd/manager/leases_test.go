package main

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/berthmaster/berthmaster/internal/door"
	"github.com/berthmaster/berthmaster/internal/router"
	"github.com/berthmaster/berthmaster/internal/router/proxy"
	"github.com/berthmaster/berthmaster/internal/router/server"
)

// apiRoom is how many connections it has.
const apiRoom = 50

// startAPI serves leases on a free port until the test ends. known lets it answer.
func startAPI(ctx context.Context, t *testing.T, known func(context.Context) error) (*leaseAPI, <-chan error) {
	t.Helper()
	keys, err := (&options{}).tokenKeys()
	if err != nil {
		t.Fatal(err)
	}
	address := freeAddress(t)
	pools := router.NewPools()
	api, err := server.New(server.Config{Pools: pools, Keys: keys, BindAddress: address})
	if err != nil {
		t.Fatal(err)
	}
	transparent, err := proxy.New(proxy.Config{Pools: pools})
	if err != nil {
		t.Fatal(err)
	}
	leases := &leaseAPI{address: address, door: door.New(apiRoom), leases: api, proxy: transparent, poolsKnown: known}
	ended := make(chan error, 1)
	go func() { ended <- leases.Start(ctx) }()
	return leases, ended
}

// freeAddress is one that nobody listens on, for whoever binds it next.
func freeAddress(t *testing.T) string {
	t.Helper()
	var lc net.ListenConfig
	free, err := lc.Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer free.Close()
	return free.Addr().String()
}

// untilDone polls until ok.
func untilDone(t *testing.T, what string, ok func() bool) {
	t.Helper()
	look := time.NewTicker(5 * time.Millisecond)
	defer look.Stop()
	deadline := time.After(time.Minute)
	for !ok() {
		select {
		case <-look.C:
		case <-deadline:
			t.Fatal("in vain: ", what)
		}
	}
}

func TestLeaseAPIKeepsCallersWaitingUntilThePoolsAreKnown(t *testing.T) {
	known, asked := make(chan struct{}), make(chan struct{})
	leases, _ := startAPI(t.Context(), t, func(context.Context) error {
		close(asked)
		<-known
		return nil
	})
	<-asked
	if err := leases.check(nil); !errors.Is(err, errStarting) {
		t.Errorf("ready says %v before the pools are known", err)
	}
	answered := make(chan int, 1)
	go func() { answered <- status(t.Context(), leases.address, poolPath) }()
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

func TestLeaseAPIAndProxyShareAnAddressAndEndWithTheManager(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	leases, ended := startAPI(ctx, t, func(context.Context) error { return nil })
	untilAnswers(t, leases)
	for path, want := range map[string]int{
		poolPath: http.StatusNotFound, poolPath + "/senders/train/proxy/v1/models": http.StatusNotFound,
		"/elsewhere": http.StatusNotFound,
	} {
		if code := status(t.Context(), leases.address, path); code != want {
			t.Errorf("%s: %d, want %d", path, code, want)
		}
	}
	cancel()
	select {
	case err := <-ended:
		if err != nil {
			t.Errorf("Start: %v", err)
		}
	case <-time.After(time.Minute):
		t.Fatal("goes on after the manager has ended")
	}
}

func TestCallsGoToTheProxyByTheirPathOnly(t *testing.T) {
	var reached string
	mark := func(name string) http.Handler {
		return http.HandlerFunc(func(http.ResponseWriter, *http.Request) { reached = name })
	}
	leases, _ := startAPI(t.Context(), t, func(context.Context) error { return nil })
	leases.proxy = mark("proxy")
	for path, want := range map[string]string{
		poolPath + "/senders/train/proxy/generate": "proxy", poolPath + "/leases": "", poolPath: "",
	} {
		reached = ""
		leases.ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(t.Context(), http.MethodGet, "http://localhost"+path, nil))
		if reached != want {
			t.Errorf("%s reached %q, want %q", path, reached, want)
		}
	}
}

func TestIdleConnectionsBeyondTheRoomGiveWayToWhoeverCalls(t *testing.T) {
	const idle = 2 * apiRoom
	leases, _ := startAPI(t.Context(), t, func(context.Context) error { return nil })
	untilAnswers(t, leases)
	for range idle {
		c, err := new(net.Dialer).DialContext(t.Context(), "tcp", leases.address)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
	}
	if code := status(t.Context(), leases.address, poolPath); code != http.StatusNotFound {
		t.Errorf("answered %d, want 404 for a pool that does not exist", code)
	}
	untilDone(t, "the room is kept", func() bool {
		c := leases.door.Counts()
		return c.Open <= apiRoom && c.Displaced >= idle-apiRoom && c.Refused == 0
	})
}

// untilAnswers waits until the API is ready.
func untilAnswers(t *testing.T, leases *leaseAPI) {
	t.Helper()
	untilDone(t, "the lease API answers", func() bool { return leases.check(nil) == nil })
}

// poolPath is where a pool that does not exist would be.
const poolPath = "/v1alpha1/namespaces/rl/inferencepools/policy"

// status is the HTTP status of a call; 0: there was no answer.
func status(ctx context.Context, address, path string) int {
	call, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+path, nil)
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

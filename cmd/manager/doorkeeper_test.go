package main

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"

	"github.com/berthmaster/berthmaster/internal/access"
	"github.com/berthmaster/berthmaster/internal/door"
	"github.com/berthmaster/berthmaster/internal/router"
	"github.com/berthmaster/berthmaster/internal/router/proxy"
	"github.com/berthmaster/berthmaster/internal/router/server"
)

// reviewer knows one token, and has no answer about another one.
type reviewer struct{ asked chan struct{} }

func (v reviewer) Identify(ctx context.Context, token string) (access.Identity, bool, error) {
	if token == "undecided" {
		v.asked <- struct{}{}
		<-ctx.Done()
		return access.Identity{}, false, ctx.Err()
	}
	return access.Identity{User: "ann"}, token == "good", nil
}

func (reviewer) Permits(context.Context, access.Identity, access.Deed) (bool, error) {
	return true, nil
}

// withDoor is a call whose connection came by a door.
func withDoor(t *testing.T, h http.Handler, gate *access.Gate, d *door.Door, token string) {
	t.Helper()
	s := httptest.NewUnstartedServer(h)
	s.Listener = d.Guard(s.Listener)
	watched(s.Config, d, gate)
	s.Start()
	defer s.Close()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.URL+"/metrics", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+token)
	reply, err := s.Client().Do(r)
	if err != nil {
		t.Fatal(err)
	}
	reply.Body.Close()
}

func TestTheDoorLearnsOfWhoeverIsLetIn(t *testing.T) {
	pools := router.NewPools()
	gate := access.New(access.Config{Reviewer: reviewer{}, Pools: pools})
	keeper := doorkeeper{gate}
	pool := router.PoolKey{Namespace: "rl", Name: "policy"}
	for way, judge := range map[string]func(*http.Request) error{
		"Authorize":    func(r *http.Request) error { return keeper.Authorize(r, pool, "") },
		"Authenticate": keeper.Authenticate,
		"Admit":        func(r *http.Request) error { _, err := keeper.Admit(r, pool, ""); return err },
		"metrics": func(r *http.Request) error {
			w := httptest.NewRecorder()
			gate.Guard("/metrics", welcomed(http.NotFoundHandler())).ServeHTTP(w, r)
			if w.Code == http.StatusUnauthorized {
				return io.ErrClosedPipe
			}
			return nil
		},
	} {
		for token, resting := range map[string]int{"good": 0, "made-up": 1} {
			d := door.New(1)
			withDoor(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
				if c := d.Counts(); c.Resting != 1 {
					t.Errorf("%s: at work before anybody is judged: %+v", way, c)
				}
				err := judge(r)
				if c := d.Counts(); c.Resting != resting || (err == nil) != (resting == 0) {
					t.Errorf("%s by %s: %v, and %+v; want %d that rest", way, token, err, c, resting)
				}
			}), gate, d, token)
		}
	}
}

// judgedAPI serves one pool on a port with room for one connection, to callers that the reviewer judges.
func judgedAPI(t *testing.T, v reviewer) *leaseAPI {
	t.Helper()
	keys, err := (&options{}).tokenKeys()
	if err != nil {
		t.Fatal(err)
	}
	pools := router.NewPools()
	pools.Put(router.PoolKey{Namespace: "rl", Name: "policy"}, router.NewTable("uid", nil, time.Now()))
	guard := &security{gate: access.New(access.Config{Reviewer: v, Pools: pools}), ports: tlsBeyondLoopback, doors: doors{leases: door.New(1)}}
	leases, err := newLeaseAPI(logr.Discard(), &options{leaseAddress: freeAddress(t)}, server.Config{Pools: pools, Keys: keys}, proxy.Config{Pools: pools},
		guard, func(context.Context) error { return nil })
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- leases.Start(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	untilAnswers(t, leases)
	return leases
}

// watch asks for the stream of the pool.
func watch(t *testing.T, leases *leaseAPI, token string) *bufio.Reader {
	t.Helper()
	c, err := new(net.Dialer).DialContext(t.Context(), "tcp", leases.address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	if _, err := io.WriteString(c, "GET "+poolPath+"/watch HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer "+token+"\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	return bufio.NewReader(c)
}

func TestWhoeverIsNotYetLetInGivesWayAndWhoeverIsDoesNot(t *testing.T) {
	v := reviewer{asked: make(chan struct{}, 1)}
	leases := judgedAPI(t, v)
	undecided := watch(t, leases, "undecided")
	<-v.asked
	ann := watch(t, leases, "good")
	if line, err := ann.ReadString('\n'); err != nil || line != "HTTP/1.1 200 OK\r\n" {
		t.Errorf("%q, %v: not served while somebody is judged on the only place", line, err)
	}
	if _, err := undecided.ReadByte(); err == nil {
		t.Error("an answer without a judgement")
	}
	if _, err := watch(t, leases, "good").ReadByte(); err == nil {
		t.Error("served where somebody else who was let in has the only place")
	}
	if c := leases.door.Counts(); c.Displaced != 1 || c.Refused != 1 || c.Resting != 0 {
		t.Errorf("%+v", c)
	}
}

func TestHeadersOfThousandsOfLinesAreRefused(t *testing.T) {
	leases := judgedAPI(t, reviewer{})
	c, err := new(net.Dialer).DialContext(t.Context(), "tcp", leases.address)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := io.WriteString(c, "GET "+poolPath+" HTTP/1.1\r\nHost: a\r\n"+strings.Repeat("A:\n", 1000)); err != nil {
		t.Fatal(err)
	}
	_ = c.SetReadDeadline(time.Now().Add(time.Minute))
	if line, err := bufio.NewReader(c).ReadString('\n'); !strings.HasPrefix(line, "HTTP/1.1 400 ") {
		t.Errorf("%q, %v: the headers have no end, and the server waits for it", line, err)
	}
}

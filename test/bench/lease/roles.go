package main

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/berthmaster/berthmaster/internal/router"
	"github.com/berthmaster/berthmaster/internal/router/server"
	"github.com/berthmaster/berthmaster/test/bench/child"
)

// The pools that are served: a wide one for throughput, and one with a single place, for which
// clients wait.
const (
	widePool   = "wide"
	narrowPool = "narrow"
)

func pathOf(pool string) string { return "/v1alpha1/namespaces/bench/inferencepools/" + pool }

// newServer makes the lease API with both pools.
func newServer() (*server.Server, error) {
	pools := router.NewPools()
	wide, narrow := router.DefaultConfig(), router.DefaultConfig()
	wide.Retention, narrow.Retention, narrow.AdmissionPercent = 10*time.Second, 10*time.Second, 100
	for name, f := range map[string]router.Fleet{widePool: fleet(wide, 16, 4096), narrowPool: fleet(narrow, 1, 1)} {
		t := router.NewTable(router.PoolUID(name), nil, time.Now())
		t.Lead(1, router.Takeover{}, time.Now())
		if err := t.Apply(f, time.Now()); err != nil {
			return nil, err
		}
		for _, m := range f.Members {
			t.Observe(router.Observation{Incarnation: m.Incarnation, Seq: 1, Health: router.Healthy, EngineTotal: -1}, time.Now())
		}
		pools.Put(router.PoolKey{Namespace: "bench", Name: name}, t)
	}
	return server.New(server.Config{Pools: pools, Keys: server.Keys{Current: bytes.Repeat([]byte{1}, 32)}})
}

// fleet has n backends, named as pods are.
func fleet(c router.Config, n int, capacity int64) router.Fleet {
	f := router.Fleet{
		Epoch: 1, Leasing: router.LeasingOpen, Config: c,
		Senders: []router.Sender{{Name: "train", Access: router.AccessOpen}},
	}
	for i := range n {
		f.Members = append(f.Members, router.Member{
			Name: router.BackendName(fmt.Sprint("sglang-", i)), URL: fmt.Sprintf("http://10.0.0.%d:30000", i+1), Capacity: capacity,
			Incarnation: router.Incarnation(fmt.Sprintf("6f1c2a7e-0000-4000-8000-%012d/containerd://%064d", i, i)),
		})
	}
	return f
}

// serveLeases is the life of the process with the lease API.
func serveLeases(ctx context.Context) error {
	s, err := newServer()
	if err != nil {
		return err
	}
	defer s.Close()
	return child.Serve(ctx, s.HTTPServer())
}

// serveEmpty is the life of the process with the empty handler, on a server of the same settings.
func serveEmpty(ctx context.Context, acquireBytes, releaseBytes int) error {
	s, err := newServer()
	if err != nil {
		return err
	}
	defer s.Close()
	h := s.HTTPServer()
	acquired, released := bytes.Repeat([]byte{'x'}, acquireBytes), bytes.Repeat([]byte{'x'}, releaseBytes)
	h.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		status, body := http.StatusCreated, acquired
		if strings.HasSuffix(r.URL.Path, "/release") {
			status, body = http.StatusOK, released
		}
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Content-Length", strconv.Itoa(len(body)))
		w.WriteHeader(status)
		_, _ = w.Write(body)
	})
	return child.Serve(ctx, h)
}

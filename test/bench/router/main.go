// Command router measures the router in process and prints one figure a line, as `make bench`
// does:
//
//	figure NAME VALUE UNIT
package main

import (
	"fmt"
	"os"
	"runtime"
	"testing"
	"time"

	"github.com/berthmaster/berthmaster/internal/router"
	"github.com/berthmaster/berthmaster/internal/router/routertest"
)

// runs is how often each load is measured; the best run is told, since what disturbs a run on a
// shared machine only makes it slower.
const runs = 5

func main() {
	for _, backends := range []int{16, 1024} {
		fresh := measure(backends, routertest.FreshSessions)
		sticky := measure(backends, 1000)
		fmt.Printf("figure acquire_release_%d %d ns\n", backends, fresh.NsPerOp())
		fmt.Printf("figure acquire_release_sticky_%d %d ns\n", backends, sticky.NsPerOp())
		if backends == 16 {
			fmt.Printf("figure acquire_release_allocs %d count\n", max(fresh.AllocsPerOp(), sticky.AllocsPerOp()))
		}
	}
	bytes, err := sessionBytes()
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
	fmt.Printf("figure session_bytes %d bytes\n", bytes)
}

// measure is the best run of one acquire and release over and over, on so many backends: by
// sessions that begin with it, or by a fixed number of sessions that stay at home.
func measure(backends, sessions int) testing.BenchmarkResult {
	var best testing.BenchmarkResult
	for i := range runs {
		r := testing.Benchmark(func(b *testing.B) {
			l := routertest.NewLoad(b, backends, sessions)
			b.ReportAllocs()
			b.ResetTimer()
			for range b.N {
				l.Turn()
			}
		})
		if i == 0 || r.NsPerOp() < best.NsPerOp() {
			best = r
		}
	}
	return best
}

// sessionBytes is the heap that a live session at rest takes in a table of a million of them,
// its ids included, once the records of its leases are forgotten.
func sessionBytes() (uint64, error) {
	const sessions = 1_000_000
	now := time.Unix(0, 0)
	table := router.NewTable("pool", nil, now)
	table.Lead(1, router.Takeover{}, now)
	fleet := routertest.Backends("a", "b", "c", "d")
	if err := table.Apply(fleet, now); err != nil {
		return 0, err
	}
	for _, m := range fleet.Members {
		table.Observe(router.Observation{Incarnation: m.Incarnation, Seq: 1, Health: router.Healthy}, now)
	}
	before := heap()
	for i := range sessions {
		now = now.Add(2 * time.Millisecond)
		r := router.Request{
			ID: router.RequestID(fmt.Sprint("request-", i)), Session: router.SessionID(fmt.Sprintf("session-%08d", i)),
			Sender: "train", Epoch: 1, Executions: 1,
		}
		g, err := table.Acquire(r, now)
		if err != nil {
			return 0, fmt.Errorf("session %d: %w", i, err)
		}
		if _, err := table.Release(g.Claim, router.Succeeded, router.Reply{}, now); err != nil {
			return 0, fmt.Errorf("session %d: %w", i, err)
		}
	}
	now = now.Add(fleet.Config.Retention)
	if s := table.Snapshot(now); s.Sessions != sessions || s.Requests != 0 {
		return 0, fmt.Errorf("%d sessions and %d records are left", s.Sessions, s.Requests)
	}
	after := heap()
	runtime.KeepAlive(table)
	return (after - before) / sessions, nil
}

// heap is the live heap.
func heap() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

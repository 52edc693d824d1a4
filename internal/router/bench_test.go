package router_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/berthmaster/berthmaster/internal/router"
	"github.com/berthmaster/berthmaster/internal/router/routertest"
)

// The figures of `make bench` come from test/bench/router, which runs the same loads; these are
// for profiles and comparisons.

func BenchmarkAcquireRelease(b *testing.B) {
	for _, backends := range []int{16, 1024} {
		for name, sessions := range map[string]int{"fresh": routertest.FreshSessions, "sticky": 1000} {
			b.Run(fmt.Sprintf("%s/%d", name, backends), func(b *testing.B) {
				l := routertest.NewLoad(b, backends, sessions)
				b.ReportAllocs()
				b.ResetTimer()
				for range b.N {
					l.Turn()
				}
			})
		}
	}
}

func BenchmarkAcquireReleaseParallel(b *testing.B) {
	p := routertest.New(b, routertest.Backends("a", "b", "c", "d"), routertest.With(func(c *router.Config) { c.Retention = time.Second }))
	b.RunParallel(func(pb *testing.PB) {
		i := 0
		for pb.Next() {
			i++
			id := fmt.Sprintf("%p-%d", pb, i)
			g, err := p.Table.Acquire(p.Request(router.RequestID(id), router.SessionID(id[:12])), p.Now().Add(time.Duration(i)*time.Millisecond))
			if err != nil {
				b.Fatal(err)
			}
			if _, err := p.Table.Release(g.Claim, router.Succeeded, router.Reply{}, p.Now().Add(time.Duration(i)*time.Millisecond)); err != nil {
				b.Fatal(err)
			}
		}
	})
}

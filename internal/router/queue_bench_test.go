package router_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/berthmaster/berthmaster/internal/router"
	"github.com/berthmaster/berthmaster/internal/router/routertest"
)

// crowded is a held pool in which so many wait, each at a home of its own as far as homes go.
func crowded(b *testing.B, backends, waiting int) (p *routertest.Pool, served *sync.WaitGroup) {
	b.Helper()
	names := make([]router.BackendName, backends)
	for i := range names {
		names[i] = router.BackendName(fmt.Sprint("backend-", i))
	}
	p = routertest.New(b, routertest.Backends(names...))
	for i := range waiting {
		id := fmt.Sprint("s", i)
		p.Release(p.Acquire(router.RequestID("first-"+id), router.SessionID(id)), router.Succeeded)
	}
	p.Change(func(f *router.Fleet) { f.Leasing = router.LeasingHeld })
	served = new(sync.WaitGroup)
	for i := range waiting {
		id := fmt.Sprint("s", i)
		served.Go(func() {
			if _, err := p.Table.AcquireWait(context.Background(), p.Request(router.RequestID(id), router.SessionID(id)), p.Now); err != nil {
				b.Error(err)
			}
		})
	}
	for p.Snapshot().Waiting < waiting {
		time.Sleep(time.Millisecond) //nolint:forbidigo // a benchmark waits for its beginning
	}
	return p, served
}

func BenchmarkTickWhileManyWait(b *testing.B) {
	p, served := crowded(b, 1024, 16384)
	b.ResetTimer()
	for range b.N {
		p.Pass(0)
	}
	b.StopTimer()
	p.Change(func(f *router.Fleet) { f.Leasing = router.LeasingOpen })
	served.Wait()
}

func BenchmarkOpeningAPoolThatManyWaitFor(b *testing.B) {
	for range b.N {
		b.StopTimer()
		p, served := crowded(b, 16, 16384)
		b.StartTimer()
		p.Change(func(f *router.Fleet) { f.Leasing = router.LeasingOpen })
		b.StopTimer()
		served.Wait()
	}
}

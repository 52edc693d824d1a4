package proxy_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/berthmaster/berthmaster/internal/router"
	"github.com/berthmaster/berthmaster/internal/router/proxy"
)

func TestRequestsAreHeldWhateverStopsThem(t *testing.T) {
	for name, stop := range map[string][2]func(*router.Fleet){
		"leasing is held":        {func(f *router.Fleet) { f.Leasing = router.LeasingHeld }, func(f *router.Fleet) { f.Leasing = router.LeasingOpen }},
		"the sender is fenced":   {func(f *router.Fleet) { f.Senders[0].Access = router.AccessFenced }, func(f *router.Fleet) { f.Senders[0].Access = router.AccessOpen }},
		"the engines are paused": {func(f *router.Fleet) { f.Members[0].Engine = router.EnginePaused }, func(f *router.Fleet) { f.Members[0].Engine = router.EngineRunning }},
		"the engines update":     {func(f *router.Fleet) { f.Members[0].Engine = router.EngineUpdating }, func(f *router.Fleet) { f.Members[0].Engine = router.EngineRunning }},
		"the backend drains":     {func(f *router.Fleet) { f.Members[0].Drain = router.DrainMove }, func(f *router.Fleet) { f.Members[0].Drain = router.NotDraining }},
		"versions do not agree":  {func(f *router.Fleet) { f.Published = "v2" }, func(f *router.Fleet) { f.Published = "" }},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := newCalm(t, proxy.Config{}, atOnce)
				g.apply(stop[0])
				var all []*answer
				var want []string
				for i := range 20 {
					want = append(want, fmt.Sprintf("s%02d", i))
					all = append(all, g.post(want[i]))
				}
				for range 6 * 59 { // an hour, all but a minute, as a leader lives it
					pass(10 * time.Second)
					g.table.Tick(time.Now())
				}
				for _, a := range all {
					if a.over() {
						t.Fatalf("answered %d %s while held", a.Code, a.Body)
					}
				}
				if n := g.proxy.Snapshot()[rigKey].Held; n != 20 {
					t.Errorf("%d held", n)
				}
				g.apply(stop[1])
				for i, a := range all {
					if !a.over() || a.Code != 200 {
						t.Fatalf("request %d: got %d %s", i, a.Code, a.Body)
					}
				}
				got := g.order()
				if len(got) != len(want) {
					t.Fatalf("%d generations of %d requests", len(got), len(want))
				}
				if n := g.snapshot().Totals.Grants; n != 20 {
					t.Errorf("%d grants", n)
				}
			})
		})
	}
}

func TestAFullBackendServesThoseWhoWaitInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newCalm(t, proxy.Config{}, after(time.Minute))
		g.apply(func(f *router.Fleet) { f.Config.AdmissionPercent, f.Members[0].Capacity = 100, 1 })
		var all []*answer
		for i := range 5 {
			all = append(all, g.post(fmt.Sprint("s", i)))
		}
		pass(10 * time.Minute)
		for i, a := range all {
			if !a.over() || a.Code != 200 {
				t.Fatalf("request %d: got %d %s", i, a.Code, a.Body)
			}
		}
		if got := strings.Join(g.order(), " "); got != "s0 s1 s2 s3 s4" {
			t.Errorf("served %s", got)
		}
	})
}

func TestWithoutAProspectTheAnswerIsOneWordAtOnce(t *testing.T) {
	cases := map[string]struct {
		stop   func(g *calm)
		reason string
	}{
		"no backend is healthy": {func(g *calm) { g.observe(router.Unhealthy) }, "NoBackend"},
		"there is no backend":   {func(g *calm) { g.apply(func(f *router.Fleet) { f.Members = nil }) }, "NoBackend"},
		"another router leads":  {func(g *calm) { g.table.LeadUntil(time.Now(), time.Now()) }, "NoLeader"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := newCalm(t, proxy.Config{}, atOnce)
				c.stop(g)
				a := g.post("s")
				if !a.over() || a.Code != 503 || !strings.Contains(a.Body.String(), c.reason) || a.Header().Get("Retry-After") == "" || a.Header().Get("X-Should-Retry") != "" {
					t.Errorf("got %d %v %s", a.Code, a.Header(), a.Body)
				}
			})
		})
	}
}

func TestAHeldRequestIsAnsweredOnceWaitingHasNoProspect(t *testing.T) {
	cases := map[string]struct {
		turn   func(g *calm)
		status int
		reason string
	}{
		"the backend becomes unhealthy": {func(g *calm) {
			g.observe(router.Unhealthy)
			g.apply(func(f *router.Fleet) { f.Leasing = router.LeasingOpen })
		}, 503, "NoBackend"},
		"the pool is removed":         {func(g *calm) { g.pools.Remove(rigKey, g.table) }, 404, "PoolNotFound"},
		"it is deleted and made anew": {func(g *calm) { g.pools.Put(rigKey, router.NewTable("uid-2", nil, time.Now())) }, 404, "PoolNotFound"},
		"this router is deposed":      {func(g *calm) { g.pools.Put(rigKey, router.NewTable("uid", nil, time.Now())) }, 503, "NoLeader"},
		"the epoch is raised":         {func(g *calm) { g.apply(func(f *router.Fleet) { f.Epoch = 2 }) }, 409, "StaleEpoch"},
		"the generation is over":      {func(g *calm) { g.apply(func(f *router.Fleet) { f.Senders[0].MinGeneration = 4 }) }, 409, "StaleGeneration"},
		"another router takes over":   {func(g *calm) { g.table.LeadUntil(time.Now(), time.Now()) }, 503, "NoLeader"},
		"the sender leaves the spec":  {func(g *calm) { g.apply(func(f *router.Fleet) { f.Senders = nil }) }, 403, "SenderUnknown"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := newCalm(t, proxy.Config{}, atOnce)
				g.apply(func(f *router.Fleet) { f.Leasing = router.LeasingHeld })
				a := g.post("s")
				pass(time.Minute)
				if a.over() {
					t.Fatalf("not held: %d %s", a.Code, a.Body)
				}
				c.turn(g)
				pass(2 * time.Second)
				if !a.over() || a.Code != c.status || !strings.Contains(a.Body.String(), `"reason":"`+c.reason+`"`) {
					t.Errorf("got %d %s", a.Code, a.Body)
				}
				if n := len(g.order()); n != 0 {
					t.Errorf("%d sent", n)
				}
				a.hangUp()
			})
		})
	}
}

func TestAClientThatLeavesTheQueueLeavesNoTrace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newCalm(t, proxy.Config{}, atOnce)
		g.apply(func(f *router.Fleet) { f.Leasing = router.LeasingHeld })
		a := g.post("s")
		a.hangUp()
		if !a.over() {
			t.Fatal("it waits for nobody")
		}
		g.apply(func(f *router.Fleet) { f.Leasing = router.LeasingOpen })
		if s := g.snapshot(); s.Totals.Grants != 0 || s.Waiting != 0 || s.Sessions != 0 || s.Requests != 0 {
			t.Errorf("left behind: %+v", s)
		}
		if m := g.proxy.Snapshot()[rigKey]; m.Held != 0 || m.Ended["Gone"].Requests != 1 {
			t.Errorf("metrics %+v", m)
		}
	})
}

func TestNoMoreAreHeldThanMayBe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newCalm(t, proxy.Config{Limits: proxy.Limits{HeldPerPool: 2}}, atOnce)
		g.apply(func(f *router.Fleet) { f.Leasing = router.LeasingHeld })
		held := []*answer{g.post("a"), g.post("b")}
		if a := g.post("c"); !a.over() || a.Code != 429 || a.Header().Get("Retry-After") == "" {
			t.Errorf("got %d", a.Code)
		}
		for _, a := range held {
			a.hangUp()
		}
		synctest.Wait()
	})
}

func TestALongGenerationKeepsItsLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newCalm(t, proxy.Config{}, after(90*time.Minute))
		a := g.post("s")
		for range 89 {
			pass(time.Minute)
			if s := g.snapshot(); s.Backends[0].Outstanding != 1 || s.Backends[0].Held != 0 || s.Totals.Lost != 0 {
				t.Fatalf("got %+v", s.Backends[0])
			}
		}
		pass(2 * time.Minute)
		if !a.over() || a.Code != 200 || g.snapshot().Totals.Released[router.Succeeded] != 1 {
			t.Errorf("got %d %s, %v", a.Code, a.Body, g.snapshot().Totals)
		}
	})
}

func TestAnEngineThatIsSilentForTooLongIsAmbiguous(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newCalm(t, proxy.Config{}, after(24*time.Hour))
		a := g.post("s")
		pass(2*time.Hour - time.Minute)
		if a.over() {
			t.Fatalf("cut too early: %d", a.Code)
		}
		pass(10 * time.Minute)
		if !a.over() || a.Code != http.StatusBadGateway || g.snapshot().Totals.Released[router.Ambiguous] != 1 {
			t.Errorf("got %d %s", a.Code, a.Body)
		}
		if a.Header().Get("X-Should-Retry") != "false" {
			t.Error("its fate is not known, and yet the client may repeat")
		}
	})
}

func TestARaisedEpochCutsWhatRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newCalm(t, proxy.Config{}, after(time.Hour))
		a := g.post("s")
		g.apply(func(f *router.Fleet) { f.Epoch = 2 })
		pass(time.Minute) // a renewal is due every 40 s
		if !a.over() || a.Code != http.StatusBadGateway {
			t.Errorf("got %d", a.Code)
		}
		if b := g.snapshot().Backends[0]; b.Outstanding != 1 || b.Held != 1 {
			t.Errorf("the orphan is not counted until gone: %+v", b)
		}
	})
}

func TestNothingIsWrittenOutsideTheStartWindow(t *testing.T) {
	cases := map[string]struct {
		dial  time.Duration
		turn  func(g *calm)
		wrote int
	}{
		"a quick connection":                    {time.Second, nil, 1},
		"a slow connection":                     {25 * time.Second, nil, 1},
		"a connection slower than the window":   {100 * time.Second, nil, 1},
		"the epoch is raised while it connects": {20 * time.Second, func(g *calm) { g.apply(func(f *router.Fleet) { f.Epoch = 2 }) }, 0},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				slow := &function{engine: atOnce, dial: func(context.Context) error { pass(c.dial); return nil }}
				g := newCalm(t, proxy.Config{Transport: slow}, nil)
				slow.calm = g
				a := g.post("s")
				if c.turn != nil {
					c.turn(g)
				}
				pass(5 * time.Minute)
				if n := len(g.order()); !a.over() || n != c.wrote {
					t.Errorf("%d written, answered %d %s", n, a.Code, a.Body)
				}
			})
		})
	}
}

func TestAProxyOutOfItsOwnMeansBlamesNoBackend(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		broken := &function{dial: func(context.Context) error { return errors.New("too many open files") }}
		g := newCalm(t, proxy.Config{Transport: broken}, nil)
		if a := g.post("s"); !a.over() || a.Code != 503 {
			t.Errorf("got %d", a.Code)
		}
		if b := g.snapshot().Backends[0]; !b.Admissible || b.Outstanding != 0 {
			t.Errorf("got %+v", b)
		}
	})
}

func TestConfigNamesTheFieldThatCannotBeUsed(t *testing.T) {
	pools := router.NewPools()
	for field, c := range map[string]proxy.Config{
		"Pools":              {},
		"Limits.SpoolMemory": {Pools: pools, Limits: proxy.Limits{SpoolMemory: -1}},
		"Limits.SpoolBytes":  {Pools: pools, Limits: proxy.Limits{SpoolBytes: -1}},
		"Limits.Upload":      {Pools: pools, Limits: proxy.Limits{Upload: -1}},
		"Limits.Silence":     {Pools: pools, Limits: proxy.Limits{Silence: 59 * time.Minute}},
		"Limits.BodyBytes":   {Pools: pools, Limits: proxy.Limits{BodyBytes: -1}},
		"Limits.HeldPerPool": {Pools: pools, Limits: proxy.Limits{HeldPerPool: -1}},
		"Limits.Prefixes":    {Pools: pools, Limits: proxy.Limits{Prefixes: -1}},
	} {
		if _, err := proxy.New(c); err == nil || !strings.Contains(err.Error(), field) {
			t.Errorf("%s: got %v", field, err)
		}
	}
}

// The owner may shorten it while a generation runs: the renewals that the first answer asks for come too
// late then.
func TestALeaseIsRenewedInTheTimeToLiveThatHoldsNow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newCalm(t, proxy.Config{}, after(20*time.Minute))
		a := g.post("s")
		pass(time.Minute)
		g.apply(func(f *router.Fleet) { f.Config.TTL, f.Config.StartWindow = 15*time.Second, 5*time.Second })
		pass(20 * time.Minute)
		if s := g.snapshot(); s.Totals.Lost != 0 {
			t.Errorf("%d leases were lost while their requests ran", s.Totals.Lost)
		}
		if !a.over() || a.Code != 200 {
			t.Errorf("got %d %s", a.Code, a.Body)
		}
	})
}

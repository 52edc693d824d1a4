package router_test

import (
	"testing"
	"time"

	"github.com/berthmaster/berthmaster/internal/router"
	"github.com/berthmaster/berthmaster/internal/router/routertest"
)

// Design 5.3: who may settle at once, so that what cannot be proven keeps nobody from what can.

// noLeases are the ways in which the backend a takes no leases, whether or not it settles.
var noLeases = map[string]func(*routertest.Pool){
	"is unhealthy":                   func(p *routertest.Pool) { p.Observe("a/1", router.Unhealthy) },
	"refuses connections":            func(p *routertest.Pool) { p.Observe("a/1", router.Refused) },
	"refused a client's connection":  func(p *routertest.Pool) { p.Table.ConnectionRefused("a/1", p.Now()) },
	"seems paused by somebody else":  func(p *routertest.Pool) { p.Observe("a/1", router.SuspectedPaused) },
	"is paused":                      setA(func(m *router.Member) { m.Engine = router.EnginePaused }),
	"is excluded":                    setA(func(m *router.Member) { m.Excluded = "PodNotReady" }),
	"drains":                         setA(func(m *router.Member) { m.Drain = router.DrainMove }),
	"has left the fleet":             func(p *routertest.Pool) { p.Change(func(f *router.Fleet) { f.Members = f.Members[1:] }) },
	"is on another version than all": func(p *routertest.Pool) { publishToAllBut(p, "a/1") },
}

func setA(change func(*router.Member)) func(*routertest.Pool) {
	return func(p *routertest.Pool) { p.SetMember("a", change) }
}

func publishToAllBut(p *routertest.Pool, inc router.Incarnation) {
	p.Change(func(f *router.Fleet) { f.Published = "v2" })
	for _, m := range p.Fleet.Members {
		if m.Incarnation != inc {
			p.Observe(m.Incarnation, router.Healthy)
		}
	}
}

// lostOnA makes a pool of four in which a fence waits for a lost lease on the backend a.
func lostOnA(t *testing.T) *routertest.Pool {
	t.Helper()
	p := routertest.New(t, routertest.Backends("a", "b", "c", "d"), routertest.Senders("train", "eval"))
	fill(p, "a/1", 1)
	p.Pass(p.Fleet.Config.TTL)
	return p
}

// ambiguousOnB has a lease of the sender that is not fenced end as Ambiguous on the backend b.
func ambiguousOnB(p *routertest.Pool) router.Grant {
	r := p.Request("doubtful", "doubtful")
	r.Sender, r.LastIncarnation, r.LastName = "eval", "b/1", "b"
	g := p.Grant(r)
	p.Release(g, router.Ambiguous)
	return g
}

// settleOnly does what the table wants done at one backend, on which nothing runs, for the given time;
// no other engine answers.
func settleOnly(p *routertest.Pool, inc router.Incarnation, during time.Duration) {
	clock := 0.0
	for end := p.Now().Add(during); p.Now().Before(end); p.Pass(600 * time.Millisecond) {
		for _, c := range p.Table.Chores(p.Now()) {
			if c.Incarnation != inc {
				continue
			}
			clock++
			p.Table.AbortAnswered(inc, c.Abort, p.Now())
			if c.ReadLoads {
				p.Table.LoadsRead(inc, c.Stamp, ranks(1, clock, 0), p.Now())
			}
		}
	}
}

func TestWhatCannotBeProvenKeepsNoAmbiguousFromItsProof(t *testing.T) {
	cases := map[string]func(*routertest.Pool){"is healthy and hangs": func(*routertest.Pool) {}}
	for name, close := range noLeases {
		cases[name] = close
	}
	for name, close := range cases {
		t.Run("while another that waits "+name, func(t *testing.T) {
			p := lostOnA(t)
			close(p)
			p.SetSender("train", fence)
			p.Pass(time.Second)
			g := ambiguousOnB(p)
			settleOnly(p, "b/1", p.Fleet.Config.Certainty)
			if e := p.Release(g, router.Ambiguous); e.Fate != router.FateDead || p.Snapshot().Failure != nil {
				t.Errorf("the execution is %s, and b is healthy and empty; failure %+v", e.Fate, p.Snapshot().Failure)
			}
		})
	}
}

func TestABackendThatTakesNoLeasesAnywayNeedsNoPlaceToSettle(t *testing.T) {
	for name, close := range noLeases {
		t.Run(name, func(t *testing.T) {
			p := lostOnA(t)
			fill(p, "b/1", 1)
			close(p)
			p.SetSender("train", fence)
			p.Pass(p.Fleet.Config.TTL)
			if a, b := p.Backend("a/1"), p.Backend("b/1"); !a.Settling || !b.Settling {
				t.Fatalf("a settles: %v, b: %v; want both", a.Settling, b.Settling)
			}
			settleOnly(p, "b/1", 5*time.Second)
			if n := p.Backend("b/1").Held; n != 0 {
				t.Errorf("%d held on b, which is healthy and empty", n)
			}
		})
	}
}

func TestABackendThatGetsWellWaitsBehindTheProofsUnderWay(t *testing.T) {
	p := lostOnA(t)
	p.SetSender("train", fence) // a has waited for its proof longer than b will have
	p.Observe("a/1", router.Unhealthy)
	p.SetSender("train", func(s *router.Sender) { s.Access = router.AccessOpen })
	fill(p, "b/1", 1)
	p.SetSender("train", fence)
	p.Pass(p.Fleet.Config.TTL)
	p.Pass(time.Second)
	p.Observe("a/1", router.Healthy)
	if a, b := p.Backend("a/1"), p.Backend("b/1"); a.Settling || !b.Settling {
		t.Fatalf("a settles: %v, b: %v; want b only", a.Settling, b.Settling)
	}
	settleOnly(p, "b/1", 5*time.Second)
	settleOnly(p, "a/1", 5*time.Second)
	if v := p.Sender("train"); !v.Fenced {
		t.Errorf("both are proven empty and the fence still waits: %+v", v)
	}
}

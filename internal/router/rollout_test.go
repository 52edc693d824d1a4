package router_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/berthmaster/berthmaster/internal/router"
	"github.com/berthmaster/berthmaster/internal/router/routertest"
)

// R9: what the router does for a rollout of weights.

// twoSenders is a pool on v1 with the sender train, and eval whose sessions are pinned.
func twoSenders(t *testing.T, names ...router.BackendName) *routertest.Pool {
	p := routertest.New(t, routertest.Backends(names...), routertest.Senders("train", "eval"), func(f *router.Fleet) {
		f.Senders[1].Pinning, f.Published = router.PinVersions, "v1"
	})
	return p
}

func by(p *routertest.Pool, sender router.SenderName, id router.RequestID, session router.SessionID) router.Request {
	r := p.Request(id, session)
	r.Sender = sender
	return r
}

func see(p *routertest.Pool, inc router.Incarnation, v router.Version) {
	p.See(router.Observation{Incarnation: inc, Health: router.Healthy, Version: v, EngineTotal: -1})
}

func TestNewSessionsPreferUpdatedBackendsWhileThereIsRoom(t *testing.T) {
	p := twoSenders(t, "a", "b", "c")
	stays := p.Acquire("old", "old")
	p.Release(stays, router.Succeeded)
	p.Change(func(f *router.Fleet) { f.Target = "v2" })
	updated := router.BackendName("b")
	if stays.Claim.Backend == updated {
		updated = "c"
	}
	see(p, routertest.Incarnation(updated, 1), "v2")
	for i := range 8 {
		id := fmt.Sprint("new", i)
		if g := p.Acquire(router.RequestID(id), router.SessionID(id)); g.Claim.Backend != updated || g.Claim.Version != "v2" {
			t.Fatalf("new session %d is sent to %s on %q, and %s has room", i, g.Claim.Backend, g.Claim.Version, updated)
		}
	}
	if g := p.Acquire("more", "more"); g.Claim.Backend == updated {
		t.Errorf("a ninth session is sent to %s, whose capacity of 8 is taken", updated)
	}
	if g := p.Acquire("old2", "old"); g.Claim.Backend != stays.Claim.Backend {
		t.Errorf("a session of the old version moved from %s to %s before the backend's turn", stays.Claim.Backend, g.Claim.Backend)
	}
}

func TestARolloutThatHoldsThePoolGrantsNothing(t *testing.T) {
	p := twoSenders(t, "a")
	p.Change(func(f *router.Fleet) { f.Gate = router.GateStopped })
	for _, sender := range []router.SenderName{"train", "eval"} {
		p.Refuse(by(p, sender, "r", "s"), router.ErrLeasingHeld)
	}
	if s := p.Snapshot(); s.Gate != router.GateStopped || s.Leasing != router.LeasingOpen {
		t.Errorf("the snapshot says gate %q and leasing %q", s.Gate, s.Leasing)
	}
	if p.Table.Prospect("train", p.Now()) != router.ProspectPassing {
		t.Error("the hold is not said to pass")
	}
	p.Change(func(f *router.Fleet) { f.Gate = router.GateOpen })
	p.Acquire("r", "s")
}

func TestSessionsGrowNotOldWhileARolloutHoldsThePool(t *testing.T) {
	p := twoSenders(t, "a", "b")
	home := p.Acquire("r1", "s")
	p.Release(home, router.Succeeded)
	p.Change(func(f *router.Fleet) { f.Gate = router.GateStopped })
	p.Pass(3 * time.Hour)
	if s := p.Snapshot(); s.Sessions != 1 {
		t.Errorf("%d sessions are kept, of one", s.Sessions)
	}
	if _, err := p.Table.Session("s"); err != nil {
		t.Errorf("the session was forgotten while nobody could use it: %v", err)
	}
}

func TestWhatARolloutWaitsForOnlyEndsPinnedSessions(t *testing.T) {
	p := twoSenders(t, "a")
	p.Release(p.Grant(by(p, "eval", "r1", "known")), router.Succeeded)
	p.Change(func(f *router.Fleet) { f.Gate = router.GateEndingPins })
	p.Grant(by(p, "eval", "r2", "known"))
	p.Grant(by(p, "train", "r3", "fresh"))
	p.Refuse(by(p, "eval", "r4", "fresh2"), router.ErrLeasingHeld)
}

func TestADrainOfAllButPinnedSessionsMovesTheOthers(t *testing.T) {
	p := twoSenders(t, "a", "b")
	p.Change(func(f *router.Fleet) { f.Members[1].Excluded = "PodNotReady" })
	p.Release(p.Grant(by(p, "eval", "e1", "pinned")), router.Succeeded)
	p.Release(p.Grant(by(p, "train", "t1", "free")), router.Succeeded)
	p.Change(func(f *router.Fleet) { f.Members[0].Drain, f.Members[1].Excluded = router.DrainPinned, "" })
	if b := p.Backend("a/1"); b.Pinned != 1 || b.Shut {
		t.Errorf("a shows %d pinned sessions, shut %v", b.Pinned, b.Shut)
	}
	if g := p.Grant(by(p, "eval", "e2", "pinned")); g.Claim.Backend != "a" {
		t.Errorf("the pinned session was moved to %s", g.Claim.Backend)
	}
	if g := p.Grant(by(p, "train", "t2", "free")); g.Claim.Backend != "b" {
		t.Errorf("the other session stays on %s", g.Claim.Backend)
	}
	if g := p.Grant(by(p, "eval", "e3", "new")); g.Claim.Backend != "b" {
		t.Errorf("a new session is sent to %s, which drains", g.Claim.Backend)
	}
	if err := p.Table.EndSession("pinned", "eval", p.Now()); err != nil {
		t.Fatal(err)
	}
	if b := p.Backend("a/1"); b.Pinned != 0 {
		t.Errorf("%d pinned sessions live on a after the only one ended", b.Pinned)
	}
}

func TestAPinnedSessionThatOutlivesItsVersionSaysMixed(t *testing.T) {
	p := twoSenders(t, "a")
	for _, sender := range []router.SenderName{"eval", "train"} {
		p.Release(p.Grant(by(p, sender, router.RequestID(sender+"1"), router.SessionID(sender))), router.Succeeded)
	}
	p.Change(func(f *router.Fleet) { f.Published = "v2" })
	see(p, "a/1", "v2")
	for sender, want := range map[router.SenderName]bool{"eval": true, "train": false} {
		g := p.Grant(by(p, sender, router.RequestID(sender+"2"), router.SessionID(sender)))
		if e := p.Release(g, router.Succeeded); e.Mixed != want {
			t.Errorf("the second turn of a session of %s says mixed %v", sender, e.Mixed)
		}
	}
}

func TestASnapshotSaysWhoIsShutWhateverTheEngineDoes(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*router.Member)
		want   bool
	}{
		"serving":        {func(*router.Member) {}, false},
		"paused by us":   {func(m *router.Member) { m.Engine = router.EnginePaused }, true},
		"updated by us":  {func(m *router.Member) { m.Engine = router.EngineUpdating }, true},
		"draining":       {func(m *router.Member) { m.Drain = router.DrainMove }, true},
		"draining, kept": {func(m *router.Member) { m.Drain = router.DrainKeep }, false},
		"excluded":       {func(m *router.Member) { m.Excluded = "RolloutFailed" }, true},
	} {
		t.Run(name, func(t *testing.T) {
			p := twoSenders(t, "a")
			p.Change(func(f *router.Fleet) { c.change(&f.Members[0]) })
			if b := p.Backend("a/1"); b.Shut != c.want {
				t.Errorf("shut %v", b.Shut)
			}
		})
	}
	p := twoSenders(t, "a")
	p.Observe("a/1", router.Unhealthy)
	if p.Backend("a/1").Shut {
		t.Error("an unhealthy backend is shut, and may be healthy in a moment")
	}
}

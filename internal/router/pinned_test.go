package router_test

import (
	"fmt"
	"testing"

	"github.com/berthmaster/berthmaster/internal/router"
	"github.com/berthmaster/berthmaster/internal/router/routertest"
)

// pinning makes the sender of requests a pinned one.
func pinning(f *router.Fleet) {
	for i := range f.Senders {
		f.Senders[i].Versions = router.VersionPinned
	}
}

func TestAPinnedDrainKeepsSessionsOfPinnedSendersAndMovesTheOthers(t *testing.T) {
	for name, c := range map[string]struct {
		pinned bool
		stays  bool
	}{"pinned": {true, true}, "not pinned": {false, false}} {
		t.Run(name, func(t *testing.T) {
			p := routertest.New(t, routertest.Backends("a", "b"))
			if c.pinned {
				p.Change(pinning)
			}
			first := p.Acquire("r1", "s")
			p.Release(first, router.Succeeded)
			home := first.Claim.Backend
			p.SetMember(home, func(m *router.Member) { m.Drain = router.DrainPinned })
			next := p.Acquire("r2", "s")
			if stays := next.Claim.Backend == first.Claim.Backend; stays != c.stays {
				t.Errorf("the session stays: %v, want %v", stays, c.stays)
			}
			p.Release(next, router.Succeeded)
			if other := p.Acquire("r3", "new"); other.Claim.Backend == first.Claim.Backend {
				t.Error("a new session came to a backend that drains")
			}
			b := p.Backend(first.Claim.Incarnation)
			if want := int64(map[bool]int{true: 1, false: 0}[c.pinned]); b.Pinned != want || b.Drained == c.pinned {
				t.Errorf("%d pinned sessions there, drained %v; want %d, %v", b.Pinned, b.Drained, want, !c.pinned)
			}
			if err := p.Table.EndSession("s", next.Claim.Sender, p.Now()); err != nil {
				t.Fatal(err)
			}
			if b := p.Backend(first.Claim.Incarnation); b.Pinned != 0 || !b.Drained {
				t.Errorf("after the session: %d pinned, drained %v", b.Pinned, b.Drained)
			}
		})
	}
}

func TestPinnedSessionsAreCountedAnewWhenTheirSenderBecomesPinned(t *testing.T) {
	p := routertest.New(t, routertest.Backends("a"))
	p.Release(p.Acquire("r1", "s"), router.Succeeded)
	p.Change(pinning)
	if b := p.Backend("a/1"); b.Pinned != 1 {
		t.Errorf("%d pinned sessions, want 1", b.Pinned)
	}
	p.Change(func(f *router.Fleet) { f.Senders[0].Versions = router.VersionLatest })
	if b := p.Backend("a/1"); b.Pinned != 0 {
		t.Errorf("%d pinned sessions, want none", b.Pinned)
	}
}

func TestWhilePinsEndOnlyKnownSessionsOfPinnedSendersGoOn(t *testing.T) {
	p := routertest.New(t, routertest.Backends("a"))
	p.Change(pinning)
	p.Release(p.Acquire("r1", "old"), router.Succeeded)
	p.Change(func(f *router.Fleet) { f.Pins = router.PinsEnding })
	p.Release(p.Acquire("r2", "old"), router.Succeeded)
	p.Refuse(p.Request("r3", "new"), router.ErrLeasingHeld)
	p.Change(func(f *router.Fleet) { f.Senders[0].Versions = router.VersionLatest })
	p.Acquire("r4", "new")
}

func TestNewSessionsPreferUpdatedBackendsThatHaveRoom(t *testing.T) {
	p := routertest.New(t, routertest.Backends("a", "b"))
	p.Change(func(f *router.Fleet) {
		f.Published, f.Target = "v1", "v2"
		for i := range f.Members {
			f.Members[i].Capacity = 4
		}
	})
	p.See(router.Observation{Incarnation: "a/1", Health: router.Healthy, Version: "v1"})
	p.See(router.Observation{Incarnation: "b/1", Health: router.Healthy, Version: "v2"})
	got := map[router.BackendName]int{}
	for i := range 6 {
		got[p.Acquire(router.RequestID(fmt.Sprintf("r%d", i)), router.SessionID(fmt.Sprintf("s%d", i))).Claim.Backend]++
	}
	if got["b"] != 4 || got["a"] != 2 {
		t.Errorf("%v, want b filled first and the rest on a", got)
	}
}

func TestAPinnedSessionThatOutlivesItsVersionSaysMixed(t *testing.T) {
	for name, c := range map[string]struct {
		policy router.VersionPolicy
		want   bool
	}{"pinned": {router.VersionPinned, true}, "not pinned": {router.VersionLatest, false}} {
		t.Run(name, func(t *testing.T) {
			p := routertest.New(t, routertest.Backends("a"))
			p.Change(func(f *router.Fleet) { f.Published, f.Senders[0].Versions = "v1", c.policy })
			see := func(v router.Version) {
				p.See(router.Observation{Incarnation: "a/1", Health: router.Healthy, Version: v})
			}
			see("v1")
			for _, id := range []router.RequestID{"r1", "r2"} {
				if e := p.Release(p.Acquire(id, "s"), router.Succeeded); e.Mixed {
					t.Errorf("%s says mixed on the version that its session began on", id)
				}
			}
			p.Change(func(f *router.Fleet) { f.Published = "v2" })
			see("v2")
			for _, id := range []router.RequestID{"r3", "r4"} {
				if e := p.Release(p.Acquire(id, "s"), router.Succeeded); e.Mixed != c.want {
					t.Errorf("%s says mixed: %v, want %v", id, e.Mixed, c.want)
				}
			}
			if e := p.Release(p.Acquire("r5", "new"), router.Succeeded); e.Mixed {
				t.Error("a session that began on the new version says mixed")
			}
		})
	}
}

func TestAnEngineThatIsClearedWakesWhoeverUpdatesIt(t *testing.T) {
	p := routertest.New(t, routertest.Backends("a"))
	g := p.Acquire("r", "s")
	p.SetMember("a", func(m *router.Member) { m.Engine = router.EnginePaused })
	select {
	case <-p.Table.Changes():
	default:
	}
	p.Release(g, router.Aborted)
	select {
	case <-p.Table.Changes():
	default:
		t.Error("nobody is told that nothing is counted on the paused engine any more")
	}
}

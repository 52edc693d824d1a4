package router_test

import (
	"testing"
	"time"

	"github.com/berthmaster/berthmaster/internal/router"
	"github.com/berthmaster/berthmaster/internal/router/routertest"
)

// R7: fencing. R8: draining. R5: the ledger through flaps, removal and re-adding.

func fence(s *router.Sender) { s.Access = router.AccessFenced }

func TestAFencedSenderGetsNoLeaseAndOthersAreNotDisturbed(t *testing.T) {
	p := routertest.New(t, routertest.Backends("a", "b"), routertest.Senders("train", "eval"))
	g := p.Acquire("r1", "s1")
	p.SetSender("train", fence)
	p.Refuse(p.Request("r2", "s2"), router.ErrSenderFenced)
	r := p.Request("r3", "s3")
	r.Sender = "eval"
	p.Grant(r)
	p.Renew(g, router.Started)
	p.Release(g, router.Succeeded)
}

func TestASenderIsFencedOnlyWhenNothingOfItIsCountedOrUnknown(t *testing.T) {
	p := routertest.New(t, routertest.Backends("a", "b"), routertest.Senders("train", "eval"))
	p.TakeOver(30 * time.Second)
	r := p.Request("r", "s")
	r.Sender = "eval"
	p.Settle(2 * time.Second)
	g := p.Grant(r)
	p.SetSender("eval", fence)
	if s := p.Sender("eval"); s.Fenced || s.Counted != 1 {
		t.Errorf("called fenced with one execution counted: %+v", s)
	}
	p.Release(g, router.Succeeded)
	if p.Sender("eval").Fenced {
		t.Error("called fenced while executions of an earlier term may run")
	}
	p.Settle(time.Minute)
	if !p.Sender("eval").Fenced {
		t.Errorf("nothing of it can run and it is not called fenced: %+v", p.Snapshot())
	}
	if p.Sender("train").Fenced {
		t.Error("an open sender is called fenced")
	}
}

func TestTheGenerationIsCheckedForGood(t *testing.T) {
	for name, c := range map[string]struct {
		asks int64
		want error
	}{
		"below the minimum":   {2, router.ErrStaleGeneration},
		"the minimum":         {3, nil},
		"beyond the minimum":  {4, nil},
		"far below":           {0, router.ErrStaleGeneration},
		"below while fenced":  {-1, router.ErrStaleGeneration},
		"unknown sender name": {-2, router.ErrSenderUnknown},
	} {
		t.Run(name, func(t *testing.T) {
			p := routertest.New(t, routertest.Backends("a"))
			p.SetSender("train", func(s *router.Sender) { s.MinGeneration = 3 })
			r := p.Request("r", "s")
			r.SenderGeneration = max(0, c.asks)
			switch c.asks {
			case -1:
				p.SetSender("train", fence)
			case -2:
				r.Sender = "nobody"
			}
			if c.want == nil {
				p.Grant(r)
				return
			}
			if got := p.Refuse(r, c.want); got.RetryAfter != 0 {
				t.Errorf("refused for good and told to come back after %v", got.RetryAfter)
			}
		})
	}
}

func TestRaisingTheEpochEndsEverythingOfBefore(t *testing.T) {
	p := routertest.New(t, routertest.Backends("a", "b"))
	running, released := p.Acquire("r1", "s1"), p.Acquire("r2", "s2")
	p.Release(released, router.Succeeded)
	old := p.Request("r3", "s3")
	p.Change(func(f *router.Fleet) { f.Epoch = 2 })

	if r := p.Refuse(old, router.ErrStaleEpoch); r.Epoch != 2 {
		t.Errorf("the refusal names epoch %d", r.Epoch)
	}
	p.RefuseRenewal(running, router.ErrStaleEpoch)
	p.Refuse(p.Request("r1", "s1"), router.ErrRequestConflict)
	p.Refuse(p.Request("r2", "s2"), router.ErrRequestConflict)
	s := p.Snapshot()
	if s.Sessions != 0 || s.Totals.Orphaned != 1 {
		t.Errorf("%d sessions, %d orphans", s.Sessions, s.Totals.Orphaned)
	}
	if b := p.Backend(running.Claim.Incarnation); b.Outstanding != 1 || b.Held != 1 {
		t.Errorf("what may still run is not counted: %+v", b)
	}
	list := p.Table.Chores(p.Now())
	if len(list) != 1 || len(list[0].Abort) != 1 || list[0].Abort[0] != running.Claim.RID {
		t.Errorf("chores %+v, want the abort of the orphan", list)
	}
	p.Release(running, router.Succeeded)
	if b := p.Backend(running.Claim.Incarnation); b.Outstanding != 0 {
		t.Errorf("an orphan released by its client stays counted: %+v", b)
	}
}

func TestAnOlderFleetIsRefusedWhole(t *testing.T) {
	p := routertest.New(t, routertest.Backends("a"))
	p.Change(func(f *router.Fleet) { f.Epoch = 3 })
	old := p.Fleet
	old.Epoch, old.Leasing = 2, router.LeasingHeld
	if err := p.Table.Apply(old, p.Now()); err == nil {
		t.Error("the epoch fell")
	}
	p.Acquire("r", "s")
}

func TestADrainingBackendGetsNoNewSession(t *testing.T) {
	for drain, atHome := range map[router.Drain]router.Incarnation{
		router.DrainMove: "b/1", router.DrainKeep: "a/1", router.DrainAbort: "b/1",
	} {
		t.Run(string(drain), func(t *testing.T) {
			p := routertest.New(t, routertest.Backends("a", "b"))
			r := p.Request("r1", "s1")
			r.LastName, r.LastIncarnation = "a", "a/1"
			p.Release(p.Grant(r), router.Succeeded)
			p.SetMember("a", func(m *router.Member) { m.Drain = drain })
			fill(p, "b/1", 4)
			if g := p.Acquire("r2", "new"); g.Claim.Incarnation != "b/1" {
				t.Errorf("a new session went to %s", g.Claim.Incarnation)
			}
			r = p.Request("r3", "named")
			r.LastName, r.LastIncarnation = "a", "a/1"
			if g := p.Grant(r); g.Claim.Incarnation != "b/1" {
				t.Errorf("a session that names it went to %s", g.Claim.Incarnation)
			}
			if g := p.Acquire("r4", "s1"); g.Claim.Incarnation != atHome {
				t.Errorf("a session at home there went to %s, want %s", g.Claim.Incarnation, atHome)
			}
		})
	}
}

func TestDrainedMeansNothingCountedAndNothingUnknown(t *testing.T) {
	p := routertest.New(t, routertest.Backends("a", "b"))
	r := p.Request("r", "s")
	r.LastName, r.LastIncarnation = "a", "a/1"
	g := p.Grant(r)
	if p.Backend("b/1").Drained {
		t.Error("an idle backend that does not drain is called drained")
	}
	p.SetMember("a", func(m *router.Member) { m.Drain = router.DrainMove })
	if p.Backend("a/1").Drained {
		t.Error("called drained with an execution counted")
	}
	p.Release(g, router.Succeeded)
	if !p.Backend("a/1").Drained {
		t.Error("not called drained with nothing on it")
	}
	p.TakeOver(30 * time.Second)
	if p.Backend("a/1").Drained {
		t.Error("called drained while an earlier term's executions may run")
	}
	p.Settle(time.Minute)
	if !p.Backend("a/1").Drained {
		t.Error("not called drained after it was proven quiet")
	}
}

func TestKeepIsDrainedOnlyWhenNobodyIsAtHome(t *testing.T) {
	p := routertest.New(t, routertest.Backends("a"))
	p.Release(p.Acquire("r", "s"), router.Succeeded)
	p.SetMember("a", func(m *router.Member) { m.Drain = router.DrainKeep })
	if p.Backend("a/1").Drained {
		t.Error("called drained with a session that comes back")
	}
	if err := p.Table.EndSession("s", "train", p.Now()); err != nil {
		t.Fatal(err)
	}
	if !p.Backend("a/1").Drained {
		t.Error("not called drained after its last session ended")
	}
}

func TestADrainPastItsDeadlineAbortsWhatIsLeft(t *testing.T) {
	p := routertest.New(t, routertest.Backends("a"))
	g := p.Acquire("r", "s")
	p.SetMember("a", func(m *router.Member) { m.Drain = router.DrainAbort })
	aborts := 0
	for range 21 { // ten seconds and a half: at the start, after 5 s and after 10 s
		for _, c := range p.Chores(1) {
			aborts += len(c.Abort)
		}
		p.Pass(500 * time.Millisecond)
	}
	if aborts != 3 {
		t.Errorf("%d aborts in ten seconds, want 3", aborts)
	}
	if n := p.Backend("a/1").Outstanding; n != 1 {
		t.Errorf("%d counted; an abort that was asked for proves nothing", n)
	}
	p.Release(g, router.Aborted)
	if !p.Backend("a/1").Drained {
		t.Error("its client saw the abort, and the backend is not drained")
	}
}

func TestAHeldExecutionIsAbortedAgainAlsoUnderAnAbortingDrain(t *testing.T) {
	p := routertest.New(t, routertest.Backends("a", "b"))
	g := p.Acquire("r", "s")
	p.Release(g, router.Cancelled)
	p.SetMember(g.Claim.Backend, func(m *router.Member) { m.Drain = router.DrainAbort })
	aborts := 0
	for range 31 {
		for _, c := range p.Chores(1) {
			aborts += len(c.Abort)
		}
		p.Pass(500 * time.Millisecond)
	}
	if aborts < 3 {
		t.Errorf("an engine that drops aborts was asked %d times in 15 s", aborts)
	}
}

func TestAMissingMemberFreesNoCount(t *testing.T) {
	p := routertest.New(t, routertest.Backends("a", "b"))
	r := p.Request("r", "s")
	r.LastName, r.LastIncarnation = "a", "a/1"
	g := p.Grant(r)
	p.Change(func(f *router.Fleet) { f.Members = f.Members[1:] })
	if b := p.Backend("a/1"); b.Outstanding != 1 || !b.Retired {
		t.Errorf("after it left the fleet: %+v", b)
	}
	p.Release(g, router.Succeeded)
	if p.Knows("a/1") {
		t.Error("a retired incarnation is kept for nothing")
	}
}

func TestANewIncarnationStartsAtZeroAndOldLeasesDoNotTouchIt(t *testing.T) {
	p := routertest.New(t, routertest.Backends("a"))
	old := p.Acquire("r1", "s1")
	p.Change(func(f *router.Fleet) { f.Members[0] = routertest.Member("a", 2) })
	p.HealAll()
	if n := p.Backend("a/2").Outstanding; n != 0 {
		t.Errorf("the new incarnation starts with %d", n)
	}
	p.Acquire("r2", "s2")
	p.Release(old, router.Succeeded)
	if n := p.Backend("a/2").Outstanding; n != 1 {
		t.Errorf("releasing the old incarnation's lease left %d counted on the new one", n)
	}
	p.Change(func(f *router.Fleet) { f.Members[0] = routertest.Member("a", 1) })
	if n := p.Backend("a/1").Outstanding; n != 0 {
		t.Errorf("the first incarnation came back with %d", n)
	}
}

func TestFlappingChangesNoCount(t *testing.T) {
	p := routertest.New(t, routertest.Backends("a", "b"))
	fill(p, "a/1", 8)
	for range 5 {
		for _, h := range []router.Health{router.Unhealthy, router.Healthy, router.Refused, router.SuspectedPaused, router.Healthy} {
			p.Observe("a/1", h)
		}
		members := p.Fleet.Members
		p.Change(func(f *router.Fleet) { f.Members = f.Members[1:] })
		p.Change(func(f *router.Fleet) { f.Members = members })
	}
	if n := p.Backend("a/1").Outstanding; n != 8 {
		t.Errorf("8 were counted, now %d", n)
	}
	for range 8 {
		if g := p.Acquire(router.RequestID("x"+string(rune('a'+p.Snapshot().Requests))), router.SessionID("x"+string(rune('a'+p.Snapshot().Requests)))); g.Claim.Incarnation != "b/1" {
			t.Errorf("a session went to %s, which is full", g.Claim.Incarnation)
		}
	}
}

package router_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/berthmaster/berthmaster/internal/router"
	"github.com/berthmaster/berthmaster/internal/router/routertest"
)

// R3: idempotent metadata. R6: bounded memory.

func TestTheSameRequestAgainReturnsTheSameLease(t *testing.T) {
	p := routertest.New(t, routertest.Backends("a", "b"))
	first := p.Acquire("r", "s")
	p.Pass(time.Second)
	again := p.Acquire("r", "s")
	first.Again = true
	if diff := cmp.Diff(first, again); diff != "" {
		t.Errorf("the second answer differs (-first +again):\n%s", diff)
	}
	if n := p.Backend(first.Claim.Incarnation).Outstanding; n != 1 {
		t.Errorf("%d executions are counted", n)
	}
}

func TestEveryPartOfTheIdentityMakesAConflict(t *testing.T) {
	for name, c := range map[string]struct {
		other func(*router.Request)
		want  error
	}{
		"sessionID":        {func(r *router.Request) { r.Session = "other" }, router.ErrRequestConflict},
		"sender":           {func(r *router.Request) { r.Sender = "eval" }, router.ErrRequestConflict},
		"senderGeneration": {func(r *router.Request) { r.SenderGeneration++ }, router.ErrRequestConflict},
		"groupID":          {func(r *router.Request) { r.Group = "g" }, router.ErrRequestConflict},
		"executions":       {func(r *router.Request) { r.Executions++ }, router.ErrRequestConflict},
		"epoch":            {func(r *router.Request) { r.Epoch++ }, router.ErrStaleEpoch},
	} {
		t.Run(name, func(t *testing.T) {
			p := routertest.New(t, routertest.Backends("a"), routertest.Senders("train", "eval"))
			g := p.Acquire("r", "s")
			r := p.Request("r", "s")
			c.other(&r)
			before := p.Snapshot()
			p.Refuse(r, c.want)
			after := p.Snapshot()
			before.Totals, after.Totals = router.Totals{}, router.Totals{}
			if diff := cmp.Diff(before, after); diff != "" {
				t.Errorf("the conflict changed something:\n%s", diff)
			}
			p.Release(g, router.Succeeded)
			p.Refuse(r, c.want)
		})
	}
}

func TestLastBackendAndTokenAreNoPartOfTheIdentity(t *testing.T) {
	p := routertest.New(t, routertest.Backends("a"))
	g := p.Acquire("r", "s")
	r := p.Request("r", "s")
	r.LastName, r.LastIncarnation, r.Prior = "x", "x/1", &g.Claim
	if again := p.Grant(r); again.Claim != g.Claim {
		t.Errorf("got %+v, want %+v", again.Claim, g.Claim)
	}
}

func TestAnEndedLeaseAnswersWithItsOutcomeForTheRetentionTimeFromItsEnd(t *testing.T) {
	p := routertest.New(t, routertest.Backends("a"))
	g := p.Acquire("r", "s")
	for range 10 { // longer than the retention time since its grant
		p.Pass(110 * time.Second)
		p.Renew(g, router.Started)
	}
	p.Release(g, router.Succeeded)
	p.Pass(p.Fleet.Config.Retention - time.Second)
	if r := p.Refuse(p.Request("r", "s"), router.ErrLeaseEnded); r.Outcome != router.Succeeded {
		t.Errorf("the refusal says %q", r.Outcome)
	}
	if r := p.RefuseRenewal(g, router.ErrLeaseEnded); r.Outcome != router.Succeeded {
		t.Errorf("a renewal is told %q", r.Outcome)
	}
	p.Pass(2 * time.Second)
	if n := p.Snapshot().Requests; n != 0 {
		t.Errorf("%d records are kept after the retention time", n)
	}
	p.RefuseRenewal(g, router.ErrLeaseUnknown)
}

func TestReleaseIsIdempotentAndAnotherOutcomeIsAConflict(t *testing.T) {
	all := []router.Outcome{router.Succeeded, router.Aborted, router.NotSent, router.Rejected, router.Cancelled, router.Ambiguous}
	for _, first := range all {
		for _, second := range all {
			t.Run(string(first)+" then "+string(second), func(t *testing.T) {
				p := routertest.New(t, routertest.Backends("a"))
				g := p.Acquire("r", "s")
				one := p.Release(g, first)
				if first == second {
					if two := p.Release(g, second); two != one {
						t.Errorf("the second answer is %+v, the first was %+v", two, one)
					}
					return
				}
				p.RefuseRelease(g, second, router.ErrRequestConflict)
			})
		}
	}
}

func TestAnUnknownOutcomeIsInvalid(t *testing.T) {
	p := routertest.New(t, routertest.Backends("a"))
	g := p.Acquire("r", "s")
	for _, o := range []router.Outcome{"", "succeeded", "Lost"} {
		if r := p.RefuseRelease(g, o, router.ErrInvalid); r.Field != "outcome" {
			t.Errorf("outcome %q: the field at fault is %q", o, r.Field)
		}
	}
}

func TestAClientThatGivesUpSpendsItsID(t *testing.T) {
	for name, prepare := range map[string]func(*routertest.Pool){
		"it never got a lease":       func(*routertest.Pool) {},
		"it got one it did not hear": func(p *routertest.Pool) { p.Acquire("r", "s") },
	} {
		t.Run(name, func(t *testing.T) {
			p := routertest.New(t, routertest.Backends("a"))
			prepare(p)
			for range 2 {
				e, err := p.Table.Forgo(p.Request("r", "s"), p.Now())
				if err != nil || e.Outcome != router.NotSent || !e.Settled {
					t.Fatalf("forgoing: %+v, %v", e, err)
				}
			}
			if r := p.Refuse(p.Request("r", "s"), router.ErrLeaseEnded); r.Outcome != router.NotSent {
				t.Errorf("the refusal says %q", r.Outcome)
			}
			if n := p.Backend("a/1").Outstanding; n != 0 {
				t.Errorf("%d executions stay counted", n)
			}
			other := p.Request("r", "another")
			if _, err := p.Table.Forgo(other, p.Now()); err == nil {
				t.Error("another session forwent the same id")
			}
		})
	}
}

func TestForgoingAfterAnotherOutcomeIsAConflict(t *testing.T) {
	p := routertest.New(t, routertest.Backends("a"))
	p.Release(p.Acquire("r", "s"), router.Succeeded)
	if _, err := p.Table.Forgo(p.Request("r", "s"), p.Now()); err == nil {
		t.Error("a lease that succeeded was forgone")
	}
}

func TestAtTheRequestCapNewIDsAreContendedAndNoRecordIsEvicted(t *testing.T) {
	p := routertest.New(t, routertest.Backends("a"), routertest.With(func(c *router.Config) { c.MaxRequests = 3 }))
	for i := range 3 {
		p.Release(p.Acquire(router.RequestID(fmt.Sprint("r", i)), "s"), router.Succeeded)
	}
	p.Refuse(p.Request("r3", "s"), router.ErrContended)
	if _, err := p.Table.Forgo(p.Request("r4", "s"), p.Now()); err == nil {
		t.Error("an id was spent beyond the cap")
	}
	for i := range 3 {
		p.Refuse(p.Request(router.RequestID(fmt.Sprint("r", i)), "s"), router.ErrLeaseEnded)
	}
	p.Pass(p.Fleet.Config.Retention)
	p.Acquire("r3", "s")
}

func TestAtTheSessionCapNewSessionsAreServedWithoutAffinity(t *testing.T) {
	p := routertest.New(t, routertest.Backends("a", "b"), routertest.With(func(c *router.Config) { c.MaxSessions = 1 }))
	p.Acquire("r0", "s0")
	for i := range 4 {
		p.Release(p.Acquire(router.RequestID(fmt.Sprint("x", i)), "s1"), router.Succeeded)
	}
	s := p.Snapshot()
	if s.Sessions != 1 || s.Totals.WithoutAffinity != 4 {
		t.Errorf("%d sessions, %d served without affinity", s.Sessions, s.Totals.WithoutAffinity)
	}
	if p.Backend("a/1").Outstanding+p.Backend("b/1").Outstanding != 1 {
		t.Error("what was served without affinity stays counted")
	}
}

func TestIdleSessionsAreForgottenAndBusyOnesAreNot(t *testing.T) {
	p := routertest.New(t, routertest.Backends("a"), routertest.With(func(c *router.Config) {
		c.IdleTimeout, c.TTL = 10*time.Minute, time.Hour
	}))
	p.Release(p.Acquire("r1", "idle"), router.Succeeded)
	p.Acquire("r2", "busy")
	p.Pass(10*time.Minute - time.Second)
	if n := p.Snapshot().Sessions; n != 2 {
		t.Fatalf("%d sessions before the idle time is over", n)
	}
	p.Pass(time.Second)
	if _, err := p.Table.Session("busy"); err != nil {
		t.Error("a session at work was forgotten")
	}
	if _, err := p.Table.Session("idle"); err == nil {
		t.Error("an idle session was kept")
	}
	if n := p.Backend("a/1").Sessions; n != 1 {
		t.Errorf("%d residents are counted", n)
	}
}

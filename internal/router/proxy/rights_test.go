package proxy_test

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/berthmaster/berthmaster/internal/enginesim"
	"github.com/berthmaster/berthmaster/internal/enginesim/execlog"
	"github.com/berthmaster/berthmaster/internal/router"
	"github.com/berthmaster/berthmaster/internal/router/proxy"
)

// revocable lets everybody in until it is told not to.
type revocable struct {
	revoked, expired, away atomic.Bool
	asked                  atomic.Int64 // how often it was asked about a call that had begun
}

func (v *revocable) Authorize(r *http.Request, _ router.PoolKey, _ router.SenderName) error {
	if v.expired.Load() {
		return &router.Refusal{Reason: "Unauthenticated"}
	}
	return v.holds(r.Context())
}

func (v *revocable) Admit(r *http.Request, pool router.PoolKey, sender router.SenderName) (func(context.Context) error, error) {
	return func(ctx context.Context) error { v.asked.Add(1); return v.holds(ctx) }, v.Authorize(r, pool, sender)
}

func (v *revocable) holds(context.Context) error {
	switch {
	case v.away.Load():
		return &router.Refusal{Reason: "AuthenticationUnavailable", RetryAfter: time.Second}
	case v.revoked.Load():
		return &router.Refusal{Reason: router.ReasonSessionForbidden, Detail: "not any more"}
	}
	return nil
}

func TestWhoeverLosesItsRightsWhileItIsHeldGetsNoLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var rights revocable
		g := newCalm(t, proxy.Config{Authorizer: &rights}, atOnce)
		g.apply(func(f *router.Fleet) { f.Leasing = router.LeasingHeld })
		a := g.post("s")
		synctest.Wait()
		if a.over() {
			t.Fatalf("answered %d while held", a.Code)
		}
		rights.revoked.Store(true)
		g.apply(func(f *router.Fleet) { f.Leasing = router.LeasingOpen })
		if !a.over() || a.Code != http.StatusForbidden {
			t.Errorf("answered: %t, with %d; want 403", a.over(), a.Code)
		}
		if n := len(g.order()); n != 0 {
			t.Errorf("%d generations for a caller without rights", n)
		}
		if n := g.snapshot().Backends[0].Outstanding; n != 0 {
			t.Errorf("%d executions stay counted", n)
		}
	})
}

func TestWhoeverLosesItsRightsWhileItGeneratesIsCutAndItsExecutionAborted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var rights revocable
		g := newCalm(t, proxy.Config{Authorizer: &rights}, after(time.Hour))
		a := g.post("s")
		pass(10 * time.Minute)
		if a.over() || rights.asked.Load() < 10 {
			t.Fatalf("after ten minutes: over %t, asked about %d times", a.over(), rights.asked.Load())
		}
		rights.revoked.Store(true)
		pass(g.fleet.Config.TTL / 3)
		if !a.over() || a.Code != http.StatusForbidden || !strings.Contains(a.Body.String(), "not any more") || a.Header().Get("X-Should-Retry") != "false" {
			t.Errorf("over: %t, with %d %s %v", a.over(), a.Code, a.Body, a.Header())
		}
		s := g.snapshot()
		if s.Totals.Released[router.Cancelled] != 1 || s.Backends[0].Outstanding != 1 || s.Failure != nil {
			t.Errorf("released %v, %d counted, failure %v", s.Totals.Released, s.Backends[0].Outstanding, s.Failure)
		}
		if chores := g.table.Chores(time.Now()); len(chores) != 1 || len(chores[0].Abort) != 1 {
			t.Errorf("nothing is to be aborted: %+v", chores)
		}
	})
}

func TestAGenerationOutlivesTheTokenThatBeganIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var rights revocable
		g := newCalm(t, proxy.Config{Authorizer: &rights}, after(time.Hour))
		a := g.post("s")
		rights.expired.Store(true)
		pass(59 * time.Minute)
		if a.over() {
			t.Fatalf("ended with %d %s", a.Code, a.Body)
		}
		pass(time.Minute)
		if !a.over() || a.Code != http.StatusOK || rights.asked.Load() < 60 {
			t.Errorf("over: %t, with %d, asked about %d times", a.over(), a.Code, rights.asked.Load())
		}
		if b := g.post("s"); !b.over() || b.Code != http.StatusUnauthorized {
			t.Errorf("the expired token begins another: %d", b.Code)
		}
	})
}

func TestAGenerationGoesOnWithoutJudgementForAsLongAsALeaseLives(t *testing.T) {
	for name, c := range map[string]struct {
		away time.Duration
		want int
	}{
		"the judge is back in time":  {110 * time.Second, http.StatusOK},
		"the judge is not back then": {170 * time.Second, http.StatusServiceUnavailable},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var rights revocable
				g := newCalm(t, proxy.Config{Authorizer: &rights}, after(time.Hour))
				a := g.post("s")
				pass(10*time.Minute + time.Second)
				rights.away.Store(true)
				pass(c.away)
				rights.away.Store(false)
				pass(time.Hour)
				if !a.over() || a.Code != c.want {
					t.Errorf("over: %t, with %d %s; want %d", a.over(), a.Code, a.Body, c.want)
				}
			})
		})
	}
}

func TestAStreamIsCutOnceItsCallerHasLostItsRights(t *testing.T) {
	url, executions := simulated(t, enginesim.Config{Speed: 1})
	var rights revocable
	g := newRig(t, proxy.Config{Authorizer: &rights}, url)
	g.fleet.Config.TTL, g.fleet.Config.StartWindow = 3*time.Second, time.Second
	g.apply()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	req, _ := http.NewRequestWithContext(ctx, http.MethodPost, g.base+"/generate", strings.NewReader(generation("/generate", 50_000, `,"stream":true`)))
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if _, err := bufio.NewReader(resp.Body).ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	rights.revoked.Store(true)
	if _, err := io.Copy(io.Discard, resp.Body); err == nil || ctx.Err() != nil {
		t.Errorf("the stream goes on, or its client takes it for a whole one: %v", ctx.Err())
	}
	eventually(t, "the engine has aborted", func() bool { return len(executions.events(execlog.Finish)) == 1 })
	if o := executions.events(execlog.Finish)[0].Outcome; o != execlog.Aborted {
		t.Errorf("it ended %s", o)
	}
	if n := g.released(router.Cancelled); n != 1 {
		t.Errorf("released %v", g.snapshot().Totals.Released)
	}
	eventually(t, "nothing is counted any more", func() bool { return g.counted() == 0 })
}

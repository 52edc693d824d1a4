package proxy

import (
	"cmp"
	"context"
	"errors"
	"sync"
	"time"

	"github.com/berthmaster/berthmaster/internal/router"
	"github.com/berthmaster/berthmaster/internal/router/steps"
)

// lease is the proxy's end of a lease: it renews until it is released. It belongs to one exchange.
type lease struct {
	h     *Handler
	call  *call
	table *router.Table
	grant promised
	// over is called with the reason if the router answers for the execution no more, or the caller has lost its
	// rights to it.
	over context.CancelCauseFunc

	mu    sync.Mutex
	sure  time.Time    // guarded by mu: when the caller was last known to have its rights
	begun router.Start // guarded by mu
	phase leasePhase   // guarded by mu
	timer *time.Timer  // guarded by mu
	end   router.Ending
	said  router.Outcome
}

// leasePhase is whether the lease is still to be renewed.
type leasePhase uint8

const (
	renewing leasePhase = iota
	released
)

// renewalsPerTTL is how often a lease is renewed in the time that it lives without.
const renewalsPerTTL = 3

// keep begins to renew.
func (h *Handler) keep(c *call, g promised, over context.CancelCauseFunc) *lease {
	l := &lease{h: h, call: c, table: c.table, grant: g, over: over, sure: h.cfg.Clock()}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.timer = time.AfterFunc(g.TTL/renewalsPerTTL, l.renew)
	return l
}

func (l *lease) renew() {
	step := l.h.begin(steps.Renew, l.call, l.h.cfg.Clock())
	err := l.extend()
	if errors.Is(err, errReleased) {
		return
	}
	l.h.end(step, &l.grant.Claim, cmp.Or(err, l.judge()))
}

// judge ends the exchange of a caller that has lost its rights since. It asks after the renewal, so that an API
// server which answers late does not cost a generation its lease. Where nobody can be asked, the generation goes on for
// as long as a lease lives that is not renewed.
func (l *lease) judge() error {
	if l.call.still == nil {
		return nil
	}
	asked := l.h.cfg.Clock()
	err := l.call.still(l.call.r.Context())
	l.mu.Lock()
	defer l.mu.Unlock()
	refusal, refused := errors.AsType[*router.Refusal](err)
	switch {
	case err == nil:
		l.sure = asked
		return nil
	case l.phase == released:
		return nil // nothing is left to end, and the call that asked may be over
	case refused && refusal.Reason == reasonAuthUnavailable && l.h.cfg.Clock().Sub(l.sure) < l.grant.TTL:
		return nil
	}
	l.over(err)
	return err
}

// errReleased: there is nothing to renew any more.
var errReleased = errors.New("the lease has been released")

// extend renews, and sets the time of the next renewal.
func (l *lease) extend() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.phase == released {
		return errReleased
	}
	renewal, err := l.table.Renew(l.grant.Claim, l.begun, l.h.cfg.Clock())
	switch {
	case err == nil:
		l.grant.TTL = renewal.TTL // the owner may have changed it
	case !errors.Is(err, router.ErrNoLeader):
		l.over(errLeaseOver)
		return err
	}
	l.timer.Reset(l.grant.TTL / renewalsPerTTL)
	return err
}

// mayBegin says whether the request may be written now: within its start window, counted from
// before the latest answer was asked for. A lease that was waited for, or whose connection took
// long, is renewed first. An error means that nothing may be written.
func (l *lease) mayBegin() error {
	step := l.h.begin(steps.Renew, l.call, l.h.cfg.Clock())
	renewed, err := l.refresh()
	if renewed {
		l.h.end(step, &l.grant.Claim, err)
	}
	if err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.h.cfg.Clock().Sub(l.grant.asked) >= l.grant.StartWindow {
		return errWindowClosed
	}
	l.begun = router.Started
	return nil
}

// refresh renews a lease whose start window is half over, or not known to have begun. It reports
// whether it had to.
func (l *lease) refresh() (renewed bool, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.h.cfg.Clock()
	if !l.grant.asked.IsZero() && now.Sub(l.grant.asked) <= l.grant.StartWindow/2 {
		return false, nil
	}
	renewal, err := l.table.Renew(l.grant.Claim, router.NotStarted, now)
	if err != nil {
		return true, err
	}
	l.grant.asked, l.grant.StartWindow, l.grant.TTL = now, renewal.StartWindow, renewal.TTL
	l.timer.Reset(l.grant.TTL / renewalsPerTTL)
	return true, nil
}

var errWindowClosed = errors.New("the lease's start window is closed")

// release ends the lease, once: what is said first stands.
func (l *lease) release(o router.Outcome, r router.Reply) router.Ending {
	step := l.h.begin(steps.Release, l.call, l.h.cfg.Clock())
	end, err := l.close(o, r)
	if step != nil && !errors.Is(err, errReleased) {
		step.Outcome, step.Fate = o, end.Fate
		l.h.end(step, &l.grant.Claim, err)
	}
	return end
}

// close is release without a word. It fails with errReleased if it has been released before.
func (l *lease) close(o router.Outcome, r router.Reply) (router.Ending, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.phase == released {
		return l.end, errReleased
	}
	l.phase, l.said = released, o
	l.timer.Stop()
	end, err := l.table.Release(l.grant.Claim, o, r, l.h.cfg.Clock())
	if err != nil {
		// The router knows nothing of the lease any more: its epoch or term is over. What the
		// client may be told is the worst of it.
		end = router.Ending{Outcome: o, Fate: router.FatePending, Settled: true}
	}
	l.end = end
	return end, err
}

// ending is how the lease ended, as far as is known; the zero value: it has not.
func (l *lease) ending() router.Ending {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.end
}

// learns notes the fate of an execution that had ended Ambiguous.
func (l *lease) learns(end router.Ending) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.end = end
}

// outcome is what the lease was released with; OutcomeNone while it is not.
func (l *lease) outcome() router.Outcome {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.said
}

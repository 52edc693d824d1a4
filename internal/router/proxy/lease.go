package proxy

import (
	"errors"
	"sync"
	"time"

	"github.com/berthmaster/berthmaster/internal/router"
)

// lease is the proxy's end of a lease: it renews until it is released. It belongs to one exchange.
type lease struct {
	h     *Handler
	table *router.Table
	grant promised
	// over is called if the router answers for the execution no more.
	over func()

	mu    sync.Mutex
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
func (h *Handler) keep(c *call, g promised, over func()) *lease {
	l := &lease{h: h, table: c.table, grant: g, over: over}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.timer = time.AfterFunc(g.TTL/renewalsPerTTL, l.renew)
	return l
}

func (l *lease) renew() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.phase == released {
		return
	}
	_, err := l.table.Renew(l.grant.Claim, l.begun, l.h.cfg.Clock())
	if err != nil && !errors.Is(err, router.ErrNoLeader) {
		l.over()
		return
	}
	l.timer.Reset(l.grant.TTL / renewalsPerTTL)
}

// mayBegin says whether the request may be written now: within its start window, counted from
// before the latest answer was asked for. A lease that was waited for, or whose connection took
// long, is renewed first. An error means that nothing may be written.
func (l *lease) mayBegin() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.h.cfg.Clock()
	if l.grant.asked.IsZero() || now.Sub(l.grant.asked) > l.grant.StartWindow/2 {
		if _, err := l.table.Renew(l.grant.Claim, router.NotStarted, now); err != nil {
			return err
		}
		l.grant.asked = now
	}
	if l.h.cfg.Clock().Sub(l.grant.asked) >= l.grant.StartWindow {
		return errWindowClosed
	}
	l.begun = router.Started
	return nil
}

var errWindowClosed = errors.New("the lease's start window is closed")

// release ends the lease, once: what is said first stands.
func (l *lease) release(o router.Outcome, r router.Reply) router.Ending {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.phase == released {
		return l.end
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
	return end
}

// outcome is what the lease was released with; OutcomeNone while it is not.
func (l *lease) outcome() router.Outcome {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.said
}

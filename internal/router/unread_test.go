package router_test

import (
	"errors"
	"testing"
	"time"

	"github.com/berthmaster/berthmaster/internal/router"
	"github.com/berthmaster/berthmaster/internal/router/routertest"
)

// A router that has written its term and not yet read its fleet, or reads a stale one, knows nothing
// about the leases of the pool's epoch.
func TestATokenOfAnEpochNotReadYetIsAskedToComeBack(t *testing.T) {
	p := routertest.New(t, routertest.Backends("a"))
	g := p.Acquire("r", "s")
	fresh := router.NewTable("pool", nil, p.Now())
	fresh.Lead(2, router.Takeover{Windows: time.Minute}, p.Now())
	if _, err := fresh.Renew(g.Claim, router.Started, p.Now()); !errors.Is(err, router.ErrNoLeader) {
		t.Errorf("renew: %v, want NoLeader", err)
	}
	if _, err := fresh.Release(g.Claim, router.Succeeded, router.Reply{}, p.Now()); !errors.Is(err, router.ErrNoLeader) {
		t.Errorf("release: %v, want NoLeader", err)
	}
	if err := fresh.Apply(p.Fleet, p.Now()); err != nil {
		t.Fatal(err)
	}
	if _, err := fresh.Renew(g.Claim, router.Started, p.Now()); err != nil {
		t.Errorf("renew after the fleet was read: %v", err)
	}
}

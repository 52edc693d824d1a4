package controller

import (
	"github.com/berthmaster/berthmaster/api/v1alpha1"
	"github.com/berthmaster/berthmaster/internal/prober"
	"github.com/berthmaster/berthmaster/internal/router"
	"github.com/berthmaster/berthmaster/internal/sglang"
)

// planFleet turns the berths into what the router and the prober are told.
func (p *plan) planFleet(w world) {
	spec := &w.pool.Spec
	p.fleet = router.Fleet{
		Epoch: epochOf(spec), Leasing: leasingOf(spec), Config: configOf(spec), Senders: sendersOf(spec, w.pool.Namespace),
	}
	p.weights.tell(&p.fleet)
	fixed, fallback := capacityOf(&spec.Backends)
	known := map[router.Incarnation]string{}
	for i := range w.snapshot.Backends {
		known[w.snapshot.Backends[i].Incarnation] = w.snapshot.Backends[i].URL
	}
	for i := range p.berths {
		b := &p.berths[i]
		member := memberOf(b, fixed, fallback)
		if b.usable() {
			p.fleet.Members = append(p.fleet.Members, member)
			p.planProbe(b, healthOf(&spec.Health), w.keys)
		}
		if b.place != placeStray || b.forgotten {
			continue
		}
		if url, met := known[b.incarnation]; !met || url != b.url {
			p.introduced = append(p.introduced, member)
		}
	}
}

func memberOf(b *berth, fixed, fallback int64) router.Member {
	member := router.Member{
		Name: router.BackendName(b.name), Incarnation: b.incarnation, URL: b.url,
		Capacity: fixed, FallbackCapacity: fallback, Drain: b.drain.mode, Load: b.load, Excluded: string(b.unusable),
		Engine: b.engine.mode, Vouched: b.engine.vouched, VouchedAt: b.engine.vouchedAt,
	}
	if b.capacity > 0 {
		member.Capacity = b.capacity
	}
	member.Drain = stronger(member.Drain, b.engine.drain)
	if member.Excluded == "" {
		member.Excluded = b.engine.excluded
	}
	if !b.isolated.IsZero() && member.Drain != router.DrainAbort {
		// A router that took over does not know why the incarnation takes no leases. Emptying it
		// is what ends an isolation.
		member.Excluded, member.Drain = string(v1alpha1.BackendIsolated), router.DrainMove
	}
	return member
}

// stronger is the drain that takes more away of two.
func stronger(a, b router.Drain) router.Drain {
	for _, drain := range []router.Drain{router.DrainAbort, router.DrainMove, router.DrainKeep, router.DrainPinned} {
		if a == drain || b == drain {
			return drain
		}
	}
	return router.NotDraining
}

// planProbe lets the backend's health be watched.
func (p *plan) planProbe(b *berth, rule healthRule, keys sglang.KeySource) {
	base, err := sglang.ParseBaseURL(b.url)
	if err != nil {
		return // it has no address yet
	}
	p.targets = append(p.targets, prober.Target{
		Incarnation: string(b.incarnation), URL: base, Period: rule.period, Timeout: rule.timeout,
		FailureThreshold: rule.threshold, Budget: rule.budget, Hint: string(b.unusable), Keys: keys,
	})
}

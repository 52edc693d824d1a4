package controller

import (
	"k8s.io/apimachinery/pkg/types"

	"github.com/berthmaster/berthmaster/internal/prober"
	"github.com/berthmaster/berthmaster/internal/router"
)

// Observe hands what a probe learnt to the pool's table. It is the prober's Sink: it is called from
// probe loops and does not block. What concerns a pool that is gone is dropped.
func (ts *tenures) Observe(o prober.Observation) {
	table := ts.table(types.UID(o.Pool))
	if table == nil {
		return
	}
	table.Observe(observationOf(o), o.At)
}

// observationOf is a probe's result in the router's words. A version counts only while confirmed.
func observationOf(o prober.Observation) router.Observation {
	observation := router.Observation{
		Incarnation: router.Incarnation(o.Incarnation), Seq: o.Seq, Health: healthIn(o.Verdict),
		Capacity: o.Capacity, EngineTotal: o.EngineTotal, Reason: string(o.Reason),
	}
	if o.VersionConfirmed {
		observation.Version = router.Version(o.WeightVersion)
	}
	return observation
}

func healthIn(verdict prober.Verdict) router.Health {
	switch verdict {
	case prober.Healthy:
		return router.Healthy
	case prober.Unhealthy:
		return router.Unhealthy
	case prober.SuspectedPaused:
		return router.SuspectedPaused
	case prober.Refused:
		return router.Refused
	case prober.Unknown:
	}
	return router.HealthUnknown
}

var _ prober.Sink = (*tenures)(nil)

package main

import (
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/berthmaster/berthmaster/internal/election"
	berths "github.com/berthmaster/berthmaster/internal/metrics"
	"github.com/berthmaster/berthmaster/internal/prober"
	"github.com/berthmaster/berthmaster/internal/router"
	"github.com/berthmaster/berthmaster/internal/router/proxy"
)

// telemetry is what is told of this manager. Its sources are complete once it is published.
type telemetry struct {
	*berths.Collector
	probes    *prober.Prober
	proxied   *proxy.Handler
	candidate *election.Candidate // nil: there is no election
}

func newTelemetry(pools *router.Pools, ports doors) *telemetry {
	t := &telemetry{}
	t.Collector = berths.New(berths.Sources{
		Pools:   pools,
		Probed:  func(pool string) map[string]prober.Observation { return t.probes.Latest(pool) },
		Proxied: func() map[router.PoolKey]proxy.PoolMetrics { return t.proxied.Snapshot() },
		Reign:   t.reign,
		Ports:   ports.counts,
	})
	return t
}

// refused has an engine probed anew that refused a connection. One that is probed no more is of a pool, or of a
// fleet, that has gone meanwhile.
func (t *telemetry) refused(pool router.PoolUID, incarnation router.Incarnation) {
	_ = t.probes.Refused(prober.Key{Pool: string(pool), Incarnation: string(incarnation)})
}

// reign says whether this replica leads, and how often it has begun to. The only one there is leads
// from its start.
func (t *telemetry) reign() (leads bool, reigns int64) {
	if t.candidate == nil {
		return true, 1
	}
	return t.candidate.Standing().Role == election.RoleLeads, t.candidate.Reigns()
}

// publish adds the metrics to those that the manager serves. candidate is nil without an election.
func (t *telemetry) publish(proxied *proxy.Handler, candidate *election.Candidate) error {
	t.proxied, t.candidate = proxied, candidate
	if err := metrics.Registry.Register(t.Collector); err != nil {
		return fmt.Errorf("metrics: %w", err)
	}
	return nil
}

// withdraw takes them back, for a process that puts another manager together.
func (t *telemetry) withdraw() { metrics.Registry.Unregister(t.Collector) }

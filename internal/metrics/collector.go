package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/berthmaster/berthmaster/internal/prober"
	"github.com/berthmaster/berthmaster/internal/router"
	"github.com/berthmaster/berthmaster/internal/router/proxy"
)

// Sources are what is read at a scrape. Only Pools is required.
type Sources struct {
	// Pools are the tables of this replica.
	Pools *router.Pools
	// Probed is what the prober knows of a pool's engines, by incarnation; nil: nobody probes.
	Probed func(poolUID string) map[string]prober.Observation
	// Proxied is what the proxy counted; nil: there is no proxy.
	Proxied func() map[router.PoolKey]proxy.PoolMetrics
	// Reign says whether this replica leads and how often it has begun to; nil: it is the only one.
	Reign func() (leads bool, reigns int64)
	// Ports are the connections of each port of this replica; nil: nobody counts them.
	Ports func() map[Port]Connections
	// Clock is read once per scrape; nil: time.Now.
	Clock func() time.Time
}

// Collector is a prometheus.Collector of all families.
type Collector struct {
	from   Sources
	shapes shapes
	*tally
}

// New makes a collector. The caller registers it.
func New(from Sources) *Collector {
	if from.Clock == nil {
		from.Clock = time.Now
	}
	if from.Reign == nil {
		from.Reign = func() (bool, int64) { return true, 1 }
	}
	if from.Probed == nil {
		from.Probed = func(string) map[string]prober.Observation { return nil }
	}
	return &Collector{from: from, shapes: newShapes(Families()), tally: newTally()}
}

// Describe tells every family.
func (c *Collector) Describe(to chan<- *prometheus.Desc) { c.shapes.describe(to) }

// Collect reads every source.
func (c *Collector) Collect(to chan<- prometheus.Metric) {
	s := sheet{c.shapes, to}
	leads, begun := c.from.Reign()
	s.put(leading, yes(leads))
	s.put(reigns, float64(begun))
	if c.from.Ports != nil {
		s.ports(c.from.Ports())
	}
	uids := map[string]router.PoolKey{}
	if leads {
		uids = c.pools(s)
	}
	c.tally.tell(s, uids)
}

// pools tells of every pool, and returns them by UID. Only the leader does: what another replica
// knows of a pool is not so, and would be told beside the leader's.
func (c *Collector) pools(s sheet) map[string]router.PoolKey {
	now := c.from.Clock()
	tables := c.from.Pools.All()
	uids := make(map[string]router.PoolKey, len(tables))
	for key, table := range tables {
		snapshot := table.Snapshot(now)
		uids[string(snapshot.Pool)] = key
		s.pool(key, &snapshot)
		s.leases(key, &snapshot.Totals)
		s.backends(key, &snapshot, c.from.Probed(string(snapshot.Pool)))
	}
	if c.from.Proxied != nil {
		for key, seen := range c.from.Proxied() {
			s.proxy(key, seen)
		}
	}
	return uids
}

package main

import (
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/berthmaster/berthmaster/internal/door"
	"github.com/berthmaster/berthmaster/internal/prober"
	"github.com/berthmaster/berthmaster/internal/router"
	"github.com/berthmaster/berthmaster/internal/router/proxy"
)

// deaf hears nothing of what a prober sees.
type deaf struct{}

func (deaf) Observe(prober.Observation) {}

// exported are the families of ours that the manager serves now.
func exported(t *testing.T) map[string]bool {
	t.Helper()
	families, err := metrics.Registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]bool{}
	for _, f := range families {
		if strings.HasPrefix(f.GetName(), "berthmaster_") {
			out[f.GetName()] = true
		}
	}
	return out
}

func TestMetricsAreServedWhileTheManagerRunsAndWithdrawnAfterwards(t *testing.T) {
	pools := router.NewPools()
	pools.Put(router.PoolKey{Namespace: "rl", Name: "policy"}, router.NewTable("uid", nil, time.Now()))
	told := newTelemetry(pools, doors{leases: door.New(1), metrics: door.New(1), probes: door.New(1)})
	told.probes = prober.New(deaf{}, prober.Config{})
	defer told.probes.Close()
	transparent, err := proxy.New(proxy.Config{Pools: pools})
	if err != nil {
		t.Fatal(err)
	}
	if err := told.publish(transparent, nil); err != nil {
		t.Fatal(err)
	}
	got := exported(t)
	for _, family := range []string{"berthmaster_leading", "berthmaster_pool_term", "berthmaster_leases_granted_total", "berthmaster_wait_duration_seconds", "berthmaster_port_connections"} {
		if !got[family] {
			t.Errorf("%s is not served", family)
		}
	}
	told.withdraw()
	for family := range exported(t) {
		if strings.HasPrefix(family, "berthmaster_pool_") {
			t.Errorf("%s is served by a manager that has ended", family)
		}
	}
}

package metrics_test

import (
	"fmt"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	dto "github.com/prometheus/client_model/go"

	"github.com/berthmaster/berthmaster/internal/metrics"
	"github.com/berthmaster/berthmaster/internal/prober"
	"github.com/berthmaster/berthmaster/internal/router"
	"github.com/berthmaster/berthmaster/internal/router/proxy"
	"github.com/berthmaster/berthmaster/internal/router/routertest"
)

var policy = router.PoolKey{Namespace: "rl", Name: "policy"}

// house is one pool, with whatever else is read for its metrics.
func house(t *testing.T, p *routertest.Pool, change ...func(*metrics.Sources)) (*metrics.Collector, *prometheus.Registry) {
	t.Helper()
	from := metrics.Sources{Pools: router.NewPools(), Clock: p.Now}
	from.Pools.Put(policy, p.Table)
	for _, f := range change {
		f(&from)
	}
	c := metrics.New(from)
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(c)
	return c, registry
}

// gather scrapes, and returns the values by family and labels, as in the text format.
func gather(t *testing.T, from prometheus.Gatherer) (map[string]float64, []*dto.MetricFamily) {
	t.Helper()
	families, err := from.Gather()
	if err != nil {
		t.Fatal(err)
	}
	values := map[string]float64{}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			var labels []string
			for _, l := range m.GetLabel() {
				labels = append(labels, l.GetName()+"="+l.GetValue())
			}
			value := m.GetGauge().GetValue() + m.GetCounter().GetValue() + float64(m.GetHistogram().GetSampleCount())
			values[f.GetName()+"{"+strings.Join(labels, ",")+"}"] = value
		}
	}
	return values, families
}

// full is a house in which every family has a value. On the backend home a request ended as Ambiguous,
// and on the other one another runs.
func full(t *testing.T) (registry *prometheus.Registry, home, other string) {
	t.Helper()
	p := routertest.New(t, routertest.Backends("a", "b"))
	p.Change(func(f *router.Fleet) { f.Published, f.Target = "v1", "v2" })
	p.See(router.Observation{Incarnation: "a/1", Health: router.Healthy, Version: "v1"})
	p.See(router.Observation{Incarnation: "b/1", Health: router.Healthy, Version: "v2"})
	g := p.Acquire("r1", "s1")
	p.Release(g, router.Ambiguous)
	home, other = "a", "b"
	if g.Claim.Backend == "b" {
		home, other = other, home
	}
	p.Acquire("r2", "s2")
	c, registry := house(t, p, func(from *metrics.Sources) {
		from.Probed = func(string) map[string]prober.Observation {
			return map[string]prober.Observation{home + "/1": {Verdict: prober.Healthy, EngineTotal: 5}, other + "/1": {Verdict: prober.Healthy, EngineTotal: -1}}
		}
		from.Proxied = func() map[router.PoolKey]proxy.PoolMetrics {
			h := proxy.Histogram{Bounds: []float64{1}, Counts: []uint64{2, 1}, Sum: 4}
			return map[router.PoolKey]proxy.PoolMetrics{policy: {Held: 3, Ended: map[proxy.Label]proxy.Ended{"Succeeded": {Requests: 3, RequestBytes: 7, FirstByte: h, Total: h}}}}
		}
		from.Reign = func() (bool, int64) { return true, 2 }
		from.Ports = func() map[metrics.Port]metrics.Connections {
			return map[metrics.Port]metrics.Connections{metrics.PortLeases: {Open: 7, Resting: 5, Refused: 3, Displaced: 4}}
		}
	})
	c.Probed(prober.Key{Pool: string(p.Snapshot().Pool), Incarnation: "a/1"}, prober.ResultAnswered, time.Second)
	c.Wrote(policy, nil)
	_, _ = c.Engines(answers(503)).RoundTrip(call(t, "/health"))
	return registry, home, other
}

type answers int

func (code answers) RoundTrip(*http.Request) (*http.Response, error) {
	if code == 0 {
		return nil, fmt.Errorf("no reply")
	}
	return &http.Response{StatusCode: int(code), Body: http.NoBody}, nil
}

func call(t *testing.T, path string) *http.Request {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://127.0.0.1:30000"+path, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestEveryListedFamilyIsExportedAndNoOther(t *testing.T) {
	registry, _, _ := full(t)
	_, families := gather(t, registry)
	var got, want []string
	for _, f := range families {
		got = append(got, f.GetName()+" "+strings.ToLower(f.GetType().String()))
	}
	for _, f := range metrics.Families() {
		want = append(want, f.Name+" "+string(f.Kind))
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("families (-listed +exported):\n%s", diff)
	}
}

func TestFamiliesPassTheLinterOfPrometheus(t *testing.T) {
	registry, _, _ := full(t)
	problems, err := testutil.GatherAndLint(registry)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		t.Errorf("%s: %s", p.Metric, p.Text)
	}
}

func TestNamesCarryTheirUnitAndCountersEndInTotal(t *testing.T) {
	for _, f := range metrics.Families() {
		if !regexp.MustCompile(`^berthmaster_[a-z_]+$`).MatchString(f.Name) || !strings.HasSuffix(f.Help, ".") {
			t.Errorf("%s: %q", f.Name, f.Help)
		}
		if (f.Kind == metrics.Counter) != strings.HasSuffix(f.Name, "_total") {
			t.Errorf("%s is a %s", f.Name, f.Kind)
		}
		if (f.Unit == "seconds" || f.Unit == "ratio" || f.Unit == "bytes") && !strings.Contains(f.Name, "_"+f.Unit) {
			t.Errorf("%s is in %s and does not say so", f.Name, f.Unit)
		}
	}
}

func TestNoFamilyHasALabelWithoutABound(t *testing.T) {
	bounded := map[string]bool{
		"namespace": true, "pool": true, "backend": true, "sender": true, // what the cluster declares
		"state": true, "progress": true, "reason": true, "outcome": true, "result": true, "route": true, "code": true, "port": true, // constants
	}
	for _, f := range metrics.Families() {
		for _, label := range f.Labels {
			if !bounded[label] {
				t.Errorf("%s has the label %s", f.Name, label)
			}
		}
	}
}

func TestValuesAreThoseOfTheSources(t *testing.T) {
	registry, home, other := full(t)
	got, _ := gather(t, registry)
	in, at := "{namespace=rl,pool=policy}", func(more string) string { return "{" + more + "}" }
	for series, want := range map[string]float64{
		"berthmaster_pool_outstanding_executions" + in:                                                  2,
		"berthmaster_pool_capacity_executions" + in:                                                     16,
		"berthmaster_pool_sessions" + in:                                                                2,
		"berthmaster_pool_uncertain_executions" + in:                                                    1,
		"berthmaster_pool_term" + in:                                                                    1,
		"berthmaster_pool_leasing_open" + in:                                                            1,
		"berthmaster_rollout_active" + in:                                                               1,
		"berthmaster_leases_granted_total" + in:                                                         2,
		"berthmaster_rollout_backends" + at("namespace=rl,pool=policy,progress=Updated"):                1,
		"berthmaster_rollout_backends" + at("namespace=rl,pool=policy,progress=Outdated"):               1,
		"berthmaster_leases_released_total" + at("namespace=rl,outcome=Ambiguous,pool=policy"):          1,
		"berthmaster_leases_released_total" + at("namespace=rl,outcome=Succeeded,pool=policy"):          0,
		"berthmaster_backend_state" + at("backend="+other+",namespace=rl,pool=policy,state=Admissible"): 1,
		"berthmaster_backend_state" + at("backend="+home+",namespace=rl,pool=policy,state=Settling"):    1,
		"berthmaster_backend_phantom_executions" + at("backend="+home+",namespace=rl,pool=policy"):      -4,
		"berthmaster_backend_held_executions" + at("backend="+home+",namespace=rl,pool=policy"):         1,
		"berthmaster_backend_weights_current" + at("backend=a,namespace=rl,pool=policy"):                0,
		"berthmaster_sender_outstanding_executions" + at("namespace=rl,pool=policy,sender=train"):       2,
		"berthmaster_proxy_request_duration_seconds" + at("namespace=rl,outcome=Succeeded,pool=policy"): 3,
		"berthmaster_probe_duration_seconds" + at("namespace=rl,pool=policy,result=Answered"):           1,
		"berthmaster_engine_call_duration_seconds" + at("code=5xx,route=/health"):                       1,
		"berthmaster_status_writes_total" + at("namespace=rl,pool=policy,result=Written"):               1,
		"berthmaster_reigns_total{}":                                                                    2,
		"berthmaster_port_connections{port=leases,state=Resting}":                                       5,
		"berthmaster_port_connections{port=leases,state=Working}":                                       2,
		"berthmaster_port_connections_refused_total{port=leases}":                                       3,
		"berthmaster_port_connections_displaced_total{port=leases}":                                     4,
	} {
		if value, told := got[series]; !told || value != want {
			t.Errorf("%s is %v (told: %t), want %v", series, value, told, want)
		}
	}
	if _, told := got["berthmaster_backend_phantom_executions{backend="+other+",namespace=rl,pool=policy}"]; told {
		t.Error("phantom load is told of an engine that did not tell its own")
	}
}

func TestEngineCallsBeyondTheKnownRoutesAreOneLabel(t *testing.T) {
	p := routertest.New(t, routertest.Backends("a"))
	c, registry := house(t, p)
	for i := range 100 {
		_, _ = c.Engines(answers(200)).RoundTrip(call(t, fmt.Sprintf("/tenant-%d/health", i)))
	}
	_, _ = c.Engines(answers(0)).RoundTrip(call(t, "/v1/loads"))
	got, _ := gather(t, registry)
	series := slices.DeleteFunc(slices.Sorted(maps.Keys(got)), func(s string) bool { return !strings.Contains(s, "engine_call") })
	want := []string{"berthmaster_engine_call_duration_seconds{code=2xx,route=other}", "berthmaster_engine_call_duration_seconds{code=error,route=/v1/loads}"}
	if diff := cmp.Diff(want, series); diff != "" {
		t.Error(diff)
	}
}

func TestWhatWasCountedOfAPoolIsForgottenWithIt(t *testing.T) {
	p := routertest.New(t, routertest.Backends("a"))
	pools := router.NewPools()
	pools.Put(policy, p.Table)
	c, registry := house(t, p, func(from *metrics.Sources) { from.Pools = pools })
	c.Probed(prober.Key{Pool: string(p.Snapshot().Pool)}, prober.ResultFailed, time.Second)
	c.Wrote(policy, nil)
	for _, there := range []bool{true, false} {
		got, _ := gather(t, registry)
		for _, family := range []string{"berthmaster_probe_duration_seconds", "berthmaster_status_writes_total", "berthmaster_pool_sessions"} {
			told := slices.ContainsFunc(slices.Collect(maps.Keys(got)), func(s string) bool { return strings.HasPrefix(s, family) })
			if told != there {
				t.Errorf("%s is told: %t, while the pool is there: %t", family, told, there)
			}
		}
		pools.Remove(policy, p.Table)
	}
}

func TestAReplicaThatDoesNotLeadTellsNothingOfPools(t *testing.T) {
	_, registry := house(t, routertest.New(t, routertest.Backends("a")), func(from *metrics.Sources) {
		from.Reign = func() (bool, int64) { return false, 3 }
	})
	got, _ := gather(t, registry)
	if diff := cmp.Diff(map[string]float64{"berthmaster_leading{}": 0, "berthmaster_reigns_total{}": 3}, got); diff != "" {
		t.Error(diff)
	}
}

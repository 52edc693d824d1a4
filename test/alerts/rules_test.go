package alerts

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql/parser"
	"sigs.k8s.io/yaml"
)

const root = "../.."

// rules reads the alerting rules as Prometheus does.
func rules(t *testing.T) map[string]rulefmt.Rule {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(root, "config/prometheus/prometheus_rule.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var object struct {
		Spec map[string]any `json:"spec"`
	}
	if err := yaml.Unmarshal(raw, &object); err != nil {
		t.Fatal(err)
	}
	spec, err := yaml.Marshal(object.Spec)
	if err != nil {
		t.Fatal(err)
	}
	groups, errs := rulefmt.Parse(spec, false, model.UTF8Validation, parser.NewParser(parser.Options{}), nil)
	for _, err := range errs {
		t.Fatal(err)
	}
	out := map[string]rulefmt.Rule{}
	for _, group := range groups.Groups {
		for _, rule := range group.Rules {
			out[rule.Alert] = rule
		}
	}
	return out
}

const (
	pool    = `{namespace="rl",pool="policy"}`
	backend = `{namespace="rl",pool="policy",backend="b0"}`
)

// of is a series of the pool with one label more.
func of(family, label string) string {
	return family + strings.Replace(pool, "}", ","+label+"}", 1)
}

// then is a and, from the given time on, b.
func then(a float64, from time.Duration, b float64) course {
	return func(at time.Duration) float64 {
		if at < from {
			return a
		}
		return b
	}
}

// weather is what the rules are shown: what must wake somebody, and what must not.
type weather struct{ bad, good map[string]course }

func weathers() map[string]weather {
	type s = map[string]course
	open := "berthmaster_pool_leasing_open" + pool
	admissible, refused := of("berthmaster_pool_backends", `state="Admissible"`), of("berthmaster_pool_backends", `state="Refused"`)
	draining := of("berthmaster_pool_backends", `state="Draining"`)
	longest, skew := "berthmaster_pool_longest_wait_seconds"+pool, "berthmaster_pool_load_skew_ratio"+pool
	outstanding, capacity := "berthmaster_pool_outstanding_executions"+pool, "berthmaster_pool_capacity_executions"+pool
	phantom, room := "berthmaster_backend_phantom_executions"+backend, "berthmaster_backend_capacity_executions"+backend
	lost, granted := "berthmaster_leases_lost_total"+pool, "berthmaster_leases_granted_total"+pool
	ambiguous := of("berthmaster_leases_released_total", `outcome="Ambiguous"`)
	active, updated := "berthmaster_rollout_active"+pool, of("berthmaster_rollout_backends", `progress="Updated"`)
	mismatches, unattached := "berthmaster_version_mismatches_total"+pool, "berthmaster_leases_without_affinity_total"+pool
	failed, conflicts := of("berthmaster_status_writes_total", `result="Failed"`), of("berthmaster_status_writes_total", `result="Conflict"`)
	call := func(route, code string) string {
		return `berthmaster_engine_call_duration_seconds_count{route="` + route + `",code="` + code + `"}`
	}
	leads := func(pod string) string { return `berthmaster_leading{pod="` + pod + `"}` }
	begun := func(pod string) string { return `berthmaster_reigns_total{pod="` + pod + `"}` }
	return map[string]weather{
		"PoolFailed":       {s{"berthmaster_pool_failed" + pool: always(1)}, s{"berthmaster_pool_failed" + pool: always(0)}},
		"PoolHasNoBackend": {s{admissible: always(0), refused: always(8), open: always(1)}, s{admissible: always(0), refused: always(8), open: always(0)}},
		"BackendsUnavailable": {
			s{admissible: always(6), refused: always(2)}, s{admissible: always(6), refused: always(0), draining: always(2)},
		},
		"WaitsAreLong":         {s{longest: always(300), open: always(1)}, s{longest: always(300), open: always(0)}},
		"LoadIsSkewed":         {s{skew: always(0.9), outstanding: always(50), capacity: always(100)}, s{skew: always(0.9), outstanding: always(5), capacity: always(100)}},
		"LoadIsUnknown":        {s{"berthmaster_pool_unknown_load_backends" + pool: always(2)}, s{"berthmaster_pool_unknown_load_backends" + pool: then(2, 20*time.Minute, 0)}},
		"LoadIsPhantom":        {s{phantom: always(-20), room: always(64)}, s{phantom: always(10), room: always(64)}},
		"LeasesAreLost":        {s{lost: rising(5), granted: rising(100)}, s{lost: rising(0.2), granted: rising(100)}},
		"OutcomesAreAmbiguous": {s{ambiguous: rising(1)}, s{ambiguous: rising(0.1)}},
		"RolloutStandsStill":   {s{active: always(1), updated: always(3)}, s{active: always(1), updated: rising(0.2)}},
		"VersionsMismatch":     {s{mismatches: rising(0.5)}, s{mismatches: always(7)}},
		"NobodyLeads":          {s{leads("a"): always(0), leads("b"): always(0)}, s{leads("a"): always(0), leads("b"): always(1)}},
		"LeadersChangeOften":   {s{begun("a"): rising(0.1), begun("b"): rising(0.1)}, s{begun("a"): then(1, 40*time.Minute, 2), begun("b"): always(1)}},
		"StatusIsNotWritten":   {s{failed: rising(1)}, s{failed: always(0), conflicts: rising(10)}},
		"EngineCallsFail": {
			s{call("/v1/loads", "2xx"): rising(60), call("/v1/loads", "error"): rising(40), call("/health", "2xx"): rising(100)},
			s{call("/v1/loads", "2xx"): rising(100), call("/health", "5xx"): rising(100)},
		},
		"SessionsHaveNoAffinity": {s{unattached: rising(1)}, s{unattached: always(0)}},
	}
}

// fires says whether a rule fires after the series have run for an hour, as Prometheus decides: its
// expression has been true at each evaluation for as long as the rule says.
func fires(t *testing.T, rule rulefmt.Rule, series map[string]course) bool {
	t.Helper()
	const now = time.Hour
	s := lay(t, series, now)
	for at := now - time.Duration(rule.For); at <= now; at += time.Minute {
		if len(ask(t, s, rule.Expr, at)) == 0 {
			return false
		}
	}
	return true
}

func TestEachRuleFiresInItsWeatherAndInNoOther(t *testing.T) {
	all := rules(t)
	tried := weathers()
	for name := range all {
		if _, ok := tried[strings.TrimPrefix(name, "Berthmaster")]; !ok {
			t.Errorf("%s is not tried", name)
		}
	}
	for name, w := range tried {
		rule, ok := all["Berthmaster"+name]
		if !ok {
			t.Errorf("there is no rule Berthmaster%s", name)
			continue
		}
		if !fires(t, rule, w.bad) {
			t.Errorf("%s does not fire in bad weather", name)
		}
		if fires(t, rule, w.good) {
			t.Errorf("%s fires in good weather", name)
		}
	}
}

func TestASilentPrometheusMeansThatNobodyLeads(t *testing.T) {
	if !fires(t, rules(t)["BerthmasterNobodyLeads"], nil) {
		t.Error("no series at all, and nobody is woken")
	}
}

func TestEachRuleHasARunbookAndEachRunbookARule(t *testing.T) {
	const where = "https://github.com/berthmaster/berthmaster/blob/main/"
	linked := map[string]bool{"README.md": true}
	for name, rule := range rules(t) {
		path, ok := strings.CutPrefix(rule.Annotations["runbook_url"], where)
		page, err := os.ReadFile(filepath.Join(root, path))
		if !ok || err != nil || !strings.Contains(string(page), "`"+name+"`") {
			t.Errorf("%s: %s is no page about it: %v", name, rule.Annotations["runbook_url"], err)
		}
		linked[filepath.Base(path)] = true
		if s := rule.Labels["severity"]; s != "critical" && s != "warning" {
			t.Errorf("%s has severity %q", name, s)
		}
	}
	pages, err := os.ReadDir(filepath.Join(root, "docs/runbooks"))
	if err != nil {
		t.Fatal(err)
	}
	for _, page := range pages {
		if !linked[page.Name()] {
			t.Errorf("docs/runbooks/%s belongs to no rule", page.Name())
		}
	}
}

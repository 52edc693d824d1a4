package charts

import (
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

const watching = "../../config/prometheus"

// monitored are the objects that monitoring adds to a release.
func monitored(t *testing.T, namespace, values string) map[string]*unstructured.Unstructured {
	t.Helper()
	with := mustRender(t, namespace, values)
	without := mustRender(t, namespace, "{scope: "+scopeOf(values)+"}")
	for name := range without {
		delete(with, name)
	}
	return with
}

func scopeOf(values string) string {
	if strings.Contains(values, "scope: Namespace") {
		return "Namespace"
	}
	return "All"
}

// source is an object of config/prometheus as it was written.
func source(t *testing.T, file string) map[string]any {
	t.Helper()
	text, err := os.ReadFile(watching + "/" + file)
	if err != nil {
		t.Fatal(err)
	}
	var object map[string]any
	if err := yaml.Unmarshal(text, &object); err != nil {
		t.Fatal(err)
	}
	return object
}

func TestMonitoringIsThatOfTheManifests(t *testing.T) {
	got := monitored(t, "berthmaster-system", "monitoring: {enabled: true}")
	if len(got) != 4 {
		t.Errorf("%d objects were added: %v", len(got), got)
	}
	for name, file := range map[string]string{
		"PrometheusRule berthmaster": "prometheus_rule.yaml", "ServiceMonitor berthmaster": "service_monitor.yaml",
		"ClusterRoleBinding berthmaster-metrics-reader": "metrics_reader.yaml",
	} {
		want := source(t, file)
		if got[name] == nil {
			t.Fatalf("there is no %s", name)
		}
		if got[name].GetKind() != "ClusterRoleBinding" {
			want["metadata"].(map[string]any)["namespace"] = "berthmaster-system"
		}
		if diff := cmp.Diff(want, got[name].Object); diff != "" {
			t.Errorf("%s has -, the chart +:\n%s", file, diff)
		}
	}
	dashboard, err := os.ReadFile(watching + "/dashboard.json")
	if err != nil {
		t.Fatal(err)
	}
	board := got["ConfigMap berthmaster-dashboard"]
	text, _, err := unstructured.NestedString(board.Object, "data", "berthmaster.json")
	if err != nil || text != string(dashboard) || board.GetLabels()["grafana_dashboard"] != "1" {
		t.Errorf("the dashboard is another, or Grafana does not find it by %v (%v)", board.GetLabels(), err)
	}
}

func TestMonitoringIsForTheReleasesNamespaceAndTheClustersPrometheus(t *testing.T) {
	got := monitored(t, "rl", "monitoring: {enabled: true, prometheus: {namespace: berthmaster-system-2, serviceAccount: p}, labels: {release: kps}}")
	for name, object := range got {
		text, err := object.MarshalJSON()
		if err != nil {
			t.Fatal(err)
		}
		if left := strings.ReplaceAll(string(text), "berthmaster-system-2", ""); strings.Contains(left, "berthmaster-system") {
			t.Errorf("%s speaks of another namespace", name)
		}
		if kind := object.GetKind(); kind == "ServiceMonitor" || kind == "PrometheusRule" {
			if diff := cmp.Diff(map[string]string{"app.kubernetes.io/name": "berthmaster", "release": "kps"}, object.GetLabels()); diff != "" {
				t.Errorf("labels of %s: -want +got\n%s", name, diff)
			}
		}
	}
	subjects, _, err := unstructured.NestedSlice(got["ClusterRoleBinding berthmaster-metrics-reader"].Object, "subjects")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]any{map[string]any{"kind": "ServiceAccount", "name": "p", "namespace": "berthmaster-system-2"}}, subjects); diff != "" {
		t.Errorf("who may read: -want +got\n%s", diff)
	}
	endpoints, _, err := unstructured.NestedSlice(got["ServiceMonitor berthmaster"].Object, "spec", "endpoints")
	if err != nil {
		t.Fatal(err)
	}
	server, _, err := unstructured.NestedString(endpoints[0].(map[string]any), "tlsConfig", "serverName")
	if err != nil || server != "berthmaster-metrics.rl.svc" {
		t.Errorf("the manager is expected to be %q (%v)", server, err)
	}
}

func TestARoleThatIsBoundExists(t *testing.T) {
	for _, scope := range []string{"All", "Namespace"} {
		all := mustRender(t, "rl", "{scope: "+scope+", monitoring: {enabled: true}}")
		bound := 0
		for name, object := range all {
			if object.GetKind() != "ClusterRoleBinding" || !strings.Contains(name, "metrics") {
				continue
			}
			bound++
			role, _, err := unstructured.NestedString(object.Object, "roleRef", "name")
			if err != nil || all["ClusterRole "+role] == nil {
				t.Errorf("with scope %s %s binds %q, which does not exist (%v)", scope, name, role, err)
			}
		}
		if bound != 1 {
			t.Errorf("with scope %s %d bindings let Prometheus in", scope, bound)
		}
	}
}

func TestMonitoringThatMeansNothingIsRefused(t *testing.T) {
	for name, values := range map[string]string{
		"neither on nor off":         "monitoring: {enabled: maybe}",
		"an unknown part":            "monitoring: {grafana: true}",
		"an account without a name":  `monitoring: {enabled: true, prometheus: {serviceAccount: ""}}`,
		"a namespace that is none":   `monitoring: {enabled: true, prometheus: {namespace: "A b"}}`,
		"a label that is no text":    "monitoring: {enabled: true, labels: {a: 1}}",
		"nobody who may read at all": "monitoring: {enabled: true, prometheus: {namespace: null}}",
	} {
		if _, err := render(t, "rl", values); err == nil {
			t.Errorf("%s (%s) was accepted", name, values)
		}
	}
}

package controller

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/yaml"

	"github.com/berthmaster/berthmaster/api/v1alpha1"
)

// role is the common part of a Role and a ClusterRole.
type role struct {
	Kind     string `json:"kind"`
	Metadata struct {
		Name   string            `json:"name"`
		Labels map[string]string `json:"labels"`
	} `json:"metadata"`
	Rules []rbacv1.PolicyRule `json:"rules"`
}

func readRole(t *testing.T, path ...string) role {
	t.Helper()
	manifest, err := os.ReadFile(filepath.Join(append([]string{"..", "..", "config", "rbac"}, path...)...))
	if err != nil {
		t.Fatal(err)
	}
	var r role
	if err := yaml.UnmarshalStrict(manifest, &struct {
		*role
		APIVersion string `json:"apiVersion"`
	}{role: &r}); err != nil {
		t.Fatal(err)
	}
	return r
}

func TestManagerOfOneNamespaceHasTheSameRightsInARoleButForNodes(t *testing.T) {
	everywhere, there := readRole(t, "role.yaml"), readRole(t, "namespaced", "role.yaml")
	within := slices.DeleteFunc(everywhere.Rules, func(rule rbacv1.PolicyRule) bool {
		return slices.Equal(rule.Resources, []string{"nodes"}) // which are in no namespace
	})
	if diff := cmp.Diff(within, there.Rules); diff != "" {
		t.Errorf("rules (-role.yaml +namespaced/role.yaml):\n%s", diff)
	}
	if there.Kind != "Role" {
		t.Errorf("kind %s reaches beyond the namespace", there.Kind)
	}
}

func TestReplicasOfOneNamespaceShareWhatOthersShare(t *testing.T) {
	everywhere, err := os.ReadFile(filepath.Join("..", "..", "config", "rbac", "replica_role.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	there, err := os.ReadFile(filepath.Join("..", "..", "config", "rbac", "namespaced", "replica_role.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(everywhere), string(there)); diff != "" {
		t.Errorf("replica_role.yaml (-everywhere +in one namespace):\n%s", diff)
	}
}

func TestRolesForPeopleNameTheGroupAndNeverTheStatus(t *testing.T) {
	for file, aggregated := range map[string]int{
		"inferencepool_viewer_role.yaml": 3, "inferencepool_editor_role.yaml": 2, "inferencepool_admin_role.yaml": 1,
	} {
		r := readRole(t, file)
		if len(r.Metadata.Labels) != aggregated {
			t.Errorf("%s is aggregated into %d roles, want %d", file, len(r.Metadata.Labels), aggregated)
		}
		want := rbacv1.PolicyRule{APIGroups: []string{v1alpha1.GroupVersion.Group}, Resources: []string{v1alpha1.InferencePoolResource}}
		for _, rule := range r.Rules {
			if slices.Equal(rule.Resources, []string{v1alpha1.InferencePoolResource + "/leases"}) {
				continue // the subresource that callers of the lease API need, and that is no object
			}
			rule.Verbs = nil
			if diff := cmp.Diff(want, rule); diff != "" {
				t.Errorf("%s (-want +got):\n%s", file, diff)
			}
		}
	}
}

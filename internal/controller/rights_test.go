package controller_test

import (
	"context"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/yaml"
)

// managerUser is who every manager of the suite is to the API server: somebody with the rights of
// config/rbac and no other.
const managerUser = "berthmaster"

// used are the rights that the suite's managers made use of.
var used = newRights()

// denied are the rights that those managers lacked that have all of config/rbac.
var denied = newRights()

// addManager makes the managers' user, with no right yet, and the role of config/rbac.
func addManager(ctx context.Context, environment *envtest.Environment) *rest.Config {
	GinkgoHelper()
	Expect(admin.Create(ctx, managerRole())).To(Succeed())
	user, err := environment.AddUser(envtest.User{Name: managerUser}, nil)
	Expect(err).NotTo(HaveOccurred())
	return user.Config()
}

// grantRights gives the managers' user the rights of config/rbac in one namespace, and none beyond it:
// what a manager run with --namespace has.
func grantRights(ctx context.Context, namespace string) {
	GinkgoHelper()
	Expect(admin.Create(ctx, &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: managerUser, Namespace: namespace},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: managerRole().Name},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: managerUser}},
	})).To(Succeed())
	inside := slices.DeleteFunc(managerRole().Rules, aboutNodes)
	untilAllowed(ctx, managerUser, namespace, inside[len(inside)-1])
}

func aboutNodes(rule rbacv1.PolicyRule) bool { return slices.Contains(rule.Resources, "nodes") }

// untilAllowed waits until the API server, which learns of roles and bindings a moment after they were made, lets
// a user do what a rule says. Empty namespace: what belongs to none.
func untilAllowed(ctx context.Context, user, namespace string, rule rbacv1.PolicyRule) {
	GinkgoHelper()
	Eventually(func(g Gomega) {
		review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
			User: user, ResourceAttributes: &authorizationv1.ResourceAttributes{Namespace: namespace, Verb: rule.Verbs[0], Group: rule.APIGroups[0]},
		}}
		attributes := review.Spec.ResourceAttributes
		attributes.Resource, attributes.Subresource, _ = strings.Cut(rule.Resources[0], "/")
		g.Expect(admin.Create(ctx, review)).To(Succeed())
		g.Expect(review.Status.Allowed).To(BeTrue(), "%s may %s %s in %q", user, rule.Verbs[0], rule.Resources[0], namespace)
	}).Should(Succeed())
}

// grantNodes gives the managers' user what config/rbac says about nodes, for as long as a spec runs.
func grantNodes(ctx context.Context, name string) {
	GinkgoHelper()
	role := managerRole()
	role.ObjectMeta = metav1.ObjectMeta{Name: name}
	role.Rules = slices.DeleteFunc(role.Rules, func(rule rbacv1.PolicyRule) bool { return !aboutNodes(rule) })
	Expect(role.Rules).NotTo(BeEmpty())
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: managerUser}},
	}
	for _, object := range []client.Object{role, binding} {
		Expect(admin.Create(ctx, object)).To(Succeed())
		DeferCleanup(func(ctx context.Context) { Expect(admin.Delete(ctx, object)).To(Succeed()) })
	}
	untilAllowed(ctx, managerUser, "", role.Rules[0])
}

func managerRole() *rbacv1.ClusterRole {
	GinkgoHelper()
	manifest, err := os.ReadFile(filepath.Join("..", "..", "config", "rbac", "role.yaml"))
	Expect(err).NotTo(HaveOccurred())
	role := &rbacv1.ClusterRole{}
	Expect(yaml.UnmarshalStrict(manifest, role)).To(Succeed())
	return role
}

// Every right is used, or it would be too many; none is missing, or the specs would not pass.
var _ = ReportAfterSuite("the manager has no right that it does not use", func(report Report) {
	selected := report.SuiteConfig
	if !report.SuiteSucceeded || len(selected.FocusStrings)+len(selected.SkipStrings) > 0 {
		return // specs that did not run, or did not end, have used nothing
	}
	var granted []string
	for _, rule := range managerRole().Rules {
		for _, resource := range rule.Resources {
			for _, verb := range rule.Verbs {
				granted = append(granted, verb+" "+resource)
			}
		}
	}
	Expect(used.list()).To(ConsistOf(granted))
	Expect(denied.list()).To(BeEmpty())
})

// rights are verbs on resources.
type rights struct {
	mu   sync.Mutex
	seen map[string]struct{} // guarded by mu; "verb resource[/subresource]"
}

func newRights() *rights { return &rights{seen: map[string]struct{}{}} }

func (r *rights) list() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var list []string
	for right := range r.seen {
		list = append(list, right)
	}
	slices.Sort(list)
	return list
}

// note takes down the right that a call needs; discovery needs none.
func (r *rights) note(request *http.Request) {
	_, path, namespaced := strings.Cut(request.URL.Path, "/namespaces/")
	parts := strings.Split(path, "/")
	if request.URL.Path == "/api/v1/nodes" {
		parts = []string{"", "nodes"}
	} else if !namespaced || len(parts) < 2 {
		return // every other list and watch of the suite is of one namespace
	}
	resource, named := parts[1], len(parts) > 2
	if len(parts) > 3 {
		resource += "/" + parts[3]
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.seen[verbOf(request, named)+" "+resource] = struct{}{}
	if request.URL.Query().Get("sendInitialEvents") != "" {
		// A watch that begins with the objects there are; older API servers have them listed.
		r.seen["list "+resource] = struct{}{}
	}
}

func verbOf(request *http.Request, named bool) string {
	switch {
	case request.Method == http.MethodPost:
		return "create"
	case request.Method == http.MethodGet && request.URL.Query().Get("watch") != "":
		return "watch"
	case request.Method == http.MethodGet && named:
		return "get"
	case request.Method == http.MethodGet:
		return "list"
	default:
		return strings.ToLower(request.Method)
	}
}

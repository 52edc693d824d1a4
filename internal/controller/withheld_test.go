package controller_test

import (
	"context"
	"fmt"
	"slices"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/berthmaster/berthmaster/api/v1alpha1"
)

// withheld is one right that a manager is to do without.
type withheld struct {
	rule int // in the manager's role
	verb string
	name string // "verb resource[/subresource]"
}

// everyRight lists the rights of the manager's role.
func everyRight(role *rbacv1.ClusterRole) []withheld {
	var list []withheld
	for i, rule := range role.Rules {
		for _, verb := range rule.Verbs {
			Expect(rule.Resources).To(HaveLen(1), "a rule of several resources would have to be taken apart")
			list = append(list, withheld{i, verb, verb + " " + rule.Resources[0]})
		}
	}
	return list
}

// userWithout makes a user who has every right of the manager's role but one.
func (h *house) userWithout(ctx context.Context, right withheld, n int) *rest.Config {
	GinkgoHelper()
	name := fmt.Sprintf("%s-without-%d", h.namespace, n)
	user, err := cluster.AddUser(envtest.User{Name: name}, nil)
	Expect(err).NotTo(HaveOccurred())
	subjects := []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: name}}
	role := managerRole()
	rule := &role.Rules[right.rule]
	rule.Verbs = slices.DeleteFunc(rule.Verbs, func(verb string) bool { return verb == right.verb })
	if len(rule.Verbs) == 0 {
		role.Rules = slices.Delete(role.Rules, right.rule, right.rule+1)
	}
	everywhere := slices.DeleteFunc(slices.Clone(role.Rules), func(rule rbacv1.PolicyRule) bool { return !aboutNodes(rule) })
	within := slices.DeleteFunc(slices.Clone(role.Rules), aboutNodes)
	named := metav1.ObjectMeta{Name: name}
	inside := metav1.ObjectMeta{Name: name, Namespace: h.namespace}
	for _, object := range []client.Object{
		&rbacv1.ClusterRole{ObjectMeta: named, Rules: everywhere},
		&rbacv1.ClusterRoleBinding{
			ObjectMeta: named, Subjects: subjects,
			RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name},
		},
		&rbacv1.Role{ObjectMeta: inside, Rules: within},
		&rbacv1.RoleBinding{
			ObjectMeta: inside, Subjects: subjects,
			RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: name},
		},
	} {
		Expect(admin.Create(ctx, object)).To(Succeed())
	}
	untilAllowed(ctx, name, "", everywhere[0])
	untilAllowed(ctx, name, h.namespace, within[0])
	return user.Config()
}

// toggle fences the senders and pauses the engines, and takes both back: the same news again and again.
func (h *house) toggle(ctx context.Context, n int) {
	access := []v1alpha1.SenderAccess{v1alpha1.SenderFenced, v1alpha1.SenderOpen}[n%2]
	pool := h.pool(ctx)
	before := pool.DeepCopy()
	pool.Spec.EngineMode = []v1alpha1.EngineMode{v1alpha1.EnginesPausedInPlace, v1alpha1.EnginesRunning}[n%2]
	for i := range pool.Spec.Senders {
		pool.Spec.Senders[i].Access = access
	}
	Expect(admin.Patch(ctx, pool, client.MergeFrom(before))).To(Succeed())
}

var _ = It("misses every one of its rights that it is denied", Serial, func(ctx context.Context) {
	h := openHouseWith(ctx, reachNodes)
	openNode(ctx)
	f := openFleet(ctx, h, 2)
	Expect(admin.Create(ctx, h.secretOf("key", ""))).To(Succeed())
	f.createPool(ctx, onCordon(v1alpha1.CordonMove), func(s *v1alpha1.InferencePoolSpec) {
		s.Backends.CredentialsSecretRef = &v1alpha1.CredentialsReference{Name: "sglang-keys"}
	})
	h.untilServing(ctx, 2)
	grant := h.acquire(request("s", 1))
	h.stop()
	// What the pod was is looked up by its name, under every term that follows.
	f.destroy(ctx, string(grant.Claim.Backend))

	h.start()
	h.untilBackend(ctx, string(grant.Claim.Backend), v1alpha1.BackendRetired, v1alpha1.ReasonPodMissing)
	h.stop()
	for n, right := range everyRight(managerRole()) {
		By("going without the right to " + right.name)
		h.user = h.userWithout(ctx, right, n)
		h.start()
		turn := 0
		Eventually(func() []string {
			h.toggle(ctx, turn)
			turn++
			return h.calls.denied.list()
		}).WithPolling(time.Second).Should(ContainElement(right.name), "the manager never missed it")
		Expect(h.calls.denied.list()).To(ConsistOf(right.name), "it lacks that one alone")
		h.stop()
	}
})

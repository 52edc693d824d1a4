package access_test

import (
	"bytes"
	"context"
	"os"
	"sync/atomic"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"github.com/berthmaster/berthmaster/internal/access"
	"github.com/berthmaster/berthmaster/internal/certs"
)

// clusterRoles reads those of a manifest.
func clusterRoles(path string) []*rbacv1.ClusterRole {
	GinkgoHelper()
	raw, err := os.ReadFile(path)
	Expect(err).NotTo(HaveOccurred())
	var roles []*rbacv1.ClusterRole
	for part := range bytes.SplitSeq(raw, []byte("\n---\n")) {
		role := &rbacv1.ClusterRole{}
		Expect(yaml.Unmarshal(part, role)).To(Succeed())
		if role.Kind == "ClusterRole" {
			roles = append(roles, role)
		}
	}
	return roles
}

var _ = Describe("the manager, with the rights of config/rbac", Ordered, func() {
	var reviewer access.Kubernetes

	BeforeAll(func(ctx context.Context) {
		reviewer = access.Kubernetes{Clients: manager}
		account(ctx, "rl", "worker")
		account(ctx, "rl", "stranger")
		_, err := admin.RbacV1().RoleBindings("rl").Create(ctx, &rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: "workers"}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "client"},
			Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Name: "worker", Namespace: "rl"}},
		}, metav1.CreateOptions{})
		Expect(err).NotTo(HaveOccurred())
	})

	It("knows a service account by its token, and when that ends", func(ctx context.Context) {
		who, known, err := reviewer.Identify(ctx, token(ctx, "rl", "worker"))
		Expect(err).NotTo(HaveOccurred())
		Expect(known).To(BeTrue())
		Expect(who.User).To(Equal("system:serviceaccount:rl:worker"))
		Expect(who.Groups).To(ContainElement("system:serviceaccounts:rl"))
		Expect(who.Expires).To(BeTemporally("~", time.Now().Add(10*time.Minute), 2*time.Minute))
	})

	It("does not know a token that was made up, or changed", func(ctx context.Context) {
		whole := token(ctx, "rl", "worker")
		for _, forged := range []string{"made-up", whole[:len(whole)-4] + "AAAA", whole + "x"} {
			_, known, err := reviewer.Identify(ctx, forged)
			Expect(err).NotTo(HaveOccurred())
			Expect(known).To(BeFalse())
		}
	})

	It("takes a token only for the audiences that it is told to", func(ctx context.Context) {
		narrow := access.Kubernetes{Clients: manager, Audiences: []string{"berthmaster"}}
		for _, c := range []struct {
			reviewer access.Kubernetes
			audience []string
			known    bool
		}{{narrow, []string{"berthmaster"}, true}, {narrow, nil, false}, {narrow, []string{"vault"}, false}, {reviewer, []string{"berthmaster"}, false}} {
			_, known, err := c.reviewer.Identify(ctx, token(ctx, "rl", "worker", c.audience...))
			Expect(err).NotTo(HaveOccurred())
			Expect(known).To(Equal(c.known), "audiences %v of the token, %v of the manager", c.audience, c.reviewer.Audiences)
		}
	})

	It("lets the bound worker take leases in its namespace, and nobody else", func(ctx context.Context) {
		create := access.Deed{Verb: "create", Namespace: "rl", Pool: "policy"}
		for _, c := range []struct {
			account string
			deed    access.Deed
			may     bool
		}{
			{"worker", create, true}, {"worker", access.Deed{Verb: "get", Namespace: "rl", Pool: "policy"}, true},
			{"worker", access.Deed{Verb: "delete", Namespace: "rl", Pool: "policy"}, false},
			{"worker", access.Deed{Verb: "create", Namespace: "default", Pool: "policy"}, false},
			{"worker", access.Deed{Verb: "get", Path: "/metrics"}, false}, {"stranger", create, false},
		} {
			who, _, err := reviewer.Identify(ctx, token(ctx, "rl", c.account))
			Expect(err).NotTo(HaveOccurred())
			may, err := reviewer.Permits(ctx, who, c.deed)
			Expect(err).NotTo(HaveOccurred())
			Expect(may).To(Equal(c.may), "%s: %+v", c.account, c.deed)
		}
	})

	It("publishes the authorities under their one name, in any namespace, and writes no other ConfigMap", func(ctx context.Context) {
		var h certs.Holder
		own := certs.SelfMade{Secrets: admin.CoreV1().Secrets("berthmaster-system"), Name: "serving", Names: []string{"localhost"}, Clock: time.Now}
		Expect(own.Load(ctx, &h)).To(Succeed())
		var places atomic.Pointer[[]certs.Place]
		place := func(pools ...types.UID) {
			var owners []metav1.OwnerReference
			for _, uid := range pools {
				owners = append(owners, metav1.OwnerReference{
					APIVersion: "inference.berthmaster.io/v1alpha1", Kind: "InferencePool", Name: "pool-" + string(uid), UID: uid,
				})
			}
			places.Store(&[]certs.Place{{Namespace: "rl", Owners: owners}, {Namespace: "default"}})
		}
		place("1", "2")
		publishing, stop := context.WithCancel(ctx)
		defer stop()
		done := make(chan struct{})
		go func() {
			defer GinkgoRecover()
			defer close(done)
			certs.Publisher{
				ConfigMaps: manager.CoreV1(), Name: "berthmaster-ca", Manager: "berthmaster", Clock: time.Now,
				Places: func(context.Context) ([]certs.Place, error) { return *places.Load(), nil },
			}.Follow(publishing, &h, time.Millisecond, func(err error) { Expect(err).NotTo(HaveOccurred()) })
		}()
		for _, namespace := range []string{"rl", "default"} {
			Eventually(func(g Gomega) {
				found, err := admin.CoreV1().ConfigMaps(namespace).Get(ctx, "berthmaster-ca", metav1.GetOptions{})
				g.Expect(err).NotTo(HaveOccurred())
				g.Expect(found.Data).To(HaveKeyWithValue("ca.crt", string(h.Bundle())))
			}).Should(Succeed())
		}
		owners := func(g Gomega) []types.UID {
			found, err := admin.CoreV1().ConfigMaps("rl").Get(ctx, "berthmaster-ca", metav1.GetOptions{})
			g.Expect(err).NotTo(HaveOccurred())
			var list []types.UID
			for _, owner := range found.OwnerReferences {
				list = append(list, owner.UID)
			}
			return list
		}
		Expect(owners(Default)).To(ConsistOf(types.UID("1"), types.UID("2")))
		place("2", "3")
		Eventually(owners).Should(ConsistOf(types.UID("2"), types.UID("3")))
		stop()
		<-done
		other := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "other"}}
		_, err := manager.CoreV1().ConfigMaps("rl").Create(ctx, other, metav1.CreateOptions{})
		Expect(apierrors.IsForbidden(err)).To(BeTrue(), "%v", err)
	})
})

package access_test

import (
	"bytes"
	"context"
	"net/netip"
	"os"
	"sync/atomic"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	"github.com/berthmaster/berthmaster/internal/access"
	"github.com/berthmaster/berthmaster/internal/apiserver"
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

	It("finds where the API server is, and no other Service's endpoints", func(ctx context.Context) {
		slices := admin.DiscoveryV1().EndpointSlices("default")
		_ = slices.Delete(ctx, "kubernetes", metav1.DeleteOptions{}) // an API server that is reached by loopback makes none
		for name, address := range map[string]string{"kubernetes": "10.0.0.5", "other": "10.0.0.6"} {
			slice := &discoveryv1.EndpointSlice{
				ObjectMeta: metav1.ObjectMeta{Name: name}, AddressType: discoveryv1.AddressTypeIPv4,
				Endpoints: []discoveryv1.Endpoint{{Addresses: []string{address}}}, Ports: []discoveryv1.EndpointPort{{Name: ptr.To("https"), Port: ptr.To[int32](6443)}},
			}
			_, err := slices.Create(ctx, slice, metav1.CreateOptions{})
			Expect(err).NotTo(HaveOccurred())
			DeferCleanup(func(ctx context.Context) error { return slices.Delete(ctx, name, metav1.DeleteOptions{}) })
		}
		at := apiserver.Addresses{Clients: manager}
		Expect(at.Read(ctx)).To(Succeed())
		Expect(at.Has(netip.MustParseAddrPort("10.0.0.5:6443"))).To(BeTrue())
		_, err := manager.DiscoveryV1().EndpointSlices("default").Get(ctx, "other", metav1.GetOptions{})
		Expect(apierrors.IsForbidden(err)).To(BeTrue(), "%v", err)
	})

	It("tells that it has no right to know where the API server is, if it has none", func(ctx context.Context) {
		account(ctx, "rl", "namespaced")
		own := rest.AnonymousClientConfig(config)
		own.BearerToken = token(ctx, "rl", "namespaced")
		clients, err := kubernetes.NewForConfig(own)
		Expect(err).NotTo(HaveOccurred())
		at := apiserver.Addresses{Clients: clients, Hosts: []string{"10.96.0.1:443"}}
		Expect(at.Read(ctx)).To(MatchError(apiserver.ErrNoRight))
		Expect(at.Has(netip.MustParseAddrPort("10.96.0.1:443"))).To(BeTrue())
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

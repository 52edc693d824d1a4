package controller_test

import (
	"context"
	"encoding/json"
	"net"
	"strconv"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/berthmaster/berthmaster/api/v1alpha1"
	"github.com/berthmaster/berthmaster/internal/enginesim"
	"github.com/berthmaster/berthmaster/internal/router"
)

// guarded makes an engine ask for keys.
func guarded(api, admin string) func(*enginesim.Config) {
	return func(c *enginesim.Config) { c.APIKey, c.AdminAPIKey = api, admin }
}

// secretOf is the secret that the pool names, with keys.
func (h *house) secretOf(api, admin string) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: "sglang-keys", Namespace: h.namespace},
		StringData: map[string]string{v1alpha1.CredentialsAPIKey: api, v1alpha1.CredentialsAdminAPIKey: admin},
	}
}

var _ = Describe("engines that ask for keys", func() {
	It("are served with those of the secret, also once they are rotated, and no key is told to anybody", func(ctx context.Context) {
		h := openHouse(ctx)
		at := net.JoinHostPort(address(0), strconv.Itoa(int(freePort(ctx))))
		_, stop := startEngine(at, guarded("first-api-key", "first-admin-key"))
		h.createPool(ctx, v1alpha1.BackendsSpec{
			Endpoints:            []v1alpha1.Endpoint{{Name: "a", URL: v1alpha1.EndpointURL("http://" + at)}},
			CredentialsSecretRef: &v1alpha1.CredentialsReference{Name: "sglang-keys"},
		}, func(s *v1alpha1.InferencePoolSpec) { s.Leases.StartSeconds = 1 })
		h.until(ctx, "the missing secret to be told of", func(s *v1alpha1.InferencePoolStatus) bool {
			return len(s.Backends) == 1 && s.Backends[0].State != v1alpha1.BackendServing &&
				s.Backends[0].Message == "spec.backends.credentialsSecretRef: the secret sglang-keys could not be read: NotFound"
		})

		Expect(admin.Create(ctx, h.secretOf("first-api-key", "first-admin-key"))).To(Succeed())
		h.untilServing(ctx, 1)
		// That an execution is dead is proven with the admin key and the other.
		grant := h.acquire(request("s", 1))
		h.release(grant, router.Ambiguous)
		ending, err := h.table().AwaitFate(ctx, grant.Claim)
		Expect(err).NotTo(HaveOccurred())
		Expect(ending.Fate).To(Equal(router.FateDead))

		stop()
		h.untilServing(ctx, 0)
		startEngine(at, guarded("second-api-key", "second-admin-key"))
		Expect(admin.Update(ctx, h.secretOf("second-api-key", "second-admin-key"))).To(Succeed())
		h.untilServing(ctx, 1)
		h.expectNoKeyTold(ctx)
	})
})

// expectNoKeyTold looks for keys in the status, the events and the log.
func (h *house) expectNoKeyTold(ctx context.Context) {
	GinkgoHelper()
	status, err := json.Marshal(h.pool(ctx).Status)
	Expect(err).NotTo(HaveOccurred())
	var list eventsv1.EventList
	Expect(admin.List(ctx, &list, client.InNamespace(h.namespace))).To(Succeed())
	Expect(list.Items).NotTo(BeEmpty())
	events, err := json.Marshal(list.Items)
	Expect(err).NotTo(HaveOccurred())
	log := CurrentSpecReport().CapturedGinkgoWriterOutput
	Expect(log).To(ContainSubstring("sglang-keys"), "the log is not what is looked at")
	for _, told := range []string{string(status), string(events), log} {
		Expect(told).NotTo(Or(ContainSubstring("first-a"), ContainSubstring("second-a")))
	}
}

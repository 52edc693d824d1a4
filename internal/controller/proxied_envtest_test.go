package controller_test

import (
	"context"
	"net"
	"strconv"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/berthmaster/berthmaster/api/v1alpha1"
	"github.com/berthmaster/berthmaster/internal/controller"
	"github.com/berthmaster/berthmaster/internal/router"
	"github.com/berthmaster/berthmaster/internal/sglang"
)

var _ = Describe("the transparent proxy", func() {
	It("goes by the spec of each pool and by the keys of its engines", func(ctx context.Context) {
		h := openHouse(ctx)
		proxied := func() controller.Proxied {
			return h.reconciler.Proxied(router.PoolKey{Namespace: h.namespace, Name: theName})
		}
		none := controller.Proxied{Control: v1alpha1.ProxyRefuse, Keyless: v1alpha1.KeylessNone}
		Expect(proxied()).To(Equal(none), "of a pool that does not exist")

		at := net.JoinHostPort(address(0), strconv.Itoa(int(freePort(ctx))))
		startEngine(at, guarded("an-api-key", "an-admin-key"))
		Expect(admin.Create(ctx, h.secretOf("an-api-key", "an-admin-key"))).To(Succeed())
		h.createPool(ctx, v1alpha1.BackendsSpec{
			Endpoints:            []v1alpha1.Endpoint{{Name: "a", URL: v1alpha1.EndpointURL("http://" + at)}},
			CredentialsSecretRef: &v1alpha1.CredentialsReference{Name: "sglang-keys"},
		})
		h.untilServing(ctx, 1)
		none.Keys = sglang.Keys{API: "an-api-key", Admin: "an-admin-key"}
		Expect(proxied()).To(Equal(none))

		h.changePool(ctx, func(s *v1alpha1.InferencePoolSpec) {
			s.Proxy = v1alpha1.ProxySpec{Control: v1alpha1.ProxyFanOut, Keyless: v1alpha1.KeylessAPIKey}
		})
		Eventually(proxied).Should(Equal(controller.Proxied{
			Control: v1alpha1.ProxyFanOut, Keyless: v1alpha1.KeylessAPIKey, Keys: none.Keys,
		}))
		h.changePool(ctx, func(s *v1alpha1.InferencePoolSpec) { s.Proxy = v1alpha1.ProxySpec{} })
		Eventually(proxied).Should(Equal(none))
	})
})

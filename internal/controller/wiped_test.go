package controller_test

import (
	"context"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/berthmaster/berthmaster/api/v1alpha1"
	"github.com/berthmaster/berthmaster/internal/router"
)

// wipe takes the whole status away, as a person can.
func (h *house) wipe(ctx context.Context) {
	GinkgoHelper()
	Eventually(func() error {
		pool := h.pool(ctx)
		pool.Status = v1alpha1.InferencePoolStatus{}
		return admin.Status().Update(ctx, pool)
	}).Should(Succeed())
}

var _ = Describe("a status that somebody wipes", func() {
	var (
		h *house
		f *fleet
	)
	BeforeEach(func(ctx context.Context) {
		h = openHouse(ctx)
		f = openFleet(ctx, h, 2)
	})

	It("is written again by the leader, with every fact that it had", func(ctx context.Context) {
		f.createPool(ctx)
		h.untilServing(ctx, 2)
		h.changePool(ctx, drainOf(v1alpha1.DrainSpec{Backend: "sglang-0"}))
		before := h.untilBackend(ctx, "sglang-0", v1alpha1.BackendDrained, v1alpha1.ReasonDrainRequested)
		h.wipe(ctx)
		h.untilTerm(ctx, 1)
		after := h.untilBackend(ctx, "sglang-0", v1alpha1.BackendDrained, v1alpha1.ReasonDrainRequested)
		Expect(after.DrainStartTime.Equal(before.DrainStartTime)).To(BeTrue())
		Expect(h.pool(ctx).Status.Router).To(Equal(&v1alpha1.RouterStatus{Name: "manager-0", Address: "127.0.0.1:8085"}))
	})

	It("does not give an endpoint another life", func(ctx context.Context) {
		h.createPool(ctx, v1alpha1.BackendsSpec{Endpoints: []v1alpha1.Endpoint{{Name: "a", URL: startEndpoint(ctx, 3)}}})
		h.until(ctx, "the endpoint to serve", serving("endpoint:a/1"))
		h.wipe(ctx)
		h.until(ctx, "the same life to serve", serving("endpoint:a/1"))
		Expect(h.pool(ctx).Status.Backends).To(HaveLen(1))
	})

	It("does not make a take-over believe that nothing ever ran", func(ctx context.Context) {
		f.createPool(ctx, strict, func(s *v1alpha1.InferencePoolSpec) { s.Leases.StartSeconds = 50 })
		h.untilServing(ctx, 2)
		h.release(h.acquire(request("s", 1)), router.Ambiguous)
		h.until(ctx, "the failure", func(s *v1alpha1.InferencePoolStatus) bool { return s.Failure != nil })
		h.changePool(ctx, func(s *v1alpha1.InferencePoolSpec) { s.Leases.StartSeconds = 10 })
		h.until(ctx, "the change", func(s *v1alpha1.InferencePoolStatus) bool { return s.StartSecondsHighWater == 50 })
		h.stop()
		h.wipe(ctx)
		h.start()
		h.untilTerm(ctx, 2)
		Eventually(h.unknown).Should(HaveLen(2))
		h.until(ctx, "the window and the failure", func(s *v1alpha1.InferencePoolStatus) bool {
			return s.StartSecondsHighWater == 50 && s.Failure != nil
		})
		_, err := h.table().Acquire(request("t", 1), time.Now())
		Expect(err).To(MatchError(router.ErrPoolFailed))
	})
})

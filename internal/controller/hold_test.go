package controller_test

import (
	"context"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/berthmaster/berthmaster/api/v1alpha1"
	"github.com/berthmaster/berthmaster/internal/router"
)

// leasing sets spec.leasing.
func leasing(to v1alpha1.Leasing) func(*v1alpha1.InferencePoolSpec) {
	return func(s *v1alpha1.InferencePoolSpec) { s.Leasing = to }
}

// answer is what a waiting client is told in the end.
type answer struct {
	grant router.Grant
	err   error
}

// await asks for a lease as a client does that waits for as long as it takes.
func (h *house) await(ctx context.Context, r router.Request) <-chan answer {
	GinkgoHelper()
	table, answers := h.table(), make(chan answer, 1)
	waiting := func() int { return table.Snapshot(time.Now()).Waiting }
	before := waiting()
	go func() {
		grant, err := table.AcquireWait(ctx, r, time.Now)
		answers <- answer{grant, err}
	}()
	Eventually(waiting).Should(Equal(before + 1))
	return answers
}

var _ = Describe("a hold", func() {
	It("is complete, in status, only when the last execution is gone; waiting clients get their leases once it ends", func(ctx context.Context) {
		h := openHouse(ctx)
		f := openFleet(ctx, h, 2)
		f.createPool(ctx)
		h.untilServing(ctx, 2)
		h.untilCondition(ctx, v1alpha1.ConditionHeld, metav1.ConditionFalse, v1alpha1.ReasonLeasingOpen)
		first, second := h.acquire(request("a", 1)), h.acquire(request("b", 1))

		h.changePool(ctx, leasing(v1alpha1.LeasingHeld))
		h.untilCondition(ctx, v1alpha1.ConditionHeld, metav1.ConditionFalse, v1alpha1.ReasonHolding)
		h.untilCondition(ctx, v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonLeasingHeld)
		_, err := h.table().Acquire(request("c", 1), time.Now())
		Expect(err).To(MatchError(router.ErrLeasingHeld))
		served := h.await(ctx, request("c", 2))
		_, err = h.table().Renew(first.Claim, router.Started, time.Now())
		Expect(err).NotTo(HaveOccurred(), "renew is served in every state")

		h.release(first, router.Succeeded)
		still := h.untilCondition(ctx, v1alpha1.ConditionHeld, metav1.ConditionFalse, v1alpha1.ReasonHolding)
		Expect(still.Message).To(ContainSubstring(string(second.Claim.Backend)))
		h.release(second, router.Succeeded)
		h.untilCondition(ctx, v1alpha1.ConditionHeld, metav1.ConditionTrue, v1alpha1.ReasonLeasingHeld)
		Eventually(h.eventsOf(ctx, "LeasingHeld")).Should(HaveLen(1))
		Expect(served).NotTo(Receive(), "nothing is granted during a hold")

		h.changePool(ctx, leasing(v1alpha1.LeasingOpen))
		var got answer
		Eventually(served).Should(Receive(&got))
		Expect(got.err).NotTo(HaveOccurred())
		h.untilCondition(ctx, v1alpha1.ConditionHeld, metav1.ConditionFalse, v1alpha1.ReasonLeasingOpen)
		h.untilCondition(ctx, v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonServing)
		h.release(got.grant, router.Succeeded)
		Eventually(h.eventsOf(ctx, "LeasingOpened")).Should(HaveLen(1))
	})
})

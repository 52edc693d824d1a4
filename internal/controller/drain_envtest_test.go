package controller_test

import (
	"context"
	"fmt"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/berthmaster/berthmaster/api/v1alpha1"
	"github.com/berthmaster/berthmaster/internal/router"
)

// drainOf asks for the drain of backends.
func drainOf(entries ...v1alpha1.DrainSpec) func(*v1alpha1.InferencePoolSpec) {
	return func(s *v1alpha1.InferencePoolSpec) { s.Drain = entries }
}

var _ = Describe("a drain", func() {
	var (
		h *house
		f *fleet
	)
	BeforeEach(func(ctx context.Context) {
		h = openHouse(ctx)
		f = openFleet(ctx, h, 2)
		f.createPool(ctx)
		h.untilServing(ctx, 2)
	})

	It("by name ends when nothing is counted there, and is undone by removing the entry", func(ctx context.Context) {
		grant := h.acquire(request("s", 1))
		name := string(grant.Claim.Backend)
		h.changePool(ctx, drainOf(v1alpha1.DrainSpec{Backend: name}))
		entry := h.untilBackend(ctx, name, v1alpha1.BackendDraining, v1alpha1.ReasonDrainRequested)
		Expect(entry.DrainStartTime).NotTo(BeNil())
		h.untilCondition(ctx, v1alpha1.ConditionDraining, metav1.ConditionTrue, v1alpha1.ReasonDrainsInProgress)
		Expect(h.acquire(request("s", 2)).Claim.Backend).NotTo(Equal(grant.Claim.Backend), "the session moves at its next turn")

		h.release(grant, router.Succeeded)
		drained := h.untilBackend(ctx, name, v1alpha1.BackendDrained, v1alpha1.ReasonDrainRequested)
		Expect(drained.DrainStartTime.Equal(entry.DrainStartTime)).To(BeTrue())
		h.untilCondition(ctx, v1alpha1.ConditionDraining, metav1.ConditionFalse, v1alpha1.ReasonAllDrained)

		h.changePool(ctx, drainOf())
		h.untilServing(ctx, 2)
		Expect(h.untilBackend(ctx, name, v1alpha1.BackendServing, "").DrainStartTime).To(BeNil())
	})

	It("that keeps sessions lets them come back and ends with them", func(ctx context.Context) {
		grant := h.acquire(request("s", 1))
		name := string(grant.Claim.Backend)
		h.changePool(ctx, drainOf(v1alpha1.DrainSpec{Backend: name, Sessions: v1alpha1.DrainKeep}))
		h.untilBackend(ctx, name, v1alpha1.BackendDraining, v1alpha1.ReasonDrainRequested)
		h.release(grant, router.Succeeded)
		again := h.acquire(request("s", 2))
		Expect(again.Claim.Backend).To(BeEquivalentTo(name))
		Expect(h.acquire(request("new", 1)).Claim.Backend).NotTo(BeEquivalentTo(name))
		h.release(again, router.Succeeded)
		Expect(h.table().EndSession("s", "train", time.Now())).To(Succeed())
		h.untilBackend(ctx, name, v1alpha1.BackendDrained, v1alpha1.ReasonDrainRequested)
	})

	It("is started by the pod's annotation", func(ctx context.Context) {
		f.annotate(ctx, "sglang-0", v1alpha1.AnnotationDrain, "Move")
		h.untilBackend(ctx, "sglang-0", v1alpha1.BackendDrained, v1alpha1.ReasonDrainAnnotation)
		Expect(h.acquire(request("s", 1)).Claim.Backend).To(BeEquivalentTo("sglang-1"))
		f.annotate(ctx, "sglang-0", v1alpha1.AnnotationDrain, "")
		h.untilServing(ctx, 2)
	})

	It("is started by the pod's deletion, before the pod is gone", func(ctx context.Context) {
		f.beginToDelete(ctx, "sglang-0")
		h.untilBackend(ctx, "sglang-0", v1alpha1.BackendDrained, v1alpha1.ReasonPodDeleted)
		for turn := range 4 {
			Expect(h.acquire(request("s", turn)).Claim.Backend).To(BeEquivalentTo("sglang-1"))
		}
	})

	It("past its deadline only says so, if it is to wait", func(ctx context.Context) {
		grant := h.acquire(request("s", 1))
		name := string(grant.Claim.Backend)
		h.changePool(ctx, drainOf(v1alpha1.DrainSpec{Backend: name, DeadlineSeconds: 1, OnDeadline: v1alpha1.DeadlineWait}))
		h.untilBackend(ctx, name, v1alpha1.BackendDraining, v1alpha1.ReasonDeadlineExceeded)
		h.untilCondition(ctx, v1alpha1.ConditionDraining, metav1.ConditionTrue, v1alpha1.ReasonDrainsLate)
		Expect(h.outstanding(grant.Claim.Incarnation)).To(BeEquivalentTo(1))
	})

	It("past its deadline aborts on the engine what is left there", func(ctx context.Context) {
		grant := h.acquire(request("s", 1))
		name := string(grant.Claim.Backend)
		reply := generate(ctx, grant)
		h.changePool(ctx, drainOf(v1alpha1.DrainSpec{Backend: name, DeadlineSeconds: 1, OnDeadline: v1alpha1.DeadlineAbort}))
		Eventually(reply).Should(Receive(Equal("abort")), "the engine ends the generation itself")
		h.release(grant, router.Aborted)
		h.untilBackend(ctx, name, v1alpha1.BackendDrained, v1alpha1.ReasonDeadlineExceeded)
	})

	It("of a name that the pool does not have ends with a reason of its own", func(ctx context.Context) {
		h.changePool(ctx, drainOf(v1alpha1.DrainSpec{Backend: "nobody"}))
		h.untilBackend(ctx, "nobody", v1alpha1.BackendDrained, v1alpha1.ReasonBackendNotFound)
	})

	It("of a backend that crash-loops ends with a reason of its own, and covers its next life", func(ctx context.Context) {
		grant := h.acquire(request("s", 1))
		name := string(grant.Claim.Backend)
		h.changePool(ctx, drainOf(v1alpha1.DrainSpec{Backend: name}))
		h.untilBackend(ctx, name, v1alpha1.BackendDraining, v1alpha1.ReasonDrainRequested)
		f.reportCrashLoop(ctx, name)
		h.untilBackend(ctx, name, v1alpha1.BackendDrained, v1alpha1.ReasonCrashLooping)
		Expect(h.outstanding(grant.Claim.Incarnation)).To(BeZero())
		h.changePool(ctx, drainOf())
		h.untilBackend(ctx, name, v1alpha1.BackendPending, v1alpha1.ReasonCrashLooping)
	})

	It("of a backend that disappears ends once nothing of it can be running, with a reason of its own", func(ctx context.Context) {
		grant := h.acquire(request("s", 1))
		name := string(grant.Claim.Backend)
		h.changePool(ctx, drainOf(v1alpha1.DrainSpec{Backend: name}))
		began := h.untilBackend(ctx, name, v1alpha1.BackendDraining, v1alpha1.ReasonDrainRequested)
		f.destroy(ctx, name)
		entry := h.untilBackend(ctx, name, v1alpha1.BackendDraining, v1alpha1.ReasonPodMissing)
		Consistently(func(g Gomega) {
			g.Expect(h.pool(ctx).Status.Backends).To(ContainElement(And(HaveField("Name", name), HaveField("State", v1alpha1.BackendDraining))))
			g.Expect(h.outstanding(grant.Claim.Incarnation)).To(BeEquivalentTo(1))
		}).WithTimeout(2*time.Second).Should(Succeed(), "a pod that somebody deleted by force proves nothing")
		h.untilCondition(ctx, v1alpha1.ConditionDraining, metav1.ConditionTrue, v1alpha1.ReasonDrainsInProgress)

		h.changePool(ctx, func(s *v1alpha1.InferencePoolSpec) {
			s.ConfirmedGone = []v1alpha1.Incarnation{v1alpha1.Incarnation(entry.Incarnation)}
		})
		gone := h.untilBackend(ctx, name, v1alpha1.BackendDrained, v1alpha1.ReasonBackendGone)
		Expect(gone.DrainStartTime.Equal(began.DrainStartTime)).To(BeTrue())
		h.untilCondition(ctx, v1alpha1.ConditionDraining, metav1.ConditionFalse, v1alpha1.ReasonAllDrained)
	})

	It("of a pod whose node is lost is not over because the pod was deleted by force", func(ctx context.Context) {
		grant := h.acquire(request("s", 1))
		name := string(grant.Claim.Backend)
		f.kills[name]() // nobody answers there any more, either
		f.destroy(ctx, name)
		h.untilBackend(ctx, name, v1alpha1.BackendRetired, v1alpha1.ReasonPodMissing)
		h.changePool(ctx, drainOf(v1alpha1.DrainSpec{Backend: name}))
		h.untilBackend(ctx, name, v1alpha1.BackendDraining, v1alpha1.ReasonPodMissing)
		h.changePool(ctx, drainOf())
		h.changePool(ctx, access("train", v1alpha1.SenderFenced))
		h.untilCondition(ctx, v1alpha1.ConditionSendersFenced, metav1.ConditionFalse, v1alpha1.ReasonFencing)
		Expect(h.outstanding(grant.Claim.Incarnation)).To(BeEquivalentTo(1))
	})

	It("covers the next incarnation of the name and keeps its start", func(ctx context.Context) {
		h.changePool(ctx, drainOf(v1alpha1.DrainSpec{Backend: "sglang-0"}))
		first := h.untilBackend(ctx, "sglang-0", v1alpha1.BackendDrained, v1alpha1.ReasonDrainRequested)
		pod := f.pod(ctx, "sglang-0")
		f.reportRunning(ctx, pod, address(0), "containerd://"+string(pod.UID)+"-1")
		var second v1alpha1.BackendStatus
		h.until(ctx, "the next incarnation to be drained", func(s *v1alpha1.InferencePoolStatus) bool {
			for _, entry := range s.Backends {
				if entry.Name == "sglang-0" && entry.Incarnation != first.Incarnation && entry.State == v1alpha1.BackendDrained {
					second = entry
					return true
				}
			}
			return false
		})
		Expect(second.DrainStartTime.Equal(first.DrainStartTime)).To(BeTrue())
	})

	It("of one entry, applied by an owner of its own, leaves the other entries alone", func(ctx context.Context) {
		for i, name := range []string{"sglang-0", "sglang-1"} {
			h.applyDrain(ctx, fmt.Sprintf("owner-%d", i), name)
		}
		h.until(ctx, "both to be drained", func(s *v1alpha1.InferencePoolStatus) bool { return s.Summary.Draining == 2 })
		h.applyDrain(ctx, "owner-0")
		h.untilServing(ctx, 1)
		h.untilBackend(ctx, "sglang-1", v1alpha1.BackendDrained, v1alpha1.ReasonDrainRequested)
	})
})

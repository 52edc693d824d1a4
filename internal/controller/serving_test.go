package controller_test

import (
	"context"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/berthmaster/berthmaster/api/v1alpha1"
	"github.com/berthmaster/berthmaster/internal/router"
)

var _ = Describe("a pool over pods", func() {
	var h *house
	BeforeEach(func(ctx context.Context) { h = openHouse(ctx) })

	It("serves on every ready pod that the selector finds, and says so", func(ctx context.Context) {
		f := openFleet(ctx, h, 3)
		f.createPool(ctx)
		status := h.untilServing(ctx, 3)
		h.untilCondition(ctx, v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonServing)
		h.untilCondition(ctx, v1alpha1.ConditionBackendsAvailable, metav1.ConditionTrue, v1alpha1.ReasonAllServing)
		Expect(status.Summary).To(HaveField("Ready", "3/3"))
		Expect(status.Summary.Capacity).To(BeEquivalentTo(3 * engineCapacity))
		Expect(status.Term).To(BeEquivalentTo(1))
		Expect(status.Epoch).To(BeEquivalentTo(1))
		Expect(status.StartSecondsHighWater).To(BeEquivalentTo(30))

		pod := f.pod(ctx, "sglang-1")
		entry := h.untilBackend(ctx, "sglang-1", v1alpha1.BackendServing, "")
		Expect(entry.Incarnation).To(Equal(string(pod.UID) + "/" + pod.Status.ContainerStatuses[0].ContainerID))
		Expect(entry.WeightVersion).To(Equal("default"))

		grant := h.acquire(request("s", 1))
		Expect(grant.URL).To(HavePrefix("http://127.0.77."))
		Expect(grant.Claim.Term).To(BeEquivalentTo(1))
	})

	It("says NoBackends while the selector matches nothing, and refuses leases at once", func(ctx context.Context) {
		f := &fleet{house: h, port: 30000}
		f.createPool(ctx)
		h.untilCondition(ctx, v1alpha1.ConditionBackendsAvailable, metav1.ConditionFalse, v1alpha1.ReasonNoBackends)
		h.untilCondition(ctx, v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonNoBackends)
		_, err := h.table().Acquire(request("s", 1), time.Now())
		Expect(err).To(MatchError(router.ErrNoBackend))
	})

	It("takes no pod of another namespace", func(ctx context.Context) {
		other := openHouse(ctx)
		openFleet(ctx, other, 1)
		f := &fleet{house: h, port: 30000}
		f.createPool(ctx)
		h.untilCondition(ctx, v1alpha1.ConditionBackendsAvailable, metav1.ConditionFalse, v1alpha1.ReasonNoBackends)
		Expect(h.pool(ctx).Status.Backends).To(BeEmpty())
	})

	It("does not use a pod that is not ready", func(ctx context.Context) {
		f := openFleet(ctx, h, 2)
		f.createPool(ctx)
		h.untilServing(ctx, 2)
		f.reportReady(ctx, "sglang-0", corev1.ConditionFalse)
		h.untilBackend(ctx, "sglang-0", v1alpha1.BackendPending, v1alpha1.ReasonPodNotReady)
		h.untilCondition(ctx, v1alpha1.ConditionBackendsAvailable, metav1.ConditionTrue, v1alpha1.ReasonSomeServing)
		f.reportReady(ctx, "sglang-0", corev1.ConditionTrue)
		h.untilServing(ctx, 2)
	})

	It("lets the capacity annotation of a pod win, and uses no pod whose annotation makes no sense", func(ctx context.Context) {
		f := openFleet(ctx, h, 1)
		f.createPool(ctx)
		h.untilServing(ctx, 1)
		f.annotate(ctx, "sglang-0", v1alpha1.AnnotationCapacity, "3")
		h.until(ctx, "the annotated capacity", func(s *v1alpha1.InferencePoolStatus) bool { return s.Summary.Capacity == 3 })
		f.annotate(ctx, "sglang-0", v1alpha1.AnnotationCapacity, "many")
		h.untilBackend(ctx, "sglang-0", v1alpha1.BackendPending, v1alpha1.ReasonInvalidCapacityAnnotation)
		f.annotate(ctx, "sglang-0", v1alpha1.AnnotationCapacity, "")
		h.until(ctx, "the engine's capacity", func(s *v1alpha1.InferencePoolStatus) bool { return s.Summary.Capacity == engineCapacity })
	})

	It("uses the capacity that the spec fixes", func(ctx context.Context) {
		f := openFleet(ctx, h, 1)
		f.createPool(ctx, func(s *v1alpha1.InferencePoolSpec) {
			s.Backends.Capacity = v1alpha1.CapacitySpec{Source: v1alpha1.CapacityFixed, Value: 5}
		})
		Expect(h.untilServing(ctx, 1).Summary.Capacity).To(BeEquivalentTo(5))
	})

	It("takes no new lease to an engine that refuses connections, and says why", func(ctx context.Context) {
		f := openFleet(ctx, h, 2)
		f.createPool(ctx)
		h.untilServing(ctx, 2)
		f.kills["sglang-0"]()
		h.untilBackend(ctx, "sglang-0", v1alpha1.BackendUnhealthy, v1alpha1.ReasonConnectionRefused)
		for turn := range 4 {
			Expect(h.acquire(request("s", turn)).Claim.Backend).To(BeEquivalentTo("sglang-1"))
		}
	})

	It("forgets a pool that is deleted in use, and begins anew with one of the same name", func(ctx context.Context) {
		f := openFleet(ctx, h, 1)
		f.createPool(ctx)
		h.untilServing(ctx, 1)
		old := h.table()
		h.acquire(request("s", 1))
		Expect(admin.Delete(ctx, h.pool(ctx))).To(Succeed())
		Eventually(func() bool {
			_, found := h.pools.Get(router.PoolKey{Namespace: h.namespace, Name: theName})
			return found
		}).Should(BeFalse())
		f.createPool(ctx)
		// The engine served another pool, which may have left something running there.
		h.until(ctx, "the new pool's first term", func(s *v1alpha1.InferencePoolStatus) bool { return s.Term == 1 })
		Expect(h.table()).NotTo(BeIdenticalTo(old))
		Eventually(func() bool {
			snapshot := h.table().Snapshot(time.Now())
			return len(snapshot.Backends) == 1 && snapshot.Backends[0].UnknownLoad
		}).Should(BeTrue())
	})

	// No election is on here: with one, its renewals are all that is left.
	It("asks nothing of the API server for a minute in which nothing changes", func(ctx context.Context) {
		f := openFleet(ctx, h, 4)
		f.createPool(ctx, func(s *v1alpha1.InferencePoolSpec) {
			s.Drain = []v1alpha1.DrainSpec{{Backend: "sglang-1"}, {Backend: "nobody"}, {Backend: "sglang-2", DeadlineSeconds: 3600}}
			s.Senders[1].Access = v1alpha1.SenderFenced
		})
		h.endpointPool(ctx, "of-nobody", "http://127.0.77.250:1", 1)
		h.untilServing(ctx, 2)
		f.reportReady(ctx, "sglang-3", corev1.ConditionFalse)
		h.untilServing(ctx, 1)
		grant := h.acquire(request("s", 1))
		Expect(h.release(grant, router.Succeeded).Settled).To(BeTrue())
		h.acquire(request("s", 2))
		h.untilCondition(ctx, v1alpha1.ConditionSendersFenced, metav1.ConditionTrue, v1alpha1.ReasonFenced)
		h.untilCondition(ctx, v1alpha1.ConditionDraining, metav1.ConditionFalse, v1alpha1.ReasonAllDrained)
		var before int64
		Eventually(func() bool { // the last events and merged writes are out
			last := before
			before = h.calls.all.Load()
			return last == before
		}).WithPolling(2 * time.Second).Should(BeTrue())
		Consistently(h.calls.all.Load).WithTimeout(time.Minute).WithPolling(time.Second).Should(Equal(before))
	})

	It("merges what changes fast to one status write a second", func(ctx context.Context) {
		f := openFleet(ctx, h, 2)
		f.createPool(ctx)
		h.untilServing(ctx, 2)
		began, before := time.Now(), h.calls.statusWrites.Load()
		for i := range 40 {
			f.annotate(ctx, "sglang-0", v1alpha1.AnnotationCapacity, string(rune('1'+i%2)))
		}
		f.annotate(ctx, "sglang-0", v1alpha1.AnnotationCapacity, "7")
		h.until(ctx, "the last capacity", func(s *v1alpha1.InferencePoolStatus) bool {
			return s.Summary.Capacity == 7+engineCapacity
		})
		writes, took := h.calls.statusWrites.Load()-before, time.Since(began)
		Expect(writes).To(BeNumerically("<=", int64(took/time.Second)+2), "%d writes in %s", writes, took)
	})
})

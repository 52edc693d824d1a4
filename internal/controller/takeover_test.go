package controller_test

import (
	"context"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/berthmaster/berthmaster/api/v1alpha1"
	"github.com/berthmaster/berthmaster/internal/router"
)

// unknown lists the incarnations on which executions of earlier terms may run.
func (h *house) unknown() []router.Incarnation {
	var list []router.Incarnation
	for _, b := range h.table().Snapshot(time.Now()).Backends {
		if b.UnknownLoad {
			list = append(list, b.Incarnation)
		}
	}
	return list
}

// untilTerm waits until the manager that runs now has written its term.
func (h *house) untilTerm(ctx context.Context, term int64) {
	GinkgoHelper()
	h.until(ctx, "the next term", func(s *v1alpha1.InferencePoolStatus) bool { return s.Term == term })
}

var _ = Describe("a manager that takes a pool over", func() {
	var (
		h *house
		f *fleet
	)
	BeforeEach(func(ctx context.Context) {
		h = openHouse(ctx)
		f = openFleet(ctx, h, 2)
	})

	It("raises the term, knows no load of before, and trusts engines that began after it", func(ctx context.Context) {
		f.createPool(ctx)
		h.untilServing(ctx, 2)
		Expect(h.unknown()).To(BeEmpty(), "nothing can run in a pool's first term")
		h.stop()
		h.start()
		h.untilTerm(ctx, 2)
		Eventually(h.unknown).Should(HaveLen(2))
		young := f.boot(ctx, "sglang-2", 2)
		h.untilServing(ctx, 3)
		for _, old := range h.unknown() {
			Expect(string(old)).NotTo(HavePrefix(string(young.UID)))
		}
	})

	It("reads a failure before it grants", func(ctx context.Context) {
		f.createPool(ctx, strict)
		h.untilServing(ctx, 2)
		grant := h.acquire(request("s", 1))
		h.release(grant, router.Ambiguous)
		_, err := h.table().AwaitFate(ctx, grant.Claim)
		Expect(err).NotTo(HaveOccurred())
		before := h.pool(ctx).Status.Failure
		h.stop()
		h.start()
		h.untilTerm(ctx, 2)
		Eventually(func() error { // the term is in status a moment before the router learns of it
			_, err := h.table().Acquire(request("t", 1), time.Now())
			Expect(err).To(HaveOccurred())
			return err
		}).Should(MatchError(router.ErrPoolFailed))
		h.untilCondition(ctx, v1alpha1.ConditionFailed, metav1.ConditionTrue, v1alpha1.ReasonAmbiguousExecution)
		after := h.pool(ctx).Status.Failure
		Expect(after.RequestID).To(Equal(before.RequestID))
		Expect(after.Time.Equal(&before.Time)).To(BeTrue())
	})

	It("goes on with drains from where they began", func(ctx context.Context) {
		f.createPool(ctx)
		h.untilServing(ctx, 2)
		h.changePool(ctx, drainOf(v1alpha1.DrainSpec{Backend: "sglang-0"}))
		before := h.untilBackend(ctx, "sglang-0", v1alpha1.BackendDrained, v1alpha1.ReasonDrainRequested)
		h.stop()
		h.start()
		h.untilTerm(ctx, 2)
		after := h.untilBackend(ctx, "sglang-0", v1alpha1.BackendDraining, v1alpha1.ReasonDrainRequested)
		Expect(after.DrainStartTime.Equal(before.DrainStartTime)).To(BeTrue())
	})

	It("remembers an incarnation whose pod went while nobody looked", func(ctx context.Context) {
		f.createPool(ctx)
		h.untilServing(ctx, 2)
		h.acquire(request("s", 1))
		h.stop()
		f.destroy(ctx, "sglang-0")
		h.start()
		h.untilTerm(ctx, 2)
		entry := h.untilBackend(ctx, "sglang-0", v1alpha1.BackendRetired, v1alpha1.ReasonPodMissing)
		Expect(h.unknown()).To(ContainElement(router.Incarnation(entry.Incarnation)))
		h.changePool(ctx, func(s *v1alpha1.InferencePoolSpec) {
			s.ConfirmedGone = []v1alpha1.Incarnation{v1alpha1.Incarnation(entry.Incarnation)}
		})
		h.until(ctx, "the incarnation to be gone", func(s *v1alpha1.InferencePoolStatus) bool { return len(s.Backends) == 1 })
	})

	It("sees that a container was replaced while nobody looked", func(ctx context.Context) {
		f.createPool(ctx)
		h.untilServing(ctx, 2)
		old := h.untilBackend(ctx, "sglang-0", v1alpha1.BackendServing, "")
		h.stop()
		pod := f.pod(ctx, "sglang-0")
		f.reportRunning(ctx, pod, address(0), "containerd://"+string(pod.UID)+"-1")
		h.start()
		h.untilTerm(ctx, 2)
		h.until(ctx, "two backends", func(s *v1alpha1.InferencePoolStatus) bool { return len(s.Backends) == 2 })
		Expect(h.unknown()).NotTo(ContainElement(router.Incarnation(old.Incarnation)))
	})

	It("keeps an isolated backend out of service", func(ctx context.Context) {
		f.createPool(ctx, isolating, func(s *v1alpha1.InferencePoolSpec) { s.Leases.StartSeconds, s.Leases.TTLSeconds = 3600, 3600 })
		h.untilServing(ctx, 2)
		grant := h.acquire(request("s", 1))
		h.release(grant, router.Ambiguous)
		_, err := h.table().AwaitFate(ctx, grant.Claim)
		Expect(err).NotTo(HaveOccurred())
		h.stop()
		h.start()
		h.untilTerm(ctx, 2)
		name := string(grant.Claim.Backend)
		entry := h.untilBackend(ctx, name, v1alpha1.BackendIsolated, v1alpha1.ReasonExecutionUncertain)
		for turn := range 4 {
			var next router.Grant
			Eventually(func() (err error) {
				next, err = h.table().Acquire(request("t", turn), time.Now())
				return err
			}).Should(Succeed())
			Expect(next.Claim.Backend).NotTo(BeEquivalentTo(name))
		}
		f.reportTerminated(ctx, name)
		h.until(ctx, "no isolation", func(s *v1alpha1.InferencePoolStatus) bool {
			for i := range s.Backends {
				if s.Backends[i].IsolationStartTime != nil {
					return false
				}
			}
			return true
		})
		Expect(entry.IsolationStartTime).NotTo(BeNil())
	})

	It("waits out the longest start window of earlier terms", func(ctx context.Context) {
		f.createPool(ctx, func(s *v1alpha1.InferencePoolSpec) { s.Leases.StartSeconds = 50 })
		h.untilServing(ctx, 2)
		h.changePool(ctx, func(s *v1alpha1.InferencePoolSpec) { s.Leases.StartSeconds = 10 })
		h.until(ctx, "the change", func(s *v1alpha1.InferencePoolStatus) bool { return s.StartSecondsHighWater == 50 })
		h.stop()
		h.start()
		h.untilTerm(ctx, 2)
		Expect(h.pool(ctx).Status.StartSecondsHighWater).To(BeEquivalentTo(50))
	})
})

var _ = Describe("a manager that meets a higher term", func() {
	It("stops granting and writes nothing any more", func(ctx context.Context) {
		h := openHouse(ctx)
		f := openFleet(ctx, h, 1)
		f.createPool(ctx)
		h.untilServing(ctx, 1)
		table := h.table()
		pool := h.pool(ctx)
		Expect(admin.Status().Patch(ctx, pool, client.RawPatch("application/merge-patch+json", []byte(`{"status":{"term":7}}`)))).To(Succeed())
		Eventually(func() error {
			_, err := table.Acquire(request("s", int(time.Now().UnixNano())), time.Now())
			return err
		}).Should(MatchError(router.ErrNoLeader))
		version := h.pool(ctx).ResourceVersion
		h.changePool(ctx, func(s *v1alpha1.InferencePoolSpec) { s.Epoch = 2 })
		changed := h.pool(ctx)
		Expect(changed.ResourceVersion).NotTo(Equal(version))
		Consistently(func() string { return h.pool(ctx).ResourceVersion }).WithTimeout(2 * time.Second).Should(Equal(changed.ResourceVersion))
		Expect(changed.Status.Term).To(BeEquivalentTo(7))
	})
})

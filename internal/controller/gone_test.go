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

var _ = Describe("what is counted on an engine", func() {
	var (
		h     *house
		f     *fleet
		grant router.Grant
	)
	// Every spec begins with one engine and one execution counted on it.
	BeforeEach(func(ctx context.Context) {
		h = openHouse(ctx)
		f = openFleet(ctx, h, 1)
		f.createPool(ctx)
		h.untilServing(ctx, 1)
		grant = h.acquire(request("s", 1))
		Expect(h.outstanding(grant.Claim.Incarnation)).To(BeEquivalentTo(1))
	})
	untilFreed := func() {
		GinkgoHelper()
		Eventually(func() int64 { return h.outstanding(grant.Claim.Incarnation) }).Should(BeZero())
	}
	staysCounted := func() {
		GinkgoHelper()
		Consistently(func() int64 { return h.outstanding(grant.Claim.Incarnation) }).WithTimeout(2 * time.Second).Should(BeEquivalentTo(1))
	}

	It("is dead once the kubelet reports the container terminated", func(ctx context.Context) {
		f.kills["sglang-0"]()
		f.reportTerminated(ctx, "sglang-0")
		untilFreed()
		h.untilBackend(ctx, "sglang-0", v1alpha1.BackendPending, v1alpha1.ReasonProcessEnded)
		ending, err := h.table().AwaitFate(ctx, grant.Claim)
		Expect(err).NotTo(HaveOccurred())
		Expect(ending.Fate).To(Equal(router.FateDead))
		h.untilCondition(ctx, v1alpha1.ConditionFailed, metav1.ConditionFalse, v1alpha1.ReasonNotFailed)
	})

	It("is dead once the kubelet reports a later container in the same pod", func(ctx context.Context) {
		pod := f.pod(ctx, "sglang-0")
		f.reportRunning(ctx, pod, address(0), "containerd://"+string(pod.UID)+"-1")
		untilFreed()
		next := string(pod.UID) + "/containerd://" + string(pod.UID) + "-1"
		h.until(ctx, "the later container to serve", serving(next))
		Expect(h.acquire(request("s", 2)).Claim.Incarnation).To(BeEquivalentTo(next))
	})

	It("is dead when its pod has failed, which is no backend any more", func(ctx context.Context) {
		f.reportTerminated(ctx, "sglang-0")
		f.report(ctx, "sglang-0", func(status *corev1.PodStatus) { status.Phase = corev1.PodFailed })
		untilFreed()
		h.until(ctx, "no backend", func(s *v1alpha1.InferencePoolStatus) bool { return len(s.Backends) == 0 && s.Summary.Backends == 0 })
	})

	It("is dead when the last state of a deleted pod shows the container terminated", func(ctx context.Context) {
		f.kills["sglang-0"]()
		f.reportTerminated(ctx, "sglang-0")
		f.destroy(ctx, "sglang-0")
		untilFreed()
		h.until(ctx, "no backend", func(s *v1alpha1.InferencePoolStatus) bool { return len(s.Backends) == 0 })
		h.untilCondition(ctx, v1alpha1.ConditionBackendsAvailable, metav1.ConditionFalse, v1alpha1.ReasonNoBackends)
	})

	It("stays counted when the pod object is gone without a word, until a person vouches for it", func(ctx context.Context) {
		f.kills["sglang-0"]()
		f.destroy(ctx, "sglang-0")
		entry := h.untilBackend(ctx, "sglang-0", v1alpha1.BackendRetired, v1alpha1.ReasonPodMissing)
		Expect(entry.URL).To(BeEmpty(), "another engine may answer there by now")
		staysCounted()
		h.changePool(ctx, func(s *v1alpha1.InferencePoolSpec) {
			s.ConfirmedGone = []v1alpha1.Incarnation{v1alpha1.Incarnation(entry.Incarnation)}
		})
		untilFreed()
		h.until(ctx, "no backend", func(s *v1alpha1.InferencePoolStatus) bool { return len(s.Backends) == 0 })
	})

	It("stays counted when a new pod takes the name", func(ctx context.Context) {
		f.kills["sglang-0"]()
		f.destroy(ctx, "sglang-0")
		f.boot(ctx, "sglang-0", 1)
		h.untilServing(ctx, 1)
		h.untilBackend(ctx, "sglang-0", v1alpha1.BackendRetired, v1alpha1.ReasonPodMissing)
		staysCounted()
		Expect(h.pool(ctx).Status.Summary.Ready).To(Equal("1/1"))
	})

	It("stays counted when the engine refuses connections", func(ctx context.Context) {
		f.kills["sglang-0"]()
		h.untilBackend(ctx, "sglang-0", v1alpha1.BackendUnhealthy, v1alpha1.ReasonConnectionRefused)
		staysCounted()
	})

	It("stays counted when the spec selects the pod no more, and can still end", func(ctx context.Context) {
		h.changePool(ctx, func(s *v1alpha1.InferencePoolSpec) {
			s.Backends.Selector.MatchLabels = map[string]v1alpha1.LabelValue{"app": "other"}
		})
		h.untilBackend(ctx, "sglang-0", v1alpha1.BackendRetired, v1alpha1.ReasonNotSelected)
		staysCounted()
		h.release(grant, router.Succeeded)
		h.until(ctx, "no backend", func(s *v1alpha1.InferencePoolStatus) bool { return len(s.Backends) == 0 })
	})

	It("is dead when an unselected pod's container ends", func(ctx context.Context) {
		h.changePool(ctx, func(s *v1alpha1.InferencePoolSpec) {
			s.Backends.Selector.MatchLabels = map[string]v1alpha1.LabelValue{"app": "other"}
		})
		h.untilBackend(ctx, "sglang-0", v1alpha1.BackendRetired, v1alpha1.ReasonNotSelected)
		f.reportTerminated(ctx, "sglang-0")
		untilFreed()
		h.until(ctx, "no backend", func(s *v1alpha1.InferencePoolStatus) bool { return len(s.Backends) == 0 })
	})
})

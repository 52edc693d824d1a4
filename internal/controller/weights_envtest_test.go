package controller_test

import (
	"context"
	"fmt"
	"net/http"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/berthmaster/berthmaster/api/v1alpha1"
	"github.com/berthmaster/berthmaster/internal/enginesim"
	"github.com/berthmaster/berthmaster/internal/router"
)

// pushed is what a trainer asks that has pushed a version itself.
func pushed(version string, changes ...func(*v1alpha1.WeightsSpec)) func(*v1alpha1.InferencePoolSpec) {
	return func(s *v1alpha1.InferencePoolSpec) {
		weights := &v1alpha1.WeightsSpec{Version: v1alpha1.WeightVersion(version), Source: v1alpha1.WeightsExternal, Epoch: max(1, s.Epoch)}
		for _, change := range changes {
			change(weights)
		}
		s.Weights = weights
	}
}

// fences sets the access of every sender.
func fences(access v1alpha1.SenderAccess) func(*v1alpha1.InferencePoolSpec) {
	return func(s *v1alpha1.InferencePoolSpec) {
		for i := range s.Senders {
			s.Senders[i].Access = access
		}
	}
}

// push changes the weights of an engine as a trainer does, and names them if it is told a version.
func (f *fleet) push(ctx context.Context, i int, content, version string) {
	GinkgoHelper()
	body := map[string]any{"serialized_named_tensors": []string{content}, "flush_cache": false}
	if version != "" {
		body["weight_version"] = version
	}
	Expect(f.try(ctx, http.MethodPost, i, "/update_weights_from_tensor", body)).To(Equal(http.StatusOK))
}

// untilPublished waits until the pool promises a version.
func (h *house) untilPublished(ctx context.Context, version string) *v1alpha1.InferencePoolStatus {
	GinkgoHelper()
	return h.until(ctx, version+" to be published", func(s *v1alpha1.InferencePoolStatus) bool {
		return s.Weights != nil && s.Weights.Published == version
	})
}

// untilConverged waits until every backend is on the version that is published.
func (h *house) untilConverged(ctx context.Context, version string) {
	GinkgoHelper()
	h.untilPublished(ctx, version)
	h.untilCondition(ctx, v1alpha1.ConditionWeightsConverged, metav1.ConditionTrue, v1alpha1.ReasonConverged)
}

var _ = Describe("weights that a trainer pushes", func() {
	var (
		h *house
		f *fleet
	)
	BeforeEach(func(ctx context.Context) {
		h = openHouse(ctx)
		f = openFleet(ctx, h, 3)
		f.createPool(ctx)
		h.untilServing(ctx, 3)
	})
	// pushAll is a trainer's update of every engine under a fence.
	pushAll := func(ctx context.Context, version, named string) {
		GinkgoHelper()
		h.changePool(ctx, fences(v1alpha1.SenderFenced))
		h.untilCondition(ctx, v1alpha1.ConditionSendersFenced, metav1.ConditionTrue, v1alpha1.ReasonFenced)
		for i := range 3 {
			f.push(ctx, i, version, named)
		}
	}

	It("are published in one step once every engine reports them, and leases say so", func(ctx context.Context) {
		grant := h.acquire(request("s", 1))
		Expect(grant.Claim.Version).To(BeEmpty())
		h.release(grant, router.Succeeded)
		pushAll(ctx, "step-1", "step-1")
		h.changePool(ctx, pushed("step-1"))
		h.untilConverged(ctx, "step-1")
		Eventually(h.eventsOf(ctx, "VersionPublished")).Should(HaveLen(1))
		h.changePool(ctx, fences(v1alpha1.SenderOpen))
		status := h.untilServing(ctx, 3)
		Expect(status.Weights.Progress).To(Equal("3/3"))
		grant = h.acquire(request("s", 2))
		Expect(grant.Claim.Version).To(BeEquivalentTo("step-1"))
	})

	It("are not published while one engine has others, which is named", func(ctx context.Context) {
		pushAll(ctx, "step-1", "step-1")
		h.changePool(ctx, pushed("step-1"))
		h.untilConverged(ctx, "step-1")
		for i := range 2 {
			f.push(ctx, i, "step-2", "step-2")
		}
		h.changePool(ctx, pushed("step-2"))
		h.until(ctx, "two of three", func(s *v1alpha1.InferencePoolStatus) bool {
			return s.Weights.Progress == "2/3" && s.Weights.Target == "step-2"
		})
		h.untilCondition(ctx, v1alpha1.ConditionWeightsConverged, metav1.ConditionFalse, v1alpha1.ReasonRolloutInProgress)
		h.untilBackend(ctx, "sglang-2", v1alpha1.BackendVerifying, v1alpha1.ReasonWeights)
		Expect(h.pool(ctx).Status.Weights.Published).To(Equal("step-1"), "intent is not outcome")
		f.push(ctx, 2, "step-2", "step-2")
		h.untilConverged(ctx, "step-2")
	})

	It("are published without one that fails, if the owner would rather proceed; it comes after", func(ctx context.Context) {
		h.changePool(ctx, fences(v1alpha1.SenderFenced))
		h.untilCondition(ctx, v1alpha1.ConditionSendersFenced, metav1.ConditionTrue, v1alpha1.ReasonFenced)
		for i := range 2 {
			f.push(ctx, i, "step-1", "step-1")
		}
		h.changePool(ctx, pushed("step-1", func(w *v1alpha1.WeightsSpec) {
			w.OnFailure, w.MinReadyPercent, w.DeadlineSeconds = v1alpha1.FailureProceed, 60, 1
		}))
		h.untilPublished(ctx, "step-1")
		h.untilCondition(ctx, v1alpha1.ConditionWeightsConverged, metav1.ConditionFalse, v1alpha1.ReasonCatchingUp)
		h.changePool(ctx, fences(v1alpha1.SenderOpen))
		h.untilServing(ctx, 2)
		for n := range 30 {
			Expect(h.acquire(request(fmt.Sprint("s", n), 1)).Claim.Backend).NotTo(BeEquivalentTo("sglang-2"))
		}
		f.push(ctx, 2, "step-1", "step-1")
		h.untilServing(ctx, 3)
		h.untilConverged(ctx, "step-1")
	})

	It("are believed on the trainer's word for those engines that were there throughout its fence", func(ctx context.Context) {
		h.changePool(ctx, fences(v1alpha1.SenderFenced))
		h.untilCondition(ctx, v1alpha1.ConditionSendersFenced, metav1.ConditionTrue, v1alpha1.ReasonFenced)
		for i := range 3 {
			f.push(ctx, i, "step-1", "") // it names nothing
		}
		pod := f.pod(ctx, "sglang-2") // one engine restarts meanwhile, and has lost what was pushed
		f.reportRunning(ctx, pod, address(2), "containerd://"+string(pod.UID)+"-1")
		h.until(ctx, "the next incarnation", func(s *v1alpha1.InferencePoolStatus) bool {
			for _, entry := range s.Backends {
				if entry.Name == "sglang-2" && entry.QuietSince == nil && entry.State == v1alpha1.BackendServing {
					return true
				}
			}
			return false
		})
		h.changePool(ctx, pushed("step-1", func(w *v1alpha1.WeightsSpec) {
			w.Verification, w.StampEngines = v1alpha1.VerifyDeclared, v1alpha1.StampEnabled
			w.OnFailure, w.MinReadyPercent, w.DeadlineSeconds = v1alpha1.FailureProceed, 60, 2
		}))
		h.untilPublished(ctx, "step-1")
		h.changePool(ctx, fences(v1alpha1.SenderOpen))
		h.untilServing(ctx, 2)
		Eventually(func() []string {
			return []string{f.inside(ctx, 0).Weights.Version, f.inside(ctx, 1).Weights.Version, f.inside(ctx, 2).Weights.Version}
		}).Should(Equal([]string{"step-1", "step-1", "default"}), "the engines are made to report the truth, but for the one of which nobody knows")
		for n := range 30 {
			Expect(h.acquire(request(fmt.Sprint("s", n), 1)).Claim.Backend).NotTo(BeEquivalentTo("sglang-2"))
		}
	})

	It("keep out a restarted engine until it is on the version that the pool promises", func(ctx context.Context) {
		pushAll(ctx, "v7", "v7")
		h.changePool(ctx, pushed("v7"))
		h.untilConverged(ctx, "v7")
		h.changePool(ctx, fences(v1alpha1.SenderOpen))
		h.untilServing(ctx, 3)
		f.boot(ctx, "sglang-3", 3) // healthy, version "default"
		h.until(ctx, "four backends", func(s *v1alpha1.InferencePoolStatus) bool { return s.Summary.Backends == 4 })
		h.untilBackend(ctx, "sglang-3", v1alpha1.BackendVerifying, v1alpha1.ReasonWeights)
		for n := range 500 {
			grant := h.acquire(request(fmt.Sprint("s", n), 1))
			Expect(grant.Claim.Backend).NotTo(BeEquivalentTo("sglang-3"))
			h.release(grant, router.Succeeded)
		}
		h.changePool(ctx, fences(v1alpha1.SenderFenced))
		h.untilCondition(ctx, v1alpha1.ConditionSendersFenced, metav1.ConditionTrue, v1alpha1.ReasonFenced)
		for i := range 4 {
			f.push(ctx, i, "v8", "v8")
		}
		h.changePool(ctx, pushed("v8"))
		h.untilConverged(ctx, "v8")
		h.changePool(ctx, fences(v1alpha1.SenderOpen))
		h.untilServing(ctx, 4)
		share := map[router.BackendName]int{}
		for n := range 100 {
			share[h.acquire(request(fmt.Sprint("t", n), 1)).Claim.Backend]++
		}
		Expect(share["sglang-3"]).To(BeNumerically("~", 25, 2), "its share")
	})

	It("abort nothing when they are named, and wait for what runs", func(ctx context.Context) {
		pushAll(ctx, "v1", "v1")
		h.changePool(ctx, pushed("v1"))
		h.untilConverged(ctx, "v1")
		h.changePool(ctx, fences(v1alpha1.SenderOpen))
		h.untilConverged(ctx, "v1")
		h.untilServing(ctx, 3)
		grant := h.acquire(request("s", 1))
		reply := generate(ctx, grant)
		running := func() (n int) {
			for i := range 3 {
				n += len(f.inside(ctx, i).Running)
			}
			return n
		}
		Eventually(running).Should(Equal(1))
		for i := range 3 {
			f.tell(ctx, i, "/update_weight_version", map[string]any{"new_version": "v2", "abort_all_requests": false})
		}
		h.changePool(ctx, pushed("v2", func(w *v1alpha1.WeightsSpec) { w.StampEngines = v1alpha1.StampEnabled }))
		h.until(ctx, "the barrier", func(s *v1alpha1.InferencePoolStatus) bool { return s.Weights.Target == "v2" })
		Eventually(h.grants).Should(MatchError(router.ErrLeasingHeld))
		Expect(h.pool(ctx).Status.Weights.Published).To(Equal("v1"))
		Expect(running()).To(Equal(1))
		Eventually(reply).Should(Receive(Or(Equal("length"), Equal("stop"))))
		h.release(grant, router.Succeeded)
		h.untilConverged(ctx, "v2")
	})

	It("of a writer of an older epoch are refused", func(ctx context.Context) {
		h.changePool(ctx, func(s *v1alpha1.InferencePoolSpec) { s.Epoch = 2 })
		pushAll(ctx, "57", "57")
		h.changePool(ctx, pushed("57"))
		h.untilConverged(ctx, "57")
		pool := h.pool(ctx)
		pool.Spec.Weights.Version, pool.Spec.Weights.Epoch = "1", 1
		Expect(admin.Update(ctx, pool)).To(MatchError(ContainSubstring("older epoch")))
		Expect(h.pool(ctx).Status.Weights.Published).To(Equal("57"))
	})

	It("are verified again after an outage of the engine", func(ctx context.Context) {
		pushAll(ctx, "v1", "v1")
		h.changePool(ctx, pushed("v1"))
		h.untilConverged(ctx, "v1")
		h.changePool(ctx, fences(v1alpha1.SenderOpen))
		h.untilServing(ctx, 3)
		f.fail(ctx, 0, enginesim.Fault{Kind: enginesim.FaultHealth, Status: http.StatusInternalServerError})
		h.untilBackend(ctx, "sglang-0", v1alpha1.BackendUnhealthy, v1alpha1.ReasonProbesFailed)
		f.tell(ctx, 0, "/update_weight_version", map[string]any{"new_version": "lost", "abort_all_requests": false})
		f.mend(ctx, 0)
		h.until(ctx, "the engine to be kept out by its version", func(s *v1alpha1.InferencePoolStatus) bool {
			return s.Backends[0].Name == "sglang-0" && s.Backends[0].State == v1alpha1.BackendVerifying
		})
		h.untilServing(ctx, 2)
	})
})

package controller_test

import (
	"context"
	"fmt"
	"net/http"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/berthmaster/berthmaster/api/v1alpha1"
	"github.com/berthmaster/berthmaster/internal/enginesim"
	"github.com/berthmaster/berthmaster/internal/router"
)

// strategy is a change of weights from disk in some way.
type strategy func(*v1alpha1.WeightsSpec)

func allAtOnce(clearing v1alpha1.Clearing) strategy {
	return func(w *v1alpha1.WeightsSpec) { w.Strategy, w.Clearing = v1alpha1.RolloutAllAtOnce, clearing }
}

func byTurns(w *v1alpha1.WeightsSpec) {
	w.Strategy, w.MaxUnavailable = v1alpha1.RolloutRolling, ptr.To(intstr.FromString("34%"))
}

func inPlace(w *v1alpha1.WeightsSpec) { w.Strategy = v1alpha1.RolloutInPlace }

// fromDisk asks for a version from a path that is named after it.
func fromDisk(version string, how strategy, changes ...func(*v1alpha1.WeightsSpec)) func(*v1alpha1.InferencePoolSpec) {
	return func(s *v1alpha1.InferencePoolSpec) {
		s.Weights = &v1alpha1.WeightsSpec{
			Version: v1alpha1.WeightVersion(version), Source: v1alpha1.WeightsDisk, Path: "/weights/" + version, Epoch: max(1, s.Epoch),
		}
		how(s.Weights)
		for _, change := range changes {
			change(s.Weights)
		}
	}
}

// onDisk checks that engines have the weights of a version, and say so, and run.
func (f *fleet) onDisk(ctx context.Context, version string, engines ...int) {
	GinkgoHelper()
	for _, i := range engines {
		state := f.inside(ctx, i)
		Expect(state.Weights.Content).To(Equal("/weights/"+version), "engine %d", i)
		Expect(state.Weights.Version).To(Equal(version), "engine %d", i)
		Expect(state.Paused).To(BeEmpty(), "engine %d", i)
	}
}

var _ = Describe("weights from disk", func() {
	var (
		h *house
		f *fleet
	)
	BeforeEach(func(ctx context.Context) {
		h = openHouse(ctx)
		f = openFleet(ctx, h, 3)
		f.createPool(ctx, fromDisk("v1", allAtOnce("")), func(s *v1alpha1.InferencePoolSpec) {
			s.Leases.StartSeconds = 2 // what a take-over waits for
		})
		h.untilConverged(ctx, "v1")
		h.untilServing(ctx, 3)
		f.onDisk(ctx, "v1", 0, 1, 2)
	})
	// settled is the end of every rollout: all serve on one version, nothing is paused or owed.
	settled := func(ctx context.Context, version string) {
		GinkgoHelper()
		h.untilConverged(ctx, version)
		status := h.untilServing(ctx, 3)
		f.onDisk(ctx, version, 0, 1, 2)
		for _, entry := range status.Backends {
			Expect(entry.PausedBy).To(BeEmpty())
			Expect(entry.Updating).To(BeEmpty())
		}
		Eventually(func() []string { return h.pool(ctx).Finalizers }).Should(BeEmpty())
		after := h.acquire(request("after", int(time.Now().UnixNano()%1e9)))
		Expect(after.Claim.Version).To(BeEquivalentTo(version))
		h.release(after, router.Succeeded)
	}
	strategies := []any{
		Entry("all at once, drained", allAtOnce(v1alpha1.ClearDrain)),
		Entry("all at once, aborted", allAtOnce(v1alpha1.ClearAbort)),
		Entry("all at once, retracted", allAtOnce(v1alpha1.ClearRetract)),
		Entry("all at once, in place", allAtOnce(v1alpha1.ClearInPlace)),
		Entry("by turns", strategy(byTurns)),
		Entry("in place", strategy(inPlace)),
	}
	// troubled are those that make every kind of call between them.
	troubled := []any{
		Entry("all at once, aborted", allAtOnce(v1alpha1.ClearAbort)),
		Entry("by turns", strategy(byTurns)),
		Entry("in place", strategy(inPlace)),
	}

	DescribeTable("come to every engine and are published", append([]any{
		func(ctx context.Context, how strategy) {
			h.changePool(ctx, fromDisk("v2", how))
			settled(ctx, "v2")
			h.changePool(ctx, fromDisk("v1", how)) // and back
			settled(ctx, "v1")
		},
	}, strategies...)...)

	DescribeTable("come to every engine although each call fails at first", append([]any{
		func(ctx context.Context, how strategy) {
			for i, path := range []string{"/pause_generation", "/update_weights_from_disk", "/continue_generation"} {
				f.fail(ctx, i, enginesim.Fault{Kind: enginesim.FaultStatus, Paths: []string{path}, Count: 2})
			}
			f.fail(ctx, 0, enginesim.Fault{Kind: enginesim.FaultStatus, Paths: []string{"/model_info"}, Count: 2})
			f.fail(ctx, 2, enginesim.Fault{Kind: enginesim.FaultUpdateFails, Status: http.StatusOK, Count: 1})
			f.fail(ctx, 0, enginesim.Fault{Kind: enginesim.FaultWrongVersion, Version: "other", Count: 1})
			h.changePool(ctx, fromDisk("v2", how))
			settled(ctx, "v2")
		},
	}, troubled...)...)

	DescribeTable("come to every engine whoever finishes what was begun", append([]any{
		func(ctx context.Context, how strategy) {
			for i, path := range []string{"/pause_generation", "/update_weights_from_disk", "/continue_generation"} {
				f.fail(ctx, i, enginesim.Fault{Kind: enginesim.FaultHang, Paths: []string{path}})
			}
			h.changePool(ctx, fromDisk("v2", how))
			h.until(ctx, "the rollout to begin", func(s *v1alpha1.InferencePoolStatus) bool { return s.Weights.Target == "v2" })
			h.stop()
			for i := range 3 {
				f.mend(ctx, i)
			}
			h.start()
			settled(ctx, "v2")
		},
	}, troubled...)...)

	DescribeTable("are not published while an engine declines them, and it is named with its words", func(ctx context.Context, status int) {
		f.fail(ctx, 1, enginesim.Fault{Kind: enginesim.FaultUpdateFails, Status: status, Message: "no such shard"})
		h.changePool(ctx, fromDisk("v2", allAtOnce(v1alpha1.ClearAbort)))
		entry := h.untilBackend(ctx, "sglang-1", v1alpha1.BackendPending, v1alpha1.ReasonRolloutFailed)
		Expect(entry.Message).To(ContainSubstring("no such shard"))
		Expect(h.pool(ctx).Status.Weights.Published).To(Equal("v1"), "intent is not outcome")
		Expect(h.grants()).To(MatchError(router.ErrLeasingHeld), "it stays shut: resuming comes last")
		f.mend(ctx, 1)
		settled(ctx, "v2")
	}, Entry("with status 200", http.StatusOK), Entry("with status 400", http.StatusBadRequest))

	It("go back after the deadline, if all must succeed", func(ctx context.Context) {
		f.fail(ctx, 1, enginesim.Fault{Kind: enginesim.FaultUpdateFails, Count: 3})
		h.changePool(ctx, fromDisk("v2", allAtOnce(v1alpha1.ClearAbort), func(w *v1alpha1.WeightsSpec) { w.DeadlineSeconds = 3 }))
		h.untilCondition(ctx, v1alpha1.ConditionWeightsConverged, metav1.ConditionFalse, v1alpha1.ReasonRolloutDeadlineExceeded)
		h.untilServing(ctx, 3)
		f.onDisk(ctx, "v1", 0, 1, 2)
		Expect(h.pool(ctx).Status.Weights.Published).To(Equal("v1"))
		Expect(h.acquire(request("s", 1)).Claim.Version).To(BeEquivalentTo("v1"))
	})

	It("are published without a dead engine, if the owner would rather proceed", func(ctx context.Context) {
		f.fail(ctx, 1, enginesim.Fault{Kind: enginesim.FaultUpdateFails})
		h.changePool(ctx, fromDisk("v2", allAtOnce(v1alpha1.ClearAbort), func(w *v1alpha1.WeightsSpec) {
			w.OnFailure, w.MinReadyPercent = v1alpha1.FailureProceed, 60
		}))
		h.untilPublished(ctx, "v2")
		h.untilServing(ctx, 2)
		f.onDisk(ctx, "v2", 0, 2)
		h.untilBackend(ctx, "sglang-1", v1alpha1.BackendPending, v1alpha1.ReasonRolloutFailed)
		f.mend(ctx, 1)
		settled(ctx, "v2")
	})

	It("supersede those that are on their way", func(ctx context.Context) {
		f.fail(ctx, 1, enginesim.Fault{Kind: enginesim.FaultUpdateFails})
		h.changePool(ctx, fromDisk("v2", strategy(byTurns)))
		h.untilBackend(ctx, "sglang-1", v1alpha1.BackendPending, v1alpha1.ReasonRolloutFailed)
		f.mend(ctx, 1)
		h.changePool(ctx, fromDisk("v3", strategy(byTurns)))
		settled(ctx, "v3")
		for _, event := range h.eventsOf(ctx, "VersionPublished")() {
			Expect(event.Note).NotTo(ContainSubstring("v2"))
		}
	})

	It("are brought to a new engine, which takes no lease before", func(ctx context.Context) {
		f.boot(ctx, "sglang-3", 3)
		h.untilServing(ctx, 4)
		f.onDisk(ctx, "v1", 0, 1, 2, 3)
	})

	It("come by turns while the others serve, and a session stays until its backend's turn", func(ctx context.Context) {
		grant := h.acquire(request("s", 1))
		home := grant.Claim.Backend
		h.changePool(ctx, fromDisk("v2", strategy(byTurns)))
		h.until(ctx, "the others", func(s *v1alpha1.InferencePoolStatus) bool { return s.Weights.Progress == "2/3" })
		next := h.acquire(request("t", 1))
		Expect(next.Claim.Version).To(BeEquivalentTo("v2"), "new sessions go where the new weights are")
		Expect(h.pool(ctx).Status.Weights.Published).To(Equal("v1"))
		entry := h.untilBackend(ctx, string(home), v1alpha1.BackendDraining, v1alpha1.ReasonWeights)
		Expect(entry.WeightVersion).To(Equal("v1"))
		h.release(grant, router.Succeeded)
		settled(ctx, "v2")
	})

	It("in place change under what runs, whose leases say mixed", func(ctx context.Context) {
		grant := h.acquire(request("s", 1))
		reply := generate(ctx, grant)
		Eventually(func() (n int) {
			for i := range 3 {
				n += len(f.inside(ctx, i).Running)
			}
			return n
		}).Should(Equal(1))
		h.changePool(ctx, fromDisk("v2", strategy(inPlace)))
		h.untilConverged(ctx, "v2")
		h.untilServing(ctx, 3)
		renewal, err := h.table().Renew(grant.Claim, router.Started, time.Now())
		Expect(err).NotTo(HaveOccurred())
		Expect(renewal.Mixed).To(BeTrue())
		Eventually(reply).Should(Receive(Or(Equal("length"), Equal("stop"))))
		h.release(grant, router.Succeeded)
		for i := range 3 {
			Expect(f.inside(ctx, i).Weights.Version).To(Equal("v2"), "no scheduler died of a flush")
		}
	})

	It("by aborting end what runs, by its own word", func(ctx context.Context) {
		grant := h.acquire(request("s", 1))
		reply := generate(ctx, grant)
		Eventually(func() (n int) {
			for i := range 3 {
				n += len(f.inside(ctx, i).Running)
			}
			return n
		}).Should(Equal(1))
		h.changePool(ctx, fromDisk("v2", allAtOnce(v1alpha1.ClearAbort)))
		Eventually(reply).Should(Receive(Equal("abort")))
		Consistently(func() string { return h.pool(ctx).Status.Weights.Published }).WithTimeout(time.Second).Should(Equal("v1"), "the lease is counted still")
		h.release(grant, router.Aborted)
		settled(ctx, "v2")
	})

	It("wait for the sessions of a pinned sender, within a bound", func(ctx context.Context) {
		h.changePool(ctx, func(s *v1alpha1.InferencePoolSpec) {
			for i := range s.Senders {
				if s.Senders[i].Name == "eval" {
					s.Senders[i].VersionPolicy = v1alpha1.VersionPinned
				}
			}
		})
		turn := func(n int) router.Request {
			r := request("e", n)
			r.Sender = "eval"
			return r
		}
		h.until(ctx, "the policy", func(*v1alpha1.InferencePoolStatus) bool { return true })
		first := h.acquire(turn(1))
		h.release(first, router.Succeeded)
		h.changePool(ctx, fromDisk("v2", strategy(byTurns)))
		h.until(ctx, "the others", func(s *v1alpha1.InferencePoolStatus) bool { return s.Weights.Progress == "2/3" })
		h.untilCondition(ctx, v1alpha1.ConditionWeightsConverged, metav1.ConditionFalse, v1alpha1.ReasonWaitingForPins)
		for n := range 2 {
			grant := h.acquire(turn(n + 2))
			Expect(grant.Claim.Version).To(BeEquivalentTo("v1"))
			Expect(grant.Claim.Backend).To(Equal(first.Claim.Backend))
			h.release(grant, router.Succeeded)
		}
		Expect(h.table().EndSession("e", "eval", time.Now())).To(Succeed())
		settled(ctx, "v2")

		second := h.acquire(turn(9))
		h.release(second, router.Succeeded)
		h.changePool(ctx, fromDisk("v3", strategy(byTurns), func(w *v1alpha1.WeightsSpec) { w.PinDeadlineSeconds = 2 }))
		settled(ctx, "v3")
	})

	It("change on engines that spec.engineMode keeps paused, which stay so", func(ctx context.Context) {
		h.changePool(ctx, mode(v1alpha1.EnginesPausedAbort))
		h.untilCondition(ctx, v1alpha1.ConditionEnginesPaused, metav1.ConditionTrue, v1alpha1.ReasonEnginesPaused)
		h.changePool(ctx, fromDisk("v2", allAtOnce(v1alpha1.ClearAbort)))
		h.untilPublished(ctx, "v2")
		for i := range 3 {
			Expect(f.inside(ctx, i).Paused).To(Equal("abort"), fmt.Sprint("engine ", i))
			Expect(f.inside(ctx, i).Weights.Version).To(Equal("v2"))
		}
		h.changePool(ctx, mode(v1alpha1.EnginesRunning))
		settled(ctx, "v2")
	})
})

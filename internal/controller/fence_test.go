package controller_test

import (
	"context"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/berthmaster/berthmaster/api/v1alpha1"
	"github.com/berthmaster/berthmaster/internal/router"
)

// access sets a sender's access.
func access(name string, to v1alpha1.SenderAccess) func(*v1alpha1.InferencePoolSpec) {
	return func(s *v1alpha1.InferencePoolSpec) {
		for i := range s.Senders {
			if s.Senders[i].Name == name {
				s.Senders[i].Access = to
			}
		}
	}
}

// strict makes an ambiguous execution count at once.
func strict(s *v1alpha1.InferencePoolSpec) { s.Leases.CertaintySeconds = ptr.To[int32](0) }

// isolating has an ambiguous execution isolate its backend, at once.
func isolating(s *v1alpha1.InferencePoolSpec) {
	strict(s)
	s.Leases.OnAmbiguous = v1alpha1.AmbiguousIsolateBackend
}

var _ = Describe("a sender", func() {
	It("is fenced, in status, only when nothing of it is counted; others are not disturbed", func(ctx context.Context) {
		h := openHouse(ctx)
		f := openFleet(ctx, h, 1)
		f.createPool(ctx)
		h.untilServing(ctx, 1)
		evaluation := request("e", 1)
		evaluation.Sender = "eval"
		grant := h.acquire(evaluation)

		h.changePool(ctx, access("eval", v1alpha1.SenderFenced))
		h.untilCondition(ctx, v1alpha1.ConditionSendersFenced, metav1.ConditionFalse, v1alpha1.ReasonFencing)
		Expect(h.pool(ctx).Status.Senders).To(ContainElement(
			v1alpha1.SenderStatus{Name: "eval", Access: v1alpha1.SenderStateFencing}))
		evaluation.ID = "e-2"
		_, err := h.table().Acquire(evaluation, time.Now())
		Expect(err).To(MatchError(router.ErrSenderFenced))
		h.acquire(request("t", 1))

		h.release(grant, router.Succeeded)
		h.untilCondition(ctx, v1alpha1.ConditionSendersFenced, metav1.ConditionTrue, v1alpha1.ReasonFenced)
		h.changePool(ctx, access("eval", v1alpha1.SenderOpen))
		h.untilCondition(ctx, v1alpha1.ConditionSendersFenced, metav1.ConditionFalse, v1alpha1.ReasonNoneFenced)
		evaluation.ID = "e-3"
		h.acquire(evaluation)
	})

	It("of a generation below the least is refused for good", func(ctx context.Context) {
		h := openHouse(ctx)
		f := openFleet(ctx, h, 1)
		f.createPool(ctx, func(s *v1alpha1.InferencePoolSpec) { s.Senders[0].MinGeneration = ptr.To[int64](3) })
		status := h.untilServing(ctx, 1)
		Expect(status.Senders).To(ContainElement(
			v1alpha1.SenderStatus{Name: "train", Access: v1alpha1.SenderStateOpen, Generation: 3}))
		_, err := h.table().Acquire(request("s", 1), time.Now())
		Expect(err).To(MatchError(router.ErrStaleGeneration))
	})
})

var _ = Describe("an execution of unknown fate", func() {
	var (
		h *house
		f *fleet
	)
	open := func(ctx context.Context, change func(*v1alpha1.InferencePoolSpec)) router.Grant {
		h = openHouse(ctx)
		f = openFleet(ctx, h, 2)
		f.createPool(ctx, change)
		h.untilServing(ctx, 2)
		return h.acquire(request("s", 1))
	}

	It("fails the pool, in status before the release is answered, until the epoch is raised", func(ctx context.Context) {
		grant := open(ctx, strict)
		h.release(grant, router.Ambiguous)
		ending, err := h.table().AwaitFate(ctx, grant.Claim)
		Expect(err).NotTo(HaveOccurred())
		Expect(ending.Fate).To(Equal(router.FateFailed))
		// The answer is there, so the status must be: no waiting here.
		failure := h.pool(ctx).Status.Failure
		Expect(failure).NotTo(BeNil())
		Expect(*failure).To(And(
			HaveField("RequestID", "s-1"), HaveField("SessionID", "s"), HaveField("Epoch", BeEquivalentTo(1)),
			HaveField("Backend", string(grant.Claim.Backend))))
		h.untilCondition(ctx, v1alpha1.ConditionFailed, metav1.ConditionTrue, v1alpha1.ReasonAmbiguousExecution)
		h.untilCondition(ctx, v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonPoolFailed)
		_, err = h.table().Acquire(request("t", 1), time.Now())
		Expect(err).To(MatchError(router.ErrPoolFailed))
		Eventually(h.eventsOf(ctx, "PoolFailed")).Should(HaveLen(1))

		h.changePool(ctx, func(s *v1alpha1.InferencePoolSpec) { s.Epoch = 2 })
		h.untilCondition(ctx, v1alpha1.ConditionFailed, metav1.ConditionFalse, v1alpha1.ReasonNotFailed)
		h.until(ctx, "epoch 2", func(s *v1alpha1.InferencePoolStatus) bool { return s.Epoch == 2 && s.Failure == nil })
		again := request("t", 2)
		again.Epoch = 2
		h.acquire(again)
		Expect(h.eventsOf(ctx, "PoolFailed")()).To(HaveLen(1))
	})

	It("isolates its backend, in status before the release is answered, until it is gone", func(ctx context.Context) {
		grant := open(ctx, isolating)
		h.release(grant, router.Ambiguous)
		ending, err := h.table().AwaitFate(ctx, grant.Claim)
		Expect(err).NotTo(HaveOccurred())
		Expect(ending.Fate).To(BeElementOf(router.FateIsolated, router.FateDead))
		name := string(grant.Claim.Backend)
		if ending.Fate == router.FateIsolated {
			Expect(h.pool(ctx).Status.Backends).To(ContainElement(
				And(HaveField("Name", name), HaveField("IsolationStartTime", Not(BeNil())))))
		}
		// The engine runs nothing, which the settler finds out once the start window has closed; a
		// terminated container proves it sooner.
		f.reportTerminated(ctx, name)
		h.until(ctx, "no isolation", func(s *v1alpha1.InferencePoolStatus) bool {
			for _, entry := range s.Backends {
				if entry.IsolationStartTime != nil {
					return false
				}
			}
			return true
		})
		h.untilCondition(ctx, v1alpha1.ConditionFailed, metav1.ConditionFalse, v1alpha1.ReasonNotFailed)
	})
})

var _ = Describe("events", func() {
	It("tell of each change once", func(ctx context.Context) {
		h := openHouse(ctx)
		f := openFleet(ctx, h, 2)
		f.createPool(ctx)
		h.untilServing(ctx, 2)
		Eventually(h.eventsOf(ctx, "BackendServing")).Should(HaveLen(2))
		Eventually(h.eventsOf(ctx, "TermBegan")).Should(HaveLen(1))
		h.changePool(ctx, drainOf(v1alpha1.DrainSpec{Backend: "sglang-0"}))
		h.untilBackend(ctx, "sglang-0", v1alpha1.BackendDrained, v1alpha1.ReasonDrainRequested)
		Eventually(h.eventsOf(ctx, "BackendDrained")).Should(HaveLen(1))
		event := h.eventsOf(ctx, "BackendDrained")()[0]
		Expect(event.Related).To(And(HaveField("Kind", "Pod"), HaveField("Name", "sglang-0")))
		Expect(event.Type).To(Equal(corev1.EventTypeNormal))
		Expect(h.eventsOf(ctx, "BackendServing")()).To(HaveLen(2))

		h.changePool(ctx, drainOf())
		h.untilServing(ctx, 2)
		// The same news about the same pod again is the same event, which counts.
		Eventually(h.eventsOf(ctx, "BackendServing")).Should(And(HaveLen(2), ContainElement(HaveField("Series", Not(BeNil())))))
	})
})

// eventsOf lists the pool's events of a reason.
func (h *house) eventsOf(ctx context.Context, reason string) func() []eventsv1.Event {
	return func() []eventsv1.Event {
		var list eventsv1.EventList
		Expect(admin.List(ctx, &list, client.InNamespace(h.namespace))).To(Succeed())
		var found []eventsv1.Event
		for _, event := range list.Items {
			if event.Reason == reason && event.Regarding.Name == theName {
				found = append(found, event)
			}
		}
		return found
	}
}

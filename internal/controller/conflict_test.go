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

var _ = Describe("an engine that two pools claim", func() {
	It("stays with the older and goes to the other when that one goes", func(ctx context.Context) {
		h := openHouse(ctx)
		f := openFleet(ctx, h, 1)
		f.createPool(ctx)
		h.untilServing(ctx, 1)

		younger := &v1alpha1.InferencePool{
			ObjectMeta: metav1.ObjectMeta{Name: "younger", Namespace: h.namespace},
			Spec: v1alpha1.InferencePoolSpec{
				Backends: v1alpha1.BackendsSpec{Endpoints: []v1alpha1.Endpoint{{Name: "mine", URL: f.url(0)}}},
				Senders:  []v1alpha1.SenderSpec{{Name: "train"}},
				Health:   v1alpha1.HealthSpec{PeriodSeconds: 1},
			},
		}
		// Pools of one second are told apart by their UIDs: let a second pass.
		first := h.pool(ctx)
		Eventually(func() time.Duration { return time.Since(first.CreationTimestamp.Time) }).Should(BeNumerically(">", 2*time.Second))
		Expect(admin.Create(ctx, younger)).To(Succeed())
		state := func() v1alpha1.BackendState {
			Expect(admin.Get(ctx, client.ObjectKeyFromObject(younger), younger)).To(Succeed())
			if len(younger.Status.Backends) == 0 {
				return ""
			}
			return younger.Status.Backends[0].State
		}
		reason := func() v1alpha1.BackendReason {
			if state() == "" {
				return ""
			}
			return younger.Status.Backends[0].Reason
		}
		Eventually(reason).Should(Equal(v1alpha1.ReasonBackendConflict))
		Expect(younger.Status.Backends[0].State).To(Equal(v1alpha1.BackendPending))
		Expect(h.pool(ctx).Status.Summary.Serving).To(BeEquivalentTo(1))

		Expect(admin.Delete(ctx, first)).To(Succeed())
		Eventually(state).Should(Equal(v1alpha1.BackendServing))
		table, found := h.pools.Get(router.PoolKey{Namespace: h.namespace, Name: "younger"})
		Expect(found).To(BeTrue())
		Expect(table.Snapshot(time.Now()).Backends).To(ConsistOf(HaveField("UnknownLoad", true)),
			"the older pool may have left something running there")
	})
})

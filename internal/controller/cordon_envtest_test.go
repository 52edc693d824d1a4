package controller_test

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/berthmaster/berthmaster/api/v1alpha1"
	"github.com/berthmaster/berthmaster/internal/router"
)

// onCordon asks for drains of cordoned nodes.
func onCordon(policy v1alpha1.CordonPolicy) func(*v1alpha1.InferencePoolSpec) {
	return func(s *v1alpha1.InferencePoolSpec) { s.Backends.OnCordon = policy }
}

// openNode makes the node that the fleet's pods are on.
func openNode(ctx context.Context) *corev1.Node {
	GinkgoHelper()
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: nodeOfFleet}}
	Expect(admin.Create(ctx, node)).To(Succeed())
	DeferCleanup(func(ctx context.Context) {
		Expect(client.IgnoreNotFound(admin.Delete(ctx, node))).To(Succeed())
	})
	return node
}

// cordon does what kubectl cordon and kubectl uncordon do.
func cordon(ctx context.Context, node *corev1.Node, unschedulable bool) {
	GinkgoHelper()
	before := node.DeepCopy()
	node.Spec.Unschedulable = unschedulable
	Expect(admin.Patch(ctx, node, client.MergeFrom(before))).To(Succeed())
}

// The specs share the one node of the suite's pods.
var _ = Describe("a cordon of a node", Serial, func() {
	It("drains the backends there, and is over when the node is uncordoned", func(ctx context.Context) {
		h := openHouseWith(ctx, reachNodes)
		node := openNode(ctx)
		f := openFleet(ctx, h, 1)
		f.createPool(ctx, onCordon(v1alpha1.CordonMove))
		h.untilServing(ctx, 1)
		grant := h.acquire(request("s", 1))
		cordon(ctx, node, true)
		entry := h.untilBackend(ctx, "sglang-0", v1alpha1.BackendDraining, v1alpha1.ReasonNodeCordoned)
		Expect(entry.DrainStartTime).NotTo(BeNil())
		h.release(grant, router.Succeeded)
		h.untilBackend(ctx, "sglang-0", v1alpha1.BackendDrained, v1alpha1.ReasonNodeCordoned)

		cordon(ctx, node, false)
		h.untilServing(ctx, 1)
		Expect(h.untilBackend(ctx, "sglang-0", v1alpha1.BackendServing, "").DrainStartTime).To(BeNil())
	})

	It("lets sessions end where they live, if the pool says so", func(ctx context.Context) {
		h := openHouseWith(ctx, reachNodes)
		node := openNode(ctx)
		f := openFleet(ctx, h, 1)
		f.createPool(ctx, onCordon(v1alpha1.CordonKeep))
		h.untilServing(ctx, 1)
		h.release(h.acquire(request("s", 1)), router.Succeeded)
		cordon(ctx, node, true)
		h.untilBackend(ctx, "sglang-0", v1alpha1.BackendDraining, v1alpha1.ReasonNodeCordoned)
		Expect(h.acquire(request("s", 2)).Claim.Backend).To(BeEquivalentTo("sglang-0"))
	})

	It("is nothing to a pool that does not ask", func(ctx context.Context) {
		h := openHouseWith(ctx, reachNodes)
		cordon(ctx, openNode(ctx), true)
		f := openFleet(ctx, h, 1)
		f.createPool(ctx)
		h.untilServing(ctx, 1)
		h.changePool(ctx, onCordon(v1alpha1.CordonIgnore))
		h.untilServing(ctx, 1)
	})

	It("goes on draining from where it began under the next term, and with a node that is deleted", func(ctx context.Context) {
		h := openHouseWith(ctx, reachNodes)
		node := openNode(ctx)
		f := openFleet(ctx, h, 1)
		f.createPool(ctx, onCordon(v1alpha1.CordonMove))
		h.untilServing(ctx, 1)
		cordon(ctx, node, true)
		before := h.untilBackend(ctx, "sglang-0", v1alpha1.BackendDrained, v1alpha1.ReasonNodeCordoned)
		h.stop()
		h.start()
		h.untilTerm(ctx, 2)
		after := h.untilBackend(ctx, "sglang-0", v1alpha1.BackendDraining, v1alpha1.ReasonNodeCordoned)
		Expect(after.DrainStartTime.Equal(before.DrainStartTime)).To(BeTrue())

		Expect(admin.Delete(ctx, node)).To(Succeed())
		f.annotate(ctx, "sglang-0", v1alpha1.AnnotationCapacity, "5") // has the pool looked at after that
		h.until(ctx, "the capacity", func(s *v1alpha1.InferencePoolStatus) bool {
			return s.Backends[0].Capacity == 5 && s.Backends[0].Reason == v1alpha1.ReasonNodeCordoned
		})
	})

	It("is not seen by a manager of one namespace, which says so", func(ctx context.Context) {
		h := openHouse(ctx)
		cordon(ctx, openNode(ctx), true)
		f := openFleet(ctx, h, 1)
		f.createPool(ctx, onCordon(v1alpha1.CordonMove))
		h.untilServing(ctx, 1)
		said := h.untilCondition(ctx, v1alpha1.ConditionDraining, metav1.ConditionUnknown, v1alpha1.ReasonNodesNotWatched)
		Expect(said.Message).To(ContainSubstring("a manager of one namespace has no right to look at nodes"))
		Eventually(func(g Gomega) {
			var events eventsv1.EventList
			g.Expect(admin.List(ctx, &events, client.InNamespace(h.namespace))).To(Succeed())
			g.Expect(events.Items).To(ContainElement(And(
				HaveField("Reason", v1alpha1.ReasonNodesNotWatched), HaveField("Type", corev1.EventTypeWarning))))
		}).Should(Succeed())
		h.changePool(ctx, onCordon(v1alpha1.CordonIgnore))
		h.untilCondition(ctx, v1alpha1.ConditionDraining, metav1.ConditionFalse, v1alpha1.ReasonNotDraining)
	})
})

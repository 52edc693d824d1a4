package controller_test

import (
	"context"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/berthmaster/berthmaster/api/v1alpha1"
)

// foreign is the type of a condition that somebody else writes.
const foreign = "example.com/Audited"

// applyForeign writes the foreign condition with that status, or none at all, as another controller would.
func (h *house) applyForeign(ctx context.Context, statuses ...metav1.ConditionStatus) {
	GinkgoHelper()
	conditions := []any{}
	for _, status := range statuses {
		conditions = append(conditions, map[string]any{
			"type": foreign, "status": string(status), "reason": "Audit", "message": "", "lastTransitionTime": "2026-03-01T12:00:00Z",
		})
	}
	patch := &unstructured.Unstructured{Object: map[string]any{"status": map[string]any{"conditions": conditions}}}
	patch.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind(v1alpha1.InferencePoolKind))
	patch.SetNamespace(h.namespace)
	patch.SetName(theName)
	Expect(admin.Status().Apply(ctx, client.ApplyConfigurationFromUnstructured(patch), client.FieldOwner("auditor"))).To(Succeed())
}

var _ = Describe("whoever operates a pool", func() {
	It("keeps conditions of another writer, which stay that writer's to change and to remove", func(ctx context.Context) {
		h := openHouse(ctx)
		f := openFleet(ctx, h, 1)
		f.createPool(ctx)
		h.untilServing(ctx, 1)
		stir := func(capacity string, want int64) {
			GinkgoHelper()
			f.annotate(ctx, "sglang-0", v1alpha1.AnnotationCapacity, capacity)
			h.until(ctx, "a write of ours", func(s *v1alpha1.InferencePoolStatus) bool { return s.Summary.Capacity == want })
		}
		for i, status := range []metav1.ConditionStatus{metav1.ConditionTrue, metav1.ConditionFalse} {
			h.applyForeign(ctx, status)
			stir([]string{"3", "4"}[i], int64(3+i))
			Expect(meta.FindStatusCondition(h.pool(ctx).Status.Conditions, foreign)).To(HaveField("Status", status))
			Expect(meta.IsStatusConditionTrue(h.pool(ctx).Status.Conditions, v1alpha1.ConditionReady)).To(BeTrue())
		}
		h.applyForeign(ctx)
		stir("5", 5)
		Expect(meta.FindStatusCondition(h.pool(ctx).Status.Conditions, foreign)).To(BeNil())
	})

	It("is told by every condition which generation it is of", func(ctx context.Context) {
		h := openHouse(ctx)
		f := openFleet(ctx, h, 1)
		f.createPool(ctx)
		h.untilServing(ctx, 1)
		h.stop()
		h.changePool(ctx, func(s *v1alpha1.InferencePoolSpec) { s.Leasing = v1alpha1.LeasingHeld })
		asked := h.pool(ctx)
		for _, condition := range asked.Status.Conditions {
			Expect(condition.ObservedGeneration).To(BeNumerically("<", asked.Generation), "nobody has acted on it")
		}
		h.start()
		h.until(ctx, "every condition to be of the new generation", func(s *v1alpha1.InferencePoolStatus) bool {
			for _, condition := range s.Conditions {
				if condition.ObservedGeneration != asked.Generation {
					return false
				}
			}
			return len(s.Conditions) > 0
		})
	})

	It("sees the backends change with the labels of pods", func(ctx context.Context) {
		h := openHouse(ctx)
		f := openFleet(ctx, h, 2)
		f.createPool(ctx)
		h.untilServing(ctx, 2)
		label := func(value string) {
			GinkgoHelper()
			pod := f.pod(ctx, "sglang-1")
			before := pod.DeepCopy()
			pod.Labels["role"] = value
			Expect(admin.Patch(ctx, pod, client.MergeFrom(before))).To(Succeed())
		}
		label("other")
		h.until(ctx, "one backend", func(s *v1alpha1.InferencePoolStatus) bool { return s.Summary.Ready == "1/1" })
		label("rollout")
		h.untilServing(ctx, 2)
	})
})

var _ = It("works in one namespace with nothing but the Role of config/rbac/namespaced", Serial, func(ctx context.Context) {
	h := &house{namespace: "berthmaster-system"} // where those manifests are for
	Expect(admin.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: h.namespace}})).To(Succeed())
	kubectl(ctx, "apply", "-k", "../../config/rbac/namespaced")
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "berthmaster-manager", Namespace: h.namespace}}
	token := &authenticationv1.TokenRequest{}
	Expect(admin.SubResource("token").Create(ctx, account, token)).To(Succeed())
	h.user = rest.AnonymousClientConfig(cluster.Config)
	h.user.BearerToken = token.Status.Token
	h.start()

	f := openFleet(ctx, h, 2)
	Expect(admin.Create(ctx, h.secretOf("key", ""))).To(Succeed())
	f.createPool(ctx, func(s *v1alpha1.InferencePoolSpec) {
		s.Backends.CredentialsSecretRef = &v1alpha1.CredentialsReference{Name: "sglang-keys"}
	})
	h.untilServing(ctx, 2)
	h.changePool(ctx, drainOf(v1alpha1.DrainSpec{Backend: "sglang-0"}))
	h.untilBackend(ctx, "sglang-0", v1alpha1.BackendDrained, v1alpha1.ReasonDrainRequested)
	h.changePool(ctx, func(s *v1alpha1.InferencePoolSpec) { s.EngineMode = v1alpha1.EnginesPausedRetract })
	h.until(ctx, "the engines to be paused", func(s *v1alpha1.InferencePoolStatus) bool {
		return meta.IsStatusConditionTrue(s.Conditions, v1alpha1.ConditionEnginesPaused)
	})
	h.changePool(ctx, func(s *v1alpha1.InferencePoolSpec) { s.EngineMode = v1alpha1.EnginesRunning; s.Drain = nil })
	h.untilServing(ctx, 2)
	Consistently(h.calls.denied.list).WithTimeout(2*time.Second).Should(BeEmpty(), "no right was missing")
})

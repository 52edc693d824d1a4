package apitest

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/berthmaster/berthmaster/api/v1alpha1"
)

var _ = Describe("a command about weights", func() {
	var w *world
	BeforeEach(func(ctx context.Context) { w = newWorld(ctx) })

	published := func(version, path, target string) func(*v1alpha1.InferencePoolStatus) {
		return func(s *v1alpha1.InferencePoolStatus) {
			s.Weights = &v1alpha1.WeightsStatus{Published: version, PublishedPath: path, Target: target, Progress: "1/2"}
		}
	}

	It("publishes under the pool's epoch, and waits until the status says so", func(ctx context.Context) {
		_, _, err := w.run(ctx, "raise-epoch", "--yes")
		Expect(err).NotTo(HaveOccurred())
		r := w.start(ctx, "publish", "step-42", "--wait")
		Eventually(func() *v1alpha1.WeightsSpec { return w.pool(ctx).Spec.Weights }).Should(Equal(&v1alpha1.WeightsSpec{Version: "step-42", Epoch: 2}))
		w.report(ctx, published("step-41", "", "step-42"))
		Eventually(r.said.String).Should(ContainSubstring("published step-41, going to step-42 (1/2)"))
		w.report(ctx, published("step-42", "", "step-42"))
		Eventually(r.done).Should(Receive(BeNil()))
	})

	It("has engines load weights from a path, and keeps to one way at a time", func(ctx context.Context) {
		_, _, err := w.run(ctx, "publish", "step-42", "--path", "/weights/42", "--strategy", "Rolling")
		Expect(err).NotTo(HaveOccurred())
		Expect(w.pool(ctx).Spec.Weights).To(Equal(&v1alpha1.WeightsSpec{
			Version: "step-42", Epoch: 1, Source: v1alpha1.WeightsDisk, Path: "/weights/42", Strategy: v1alpha1.RolloutRolling,
		}))
		_, _, err = w.run(ctx, "publish", "step-43")
		Expect(err).To(MatchError(ContainSubstring("--path")))
		_, _, err = w.run(ctx, "publish", "step-43", "--strategy", "Rolling")
		Expect(err).To(MatchError(ContainSubstring("--path")))
	})

	It("takes a change back that is under way, and no other", func(ctx context.Context) {
		_, _, err := w.run(ctx, "rollout", "undo")
		Expect(err).To(MatchError(ContainSubstring("has published no version")))
		_, _, err = w.run(ctx, "publish", "step-42", "--path", "/weights/42", "--strategy", "Rolling")
		Expect(err).NotTo(HaveOccurred())
		w.report(ctx, published("step-41", "/weights/41", "step-42"))
		_, _, err = w.run(ctx, "rollout", "undo")
		Expect(err).NotTo(HaveOccurred())
		Expect(w.pool(ctx).Spec.Weights).To(Equal(&v1alpha1.WeightsSpec{
			Version: "step-41", Epoch: 1, Source: v1alpha1.WeightsDisk, Path: "/weights/41", Strategy: v1alpha1.RolloutRolling,
		}))
		_, _, err = w.run(ctx, "rollout", "undo")
		Expect(err).To(MatchError(ContainSubstring("no change of weights is under way")))
	})

	It("names the manifest that holds the version", func(ctx context.Context) {
		pool := w.pool(ctx)
		pool.Spec.Weights = &v1alpha1.WeightsSpec{Version: "step-41"}
		Expect(api.Update(ctx, pool, client.FieldOwner("git"))).To(Succeed())
		_, _, err := w.run(ctx, "publish", "step-42")
		Expect(err).To(MatchError(And(ContainSubstring("spec.weights.version"), ContainSubstring(`"git"`))))
	})

	It("tells how far a change is", func(ctx context.Context) {
		_, _, err := w.run(ctx, "rollout", "status")
		Expect(err).To(MatchError(ContainSubstring("does not look at weights")))
		w.report(ctx, published("step-41", "", "step-42"))
		out, _, err := w.run(ctx, "rollout", "status")
		Expect(err).NotTo(HaveOccurred())
		Expect(out).To(HavePrefix("published step-41, going to step-42 (1/2)\n"))
		out, _, err = w.run(ctx, "rollout", "status", "-o", "yaml")
		Expect(err).NotTo(HaveOccurred())
		Expect(out).To(ContainSubstring("target: step-42"))
	})
})

package cluster

import (
	"context"
	"fmt"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/meta"

	v1alpha1 "github.com/berthmaster/berthmaster/api/v1alpha1"
)

// pauses is the trainer who has the engines stand still. While they do, /health fails.
func pauses(h *house) {
	h.tell("has the engines pause and go on, and no kubelet restarts one or calls it unready", func(ctx context.Context, s *scene) {
		before := s.enginePods(ctx)
		s.setMode(ctx, "PausedRetract")
		Eventually(ctx, s.pausedIs(true)).Should(Succeed())
		// Three times as long as the probes of testdata/pool would take to restart one.
		Consistently(ctx, func() error {
			for name, pod := range s.enginePods(ctx) {
				if !ready(pod) || pod.Status.ContainerStatuses[0].RestartCount != before[name].Status.ContainerStatuses[0].RestartCount {
					return fmt.Errorf("%s is not as it was", name)
				}
			}
			return nil
		}).WithTimeout(15 * time.Second).WithPolling(time.Second).Should(Succeed())
		s.setMode(ctx, "Running")
		Eventually(ctx, s.pausedIs(false)).Should(Succeed())
		s.untilAllServe(ctx, engines)
		s.tells(ctx, "EnginesPaused", "paused")
		s.tells(ctx, "EnginesContinued", "paused")
		s.goesOn(ctx, 40)
		Expect(s.player.Counts("").Again).To(BeZero(), "turns had to be made again")
	})
}

// setMode asks for a mode of the engines.
func (s *scene) setMode(ctx context.Context, mode string) {
	GinkgoHelper()
	s.apply(ctx, fmt.Sprintf(`{apiVersion: %s, kind: InferencePool, metadata: {name: %s, namespace: %s}, spec: {engineMode: %s}}`,
		v1alpha1.GroupVersion, poolName, poolNamespace, mode), "--server-side", "--field-manager=pausing")
}

// pausedIs wants the condition to say that all engines are paused, or that none is.
func (s *scene) pausedIs(paused bool) func(context.Context) error {
	return func(ctx context.Context) error {
		pool, err := s.pool(ctx)
		if err != nil {
			return err
		}
		condition := meta.FindStatusCondition(pool.Status.Conditions, "EnginesPaused")
		if condition == nil || condition.ObservedGeneration < pool.Generation || (condition.Status == "True") != paused {
			return fmt.Errorf("EnginesPaused is %+v", condition)
		}
		return nil
	}
}

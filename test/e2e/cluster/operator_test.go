package cluster

import (
	"context"
	"fmt"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// electing are components that end with the API server where they elect a leader, as in clusters that
// last, and begin anew after it. Here they would go on, and take the nodes, whose leases nobody could
// renew, for lost.
var electing = []string{"kube-controller-manager", "kube-scheduler"}

// losesTheOperator is what happens to the operator itself. Generations go on; grants wait.
func losesTheOperator(h *house) {
	h.tell("loses the leader, and is granted leases again under another term", func(ctx context.Context, s *scene) {
		pool, err := s.pool(ctx)
		Expect(err).NotTo(HaveOccurred())
		killed := s.killLeader(ctx)
		s.goesOn(ctx, 40)
		after, err := s.pool(ctx)
		Expect(err).NotTo(HaveOccurred())
		Expect(after.Status.Term).To(BeNumerically(">", pool.Status.Term))
		s.tells(ctx, "TermBegan", fmt.Sprint(after.Status.Term))
		Eventually(ctx, func() bool { return ready(s.managers(ctx)[killed]) }).Should(BeTrue())
		s.untilAllServe(ctx, engines)
	})

	h.tell("has no API server for a minute: what runs goes on, nothing restarts, and leases are granted again", func(ctx context.Context, s *scene) {
		before, running := s.managers(ctx), s.enginePods(ctx)
		led, err := s.holder(ctx)
		Expect(err).NotTo(HaveOccurred())
		pool, err := s.pool(ctx)
		Expect(err).NotTo(HaveOccurred())
		s.sandbox(ctx, "stop", "kube-apiserver")
		for _, name := range electing {
			s.sandbox(ctx, "stop", name)
		}
		// The engines are asked by the operator and by clients, not by the API server.
		Consistently(ctx, func() error {
			for _, pod := range []string{"sglang-0", "sglang-1", "sglang-2", "sglang-3"} {
				if _, err := processOf("/sglang-sim", pod); err != nil {
					return err
				}
			}
			return nil
		}).WithTimeout(time.Minute).WithPolling(time.Second).Should(Succeed())
		s.sandbox(ctx, "start", "kube-apiserver")
		Eventually(ctx, func(ctx context.Context) error {
			_, err := s.pool(ctx)
			return err
		}).Should(Succeed())
		for _, name := range electing {
			s.sandbox(ctx, "start", name)
		}
		s.goesOn(ctx, 40)
		s.tellsOfTerms(ctx, led, pool.Status.Term)
		for name, pod := range s.managers(ctx) {
			Expect(pod.UID).To(Equal(before[name].UID))
			Expect(pod.Status.ContainerStatuses[0].RestartCount).
				To(Equal(before[name].Status.ContainerStatuses[0].RestartCount), name+" was restarted")
		}
		s.untilAllServe(ctx, engines)
		for name, pod := range s.enginePods(ctx) {
			Expect(pod.UID).To(Equal(running[name].UID))
			Expect(pod.Status.ContainerStatuses[0].ContainerID).To(Equal(running[name].Status.ContainerStatuses[0].ContainerID))
		}
	})
}

// tellsOfTerms wants the status, and an event, to tell of another term than the one before if another
// leads than did, and the status to stay with that one if not. Leases have been granted since.
func (s *scene) tellsOfTerms(ctx context.Context, led string, before int64) {
	GinkgoHelper()
	leads, err := s.holder(ctx)
	Expect(err).NotTo(HaveOccurred())
	pool, err := s.pool(ctx)
	Expect(err).NotTo(HaveOccurred())
	if leads == led {
		Expect(pool.Status.Term).To(Equal(before), "nobody else has led")
		return
	}
	Expect(pool.Status.Term).To(BeNumerically(">", before))
	s.tells(ctx, "TermBegan", fmt.Sprint(pool.Status.Term))
}

// killLeader kills the replica that leads, waits until somebody else does, and returns the pod. Restarted
// in place, it may lead again, but as somebody else.
func (s *scene) killLeader(ctx context.Context) string {
	GinkgoHelper()
	before, err := s.holder(ctx)
	Expect(err).NotTo(HaveOccurred())
	killed, _, _ := strings.Cut(before, "_")
	kill("/manager", killed)
	Eventually(ctx, s.holder).ShouldNot(Equal(before))
	return killed
}

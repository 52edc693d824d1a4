package cluster

import (
	"context"
	"fmt"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	v1alpha1 "github.com/berthmaster/berthmaster/api/v1alpha1"
	"github.com/berthmaster/berthmaster/client"
	"github.com/berthmaster/berthmaster/internal/enginesim/execlog"
)

// changesEngines is what an owner does to engines on purpose. Nothing that runs may be lost by it.
func changesEngines(h *house) {
	h.tell("scales the engines up and down under traffic, and loses nothing", func(ctx context.Context, s *scene) {
		s.must(ctx, "scale statefulset/sglang -n rl --replicas=6")
		s.untilAllServe(ctx, 6)
		Eventually(ctx, s.hasRun("sglang-4")).Should(Succeed())
		s.leaves("sglang-4", "sglang-5")
		s.must(ctx, "scale statefulset/sglang -n rl --replicas=4")
		Eventually(ctx, s.history.backend("sglang-5", v1alpha1.BackendDraining, v1alpha1.ReasonPodDeleted)).Should(Succeed())
		s.untilAllServe(ctx, 4)
		s.tells(ctx, "BackendServing", "sglang-4", "sglang-5")
		s.tells(ctx, "BackendDraining", "sglang-4", "sglang-5")
		s.goesOn(ctx, 40)
		Expect(s.player.Counts("").Again).To(BeZero(), "turns had to be made again")
	})

	h.tell("drains a node, and loses nothing", func(ctx context.Context, s *scene) {
		for name, pod := range s.enginePods(ctx) {
			if pod.Spec.NodeName == "n2" {
				s.leaves(name)
			}
		}
		s.must(ctx, "drain n2 --ignore-daemonsets --delete-emptydir-data --timeout=300s")
		s.untilAllServe(ctx, engines)
		for name, pod := range s.enginePods(ctx) {
			Expect(pod.Spec.NodeName).To(Equal("n1"), name)
		}
		s.must(ctx, "uncordon n2")
		// Where the leader was on the node as well, the events that it was about to send may have ended with it. What
		// the pool's status said is kept.
		for _, name := range s.disturbed {
			Expect(s.history.backend(name, v1alpha1.BackendDraining, v1alpha1.ReasonPodDeleted)()).To(Succeed())
		}
		s.tells(ctx, "BackendServing", s.disturbed...)
		s.goesOn(ctx, 40)
		Expect(s.player.Counts("").Again).To(BeZero(), "turns had to be made again")
	})

	h.tell("rolls the StatefulSet with the preStop recipe, and loses nothing", func(ctx context.Context, s *scene) {
		before := s.enginePods(ctx)
		s.leaves(names(before)...)
		s.must(ctx, "rollout restart statefulset/sglang -n rl")
		s.must(ctx, "rollout status statefulset/sglang -n rl --timeout=300s")
		s.untilAllServe(ctx, engines)
		s.goesOn(ctx, 40)
		for name, pod := range s.enginePods(ctx) {
			Expect(pod.UID).NotTo(Equal(before[name].UID))
			Expect(s.history.backend(name, v1alpha1.BackendDraining, v1alpha1.ReasonPodDeleted)()).To(Succeed())
		}
		s.tells(ctx, "BackendDraining", names(before)...)
		s.tells(ctx, "BackendServing", names(before)...)
		Expect(s.player.Counts("").Again).To(BeZero(), "turns had to be made again")
	})
}

// losesEngines is what happens to engines. What ran there is lost and said to be; nothing runs twice.
func losesEngines(h *house) {
	h.tell("loses a container that crashes in place, and keeps the pool", func(ctx context.Context, s *scene) {
		before := s.enginePods(ctx)["sglang-2"]
		s.leaves("sglang-2")
		kill("/sglang-sim", "sglang-2")
		Eventually(ctx, func() int32 { return s.enginePods(ctx)["sglang-2"].Status.ContainerStatuses[0].RestartCount }).
			Should(BeNumerically(">", before.Status.ContainerStatuses[0].RestartCount))
		s.untilAllServe(ctx, engines)
		after := s.enginePods(ctx)["sglang-2"]
		Expect(after.UID).To(Equal(before.UID), "the pod is the same")
		Expect(after.Status.ContainerStatuses[0].ContainerID).NotTo(Equal(before.Status.ContainerStatuses[0].ContainerID))
		s.tells(ctx, "BackendServing", "sglang-2")
		s.goesOn(ctx, 40)
	})

	h.tell("deletes a pod by force and vouches for its end, since nobody else can", func(ctx context.Context, s *scene) {
		s.leaves("sglang-1")
		before := s.enginePods(ctx)["sglang-1"]
		incarnation := fmt.Sprintf("%s/%s", before.UID, before.Status.ContainerStatuses[0].ContainerID)
		vacate := s.occupy(ctx, client.Backend{Name: "sglang-1", Incarnation: incarnation})
		process, err := processOf("/sglang-sim", "sglang-1")
		Expect(err).NotTo(HaveOccurred())
		s.must(ctx, "delete pod sglang-1 -n rl --grace-period=0 --force")
		Eventually(ctx, func() bool { return alive(process) }).Should(BeFalse())
		Eventually(ctx, s.history.backend("sglang-1", v1alpha1.BackendRetired, v1alpha1.ReasonPodMissing)).Should(Succeed())
		// Only a look at the machine tells that the process has ended: no kubelet reports it any more.
		s.vouch(ctx, incarnation)
		vacate()
		Eventually(ctx, func() bool {
			pod, there := s.enginePods(ctx)["sglang-1"]
			return there && pod.UID != before.UID
		}).Should(BeTrue())
		s.untilAllServe(ctx, engines)
		s.tells(ctx, "BackendRetired", "sglang-1")
		s.tells(ctx, "BackendServing", "sglang-1")
		s.goesOn(ctx, 40)
		s.unvouch(ctx)
	})

	h.tell("has a node cut off for a while, and goes on with the other", func(ctx context.Context, s *scene) {
		for name, pod := range s.enginePods(ctx) {
			if pod.Spec.NodeName == "n2" {
				s.leaves(name)
			}
		}
		Expect(s.disturbed).NotTo(BeEmpty(), "no engine is on the node")
		s.sandbox(ctx, "cut", "n2")
		for _, name := range s.disturbed {
			Eventually(ctx, s.away(name)).Should(Succeed())
		}
		s.goesOn(ctx, 20)
		s.mend(ctx, "n2")
		s.untilAllServe(ctx, engines)
		s.tells(ctx, "BackendUnhealthy", s.disturbed...)
		s.goesOn(ctx, 40)
	})
}

// mend plugs a node in again and waits until the cluster has it back.
func (s *scene) mend(ctx context.Context, node string) {
	GinkgoHelper()
	s.sandbox(ctx, "mend", node)
	Eventually(ctx, func() error {
		_, err := s.kubectl(ctx, "wait", "--for=condition=Ready", "node/"+node, "--timeout=1s")
		return err
	}).Should(Succeed())
}

// hasRun wants a backend to have begun an execution of this story.
func (s *scene) hasRun(backend string) func() error {
	return func() error {
		records, err := execlog.ReadFiles(s.executions())
		if err != nil {
			return err
		}
		for _, record := range records {
			if record.Backend == backend && strings.HasPrefix(record.Session, s.prefix) {
				return nil
			}
		}
		return fmt.Errorf("nothing has run on %s", backend)
	}
}

// away wants a backend not to serve any more.
func (s *scene) away(name string) func() error {
	return func() error {
		for _, state := range []v1alpha1.BackendState{v1alpha1.BackendUnhealthy, v1alpha1.BackendPending, v1alpha1.BackendDraining} {
			if err := s.history.backend(name, state, "")(); err == nil {
				return nil
			}
		}
		return fmt.Errorf("%s has served all the time", name)
	}
}

// vouch says of an incarnation that its process has ended.
// occupy takes a lease on an engine whose execution nobody reports, so that something is counted there until
// the engine's process is known to have ended. It returns what ends the session.
func (s *scene) occupy(ctx context.Context, engine client.Backend) (vacate func()) {
	GinkgoHelper()
	pool, err := client.New(s.caller.config())
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(pool.Close)
	const session, sender = "unreported", "train"
	lease, err := pool.Acquire(ctx, client.AcquireRequest{
		RequestID: "unreported-1", SessionID: session, Sender: sender, Epoch: 1, LastBackend: engine, Wait: time.Minute,
	})
	Expect(err).NotTo(HaveOccurred())
	Expect(lease.Backend.Incarnation).To(Equal(engine.Incarnation))
	return func() {
		GinkgoHelper()
		Expect(pool.EndSession(ctx, session, sender)).To(Succeed())
	}
}

func (s *scene) vouch(ctx context.Context, incarnation string) {
	s.confirm(ctx, fmt.Sprintf("[%q]", incarnation))
}

func (s *scene) unvouch(ctx context.Context) { s.confirm(ctx, "[]") }

func (s *scene) confirm(ctx context.Context, list string) {
	s.apply(ctx, fmt.Sprintf(`{apiVersion: %s, kind: InferencePool, metadata: {name: %s, namespace: %s}, spec: {confirmedGone: %s}}`,
		v1alpha1.GroupVersion, poolName, poolNamespace, list), "--server-side", "--field-manager=vouching")
}

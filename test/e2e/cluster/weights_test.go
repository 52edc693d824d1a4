package cluster

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	v1alpha1 "github.com/berthmaster/berthmaster/api/v1alpha1"
	"github.com/berthmaster/berthmaster/internal/enginesim/execlog"
	"github.com/berthmaster/berthmaster/test/rollouts"
	"github.com/berthmaster/berthmaster/test/verdict"
)

// updatesWeights is the trainer who has new weights.
func updatesWeights(h *house) {
	h.tell("moves the pool to other weights while sessions wait: fence, push, publish, open", func(ctx context.Context, s *scene) {
		s.fence(ctx, "Fenced")
		quiet := time.Now()
		for _, pod := range s.enginePods(ctx) {
			push(ctx, pod.Status.PodIP, "step-2")
		}
		s.setWeights(ctx, "version: step-2, source: External")
		Eventually(ctx, s.converged("step-2")).Should(Succeed())
		opened := time.Now()
		for _, sender := range []string{"train", "eval"} {
			s.quiet = append(s.quiet, verdict.Quiet{What: "fenced " + sender, Sender: sender, From: quiet, To: opened})
		}
		s.fence(ctx, "Open")
		s.goesOn(ctx, 40)
		Expect(s.olderThan(opened, "step-2")).To(BeEmpty())
		s.tells(ctx, "VersionPublished", "step-2")
		Expect(s.player.Counts("").Again).To(BeZero(), "turns had to be made again")
	})

	h.tell("rolls new weights out from disk while its leader is killed and a node is cut off", func(ctx context.Context, s *scene) {
		s.leaves(names(s.enginePods(ctx))...) // each in its turn
		pool, err := s.pool(ctx)
		Expect(err).NotTo(HaveOccurred())
		Expect(pool.Status.Weights.Published).To(Equal("step-2"), "the story before this one publishes it")
		s.setWeights(ctx, "version: step-3, source: Disk, path: /weights/step-3, strategy: Rolling, maxUnavailable: 1")
		Eventually(ctx, func() bool { return s.history.saw(updates) }).Should(BeTrue())
		s.killLeader(ctx)
		s.sandbox(ctx, "cut", "n2")
		Expect(s.converged("step-3")(ctx)).NotTo(Succeed(), "it was over before anything happened")
		var beyond []string
		for name, pod := range s.enginePods(ctx) {
			if pod.Spec.NodeName == "n2" {
				beyond = append(beyond, name)
			}
		}
		Expect(beyond).NotTo(BeEmpty(), "no engine is on the node")
		for _, name := range beyond {
			Eventually(ctx, s.away(name)).Should(Succeed())
		}
		s.goesOn(ctx, 20)
		s.mend(ctx, "n2")
		Eventually(ctx, s.converged("step-3")).Should(Succeed())
		published := time.Now()
		s.goesOn(ctx, 40)
		Expect(s.olderThan(published, "step-3")).To(BeEmpty())
		Expect(s.mixed.Load()).To(BeZero(), "a backend is updated only once it is empty")
		s.untilAllServe(ctx, engines)
		s.tells(ctx, "RolloutBegan", "step-3")
		s.tells(ctx, "VersionPublished", "step-3")
	})
}

// updates says whether a backend is being taken over to other weights.
func updates(pool *v1alpha1.InferencePool) bool {
	return slices.ContainsFunc(pool.Status.Backends, func(b v1alpha1.BackendStatus) bool {
		return b.State == v1alpha1.BackendUpdating || b.State == v1alpha1.BackendDraining && b.Reason == v1alpha1.ReasonWeights
	})
}

// setWeights asks for a version, by the fields of spec.weights in YAML's flow style.
func (s *scene) setWeights(ctx context.Context, fields string) {
	GinkgoHelper()
	s.apply(ctx, fmt.Sprintf(`{apiVersion: %s, kind: InferencePool, metadata: {name: %s, namespace: %s}, spec: {weights: {%s}}}`,
		v1alpha1.GroupVersion, poolName, poolNamespace, fields), "--server-side", "--field-manager=trainer")
}

// converged wants the pool to have published a version, and every backend to be on it.
func (s *scene) converged(version string) func(context.Context) error {
	return func(ctx context.Context) error {
		pool, err := s.pool(ctx)
		if err != nil {
			return err
		}
		return rollouts.Converged(version)(pool)
	}
}

// push gives an engine weights, as a trainer does.
func push(ctx context.Context, address, version string) {
	GinkgoHelper()
	body := fmt.Sprintf(`{"model_path": %q, "weight_version": %q, "flush_cache": false}`, version, version)
	req, err := http.NewRequestWithContext(ctx, http.MethodPost,
		fmt.Sprintf("http://%s:30000/update_weights_from_disk", address), strings.NewReader(body))
	Expect(err).NotTo(HaveOccurred())
	req.Header.Set("Content-Type", "application/json")
	reply, err := http.DefaultClient.Do(req)
	Expect(err).NotTo(HaveOccurred())
	defer reply.Body.Close()
	said, err := io.ReadAll(reply.Body)
	Expect(err).NotTo(HaveOccurred())
	Expect(reply.StatusCode).To(Equal(http.StatusOK), string(said))
}

// olderThan are the executions of this story that began after a moment, and ended under other weights.
func (s *scene) olderThan(moment time.Time, version string) []string {
	GinkgoHelper()
	records, err := execlog.ReadFiles(s.executions())
	Expect(err).NotTo(HaveOccurred())
	late := map[string]bool{}
	var found []string
	for _, record := range records {
		switch {
		case !strings.HasPrefix(record.Session, s.prefix):
		case record.Event == execlog.Start && record.Time.After(moment):
			late[record.RID] = true
		case record.Event == execlog.Finish && late[record.RID] && record.WeightVersion != version:
			found = append(found, fmt.Sprintf("%s ran under %s", record.RID, record.WeightVersion))
		}
	}
	Expect(late).NotTo(BeEmpty())
	return found
}

package cluster

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	v1alpha1 "github.com/berthmaster/berthmaster/api/v1alpha1"
	"github.com/berthmaster/berthmaster/internal/enginesim/execlog"
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
		s.apply(ctx, fmt.Sprintf(`{apiVersion: %s, kind: InferencePool, metadata: {name: %s, namespace: %s},
			spec: {weights: {version: step-2, source: External}}}`, v1alpha1.GroupVersion, poolName, poolNamespace),
			"--server-side", "--field-manager=trainer")
		Eventually(ctx, func(ctx context.Context) (string, error) {
			return s.kubectl(ctx, "get", "-n", poolNamespace, poolResource, poolName, "-o", "jsonpath={.status.weights.published}")
		}).Should(Equal("step-2"))
		opened := time.Now()
		for _, sender := range []string{"train", "eval"} {
			s.quiet = append(s.quiet, verdict.Quiet{What: "fenced " + sender, Sender: sender, From: quiet, To: opened})
		}
		s.fence(ctx, "Open")
		s.goesOn(ctx, 40)
		Expect(s.olderThan(opened, "step-2")).To(BeEmpty())
		Expect(s.player.Counts("").Again).To(BeZero(), "turns had to be made again")
	})
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

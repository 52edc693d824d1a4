package cluster

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/berthmaster/berthmaster/internal/enginesim/execlog"
	"github.com/berthmaster/berthmaster/internal/simulate/workload"
	"github.com/berthmaster/berthmaster/test/verdict"
)

// leases is the trainer's part.
func leases(h *house) {
	It("is refused a lease without a token, and with one that has no rights", func(ctx SpecContext) {
		c := h.newCaller(ctx)
		Expect(c.ask(ctx)).To(Equal(http.StatusOK))
		c.token = ""
		Expect(c.ask(ctx)).To(Equal(http.StatusUnauthorized))
		h.apply(ctx, `{apiVersion: v1, kind: ServiceAccount, metadata: {name: stranger, namespace: rl}}`)
		c.token = strings.TrimSpace(h.must(ctx, "create token stranger -n rl"))
		Expect(c.ask(ctx)).To(Equal(http.StatusForbidden))
	}, SpecTimeout(12*time.Minute))

	It("takes leases from a pod with the Python client, by the Service's name and the pod's own token", func(ctx SpecContext) {
		h.untilAllServe(ctx, engines)
		h.must(ctx, "create configmap python-sessions -n rl --from-file=test/e2e/cluster/testdata/sessions.py")
		h.apply(ctx, h.read("test", "e2e", "cluster", "testdata", "python.yaml"))
		h.must(ctx, "wait --for=condition=Complete job/python-sessions -n rl --timeout=300s")
		said := h.must(ctx, "logs -n rl job/python-sessions")
		file := filepath.Join(h.clients(), "python-clients.jsonl")
		Expect(os.WriteFile(file, []byte(said), 0o644)).To(Succeed())
		Expect(pythonRun(h, file).Faults()).To(BeEmpty())
		c := h.newCaller(ctx)
		Eventually(ctx, func(ctx context.Context) error {
			live, err := c.live(ctx)
			if err != nil {
				return err
			}
			return live.Counted()
		}).Should(Succeed())
	}, SpecTimeout(12*time.Minute))
}

// ask reads the pool's live view and returns the status.
func (c *caller) ask(ctx context.Context) int {
	GinkgoHelper()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, c.url, nil)
	Expect(err).NotTo(HaveOccurred())
	if c.token != "" {
		c.authorize(req)
	}
	reply, err := c.http.Do(req)
	Expect(err).NotTo(HaveOccurred())
	defer reply.Body.Close()
	return reply.StatusCode
}

// Those of sessions.py.
const (
	pythonSessions = 12
	pythonTurns    = 5
)

// pythonRun is what the pod's sessions were meant to do, and what was written down.
func pythonRun(h *house, file string) verdict.Run {
	GinkgoHelper()
	clients, err := execlog.ReadClientFiles(file)
	Expect(err).NotTo(HaveOccurred())
	everything, err := execlog.ReadFiles(h.executions())
	Expect(err).NotTo(HaveOccurred())
	run := verdict.Run{Clients: clients, Senders: map[string]string{}}
	for _, record := range everything {
		if strings.HasPrefix(record.Session, "python-") {
			run.Engines = append(run.Engines, record)
		}
	}
	for i := range pythonSessions {
		id := fmt.Sprintf("python-%d", i)
		run.Sessions = append(run.Sessions, workload.Session{ID: id, Turns: make([]workload.Turn, pythonTurns)})
		run.Senders[id] = "train"
	}
	return run
}

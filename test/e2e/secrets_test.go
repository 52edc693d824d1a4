package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/berthmaster/berthmaster/api/v1alpha1"
	"github.com/berthmaster/berthmaster/test/local"
	"github.com/berthmaster/berthmaster/test/story"
)

// Marks that are secrets here and occur nowhere else.
const (
	markedKey    = "marked-api-key-5f3c9a"
	markedAdmin  = "marked-admin-key-77d1e0"
	markedCaller = "marked-caller-token-c04b12"
	markedForged = "marked-lease-token-9e21aa"
)

// errNotYet: what is waited for has not come.
var errNotYet = errors.New("not yet")

var _ = Describe("the keys of engines and the tokens of callers", Ordered, func() {
	var (
		system *local.System
		// said is all that anybody was told.
		said bytes.Buffer
	)

	BeforeAll(func() { system = start("secrets") })

	// call makes a call as the marked caller, and returns what was answered.
	call := func(ctx context.Context, method, url, body string) string {
		GinkgoHelper()
		r, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader(body))
		Expect(err).NotTo(HaveOccurred())
		r.Header.Set("Authorization", "Bearer "+markedCaller)
		r.Header.Set("Content-Type", "application/json")
		reply, err := http.DefaultClient.Do(r)
		Expect(err).NotTo(HaveOccurred())
		defer reply.Body.Close()
		text, err := io.ReadAll(reply.Body)
		Expect(err).NotTo(HaveOccurred())
		return string(text)
	}

	It("are used, by the manager, its callers and the proxy", func(ctx SpecContext) {
		_, err := system.Kubectl().Run(ctx, "create", "secret", "generic", "engine-keys",
			"--from-literal=api-key="+markedKey, "--from-literal=admin-api-key="+markedAdmin)
		Expect(err).NotTo(HaveOccurred())
		_, err = system.Kubectl().Run(ctx, "patch", "inferencepools.inference.berthmaster.io", "policy", "--type=merge",
			"-p", `{"spec":{"backends":{"credentialsSecretRef":{"name":"engine-keys"}}}}`)
		Expect(err).NotTo(HaveOccurred())
		Expect(system.Until(ctx, "the manager to know the keys", func(p *v1alpha1.InferencePool) error {
			if p.Status.ObservedGeneration < p.Generation {
				return errNotYet
			}
			return story.AllServe(engines)(p)
		})).To(Succeed())
		pool := system.PoolURL()
		granted := call(ctx, http.MethodPost, pool+"/leases", `{"requestID":"r1","sessionID":"s1","sender":"train","senderGeneration":0,"epoch":1}`)
		var lease struct {
			Token string `json:"token"`
		}
		Expect(json.Unmarshal([]byte(granted), &lease)).To(Succeed(), granted)
		Expect(lease.Token).NotTo(BeEmpty(), granted)
		said.WriteString(call(ctx, http.MethodPost, pool+"/leases/r1/renew", `{"token":"`+markedForged+`"}`))
		said.WriteString(call(ctx, http.MethodPost, pool+"/leases/r1/release", `{"token":"`+lease.Token+`","outcome":"`+markedForged+`"}`))
		said.WriteString(call(ctx, http.MethodPost, pool+"/leases/r1/release", `{"token":"`+lease.Token+`","outcome":"NotSent"}`))
		said.WriteString(call(ctx, http.MethodPost, pool+"/senders/train/proxy/generate", `{"text":"hello","sampling_params":{"max_new_tokens":2}}`))
		said.WriteString(call(ctx, http.MethodPost, pool+"/senders/train/proxy/pause_generation", `{}`))
		said.WriteString(call(ctx, http.MethodGet, pool, ""))
		said.WriteString(call(ctx, http.MethodGet, pool+"/sessions/s1", ""))
		Expect(system.KillEngine("sglang-1")).To(Succeed()) // errors of connections are told as well
		Expect(system.Until(ctx, "the manager to miss it", func(p *v1alpha1.InferencePool) error {
			if story.AllServe(engines)(p) == nil {
				return errNotYet
			}
			return nil
		})).To(Succeed())
	})

	It("are in no answer, status, event, metric or log", func(ctx SpecContext) {
		for _, object := range []string{"inferencepools.inference.berthmaster.io", "events.events.k8s.io", "configmaps"} {
			out, err := system.Kubectl().Run(ctx, "get", object, "-A", "-o", "yaml")
			Expect(err).NotTo(HaveOccurred())
			said.WriteString(out)
		}
		figures := call(ctx, http.MethodGet, system.MetricsURL(), "")
		Expect(figures).To(ContainSubstring("berthmaster_"))
		said.WriteString(figures)
		log, err := os.ReadFile(filepath.Join(system.Logs(), "manager.log"))
		Expect(err).NotTo(HaveOccurred())
		Expect(log).NotTo(BeEmpty())
		said.Write(log)
		for _, mark := range []string{markedKey, markedAdmin, markedCaller, markedForged} {
			Expect(said.String()).NotTo(ContainSubstring(mark))
		}
	})
})

package e2e

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

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

// markedRequest is no secret: it is where requests are told of.
const markedRequest = "marked-request-41d0b7"

// pools is the full name of the kind.
const pools = "inferencepools.inference.berthmaster.io"

// errNotYet: what is waited for has not come.
var errNotYet = errors.New("not yet")

// told is all that anybody was told, by where.
type told map[string]string

// with are the places that have a text in them, as it is or in the coding of Secrets.
func (p told) with(text string) []string {
	var out []string
	for place, all := range p {
		if strings.Contains(all, text) || strings.Contains(all, base64.StdEncoding.EncodeToString([]byte(text))) {
			out = append(out, place)
		}
	}
	slices.Sort(out)
	return out
}

// collector takes whatever it is sent, as a receiver of traces would.
type collector struct {
	*httptest.Server

	mu  sync.Mutex
	all strings.Builder // guarded by mu
}

func newCollector() *collector {
	c := &collector{}
	c.Server = httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		c.mu.Lock()
		defer c.mu.Unlock()
		_, _ = io.Copy(&c.all, r.Body)
	}))
	DeferCleanup(c.Close)
	return c
}

func (c *collector) text() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.all.String()
}

var _ = Describe("the keys of engines and the tokens of callers", Ordered, func() {
	var (
		system *local.System
		traces *collector
		worker string
		// said are the answers to calls.
		said strings.Builder
		// leased are the tokens of leases.
		leased []string
	)

	BeforeAll(func(ctx SpecContext) {
		traces = newCollector()
		system = startWith("secrets", []string{"--api-key=" + markedKey, "--admin-api-key=" + markedAdmin}, "--authentication=TokenReview", "--log-level=debug", "--trace-endpoint="+traces.URL, "--trace-percent=100")
		for _, command := range []string{
			"create serviceaccount worker", "create rolebinding workers --clusterrole=berthmaster-client --serviceaccount=default:worker",
			"create clusterrolebinding readers --clusterrole=berthmaster-metrics-reader --serviceaccount=default:worker",
		} {
			_, err := system.Kubectl().Run(ctx, strings.Fields(command)...)
			Expect(err).NotTo(HaveOccurred())
		}
		out, err := system.Kubectl().Run(ctx, "create", "token", "worker")
		Expect(err).NotTo(HaveOccurred())
		worker = strings.TrimSpace(out)
	})

	// call makes a call with a bearer token, and returns what was answered.
	call := func(ctx context.Context, bearer, method, url, body string) string {
		GinkgoHelper()
		r, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader(body))
		Expect(err).NotTo(HaveOccurred())
		r.Header.Set("Authorization", "Bearer "+bearer)
		r.Header.Set("Content-Type", "application/json")
		reply, err := http.DefaultClient.Do(r)
		Expect(err).NotTo(HaveOccurred())
		defer reply.Body.Close()
		text, err := io.ReadAll(reply.Body)
		Expect(err).NotTo(HaveOccurred())
		return string(text)
	}

	// everything gathers what is told anywhere, by where.
	everything := func(ctx context.Context) told {
		GinkgoHelper()
		log, err := os.ReadFile(filepath.Join(system.Logs(), "manager.log"))
		Expect(err).NotTo(HaveOccurred())
		all := told{
			"answers": said.String(), "log": string(log), "traces": traces.text(),
			"metrics": call(ctx, worker, http.MethodGet, system.MetricsURL(), ""),
		}
		for place, object := range map[string]string{"status": pools, "events": "events.events.k8s.io", "configmaps": "configmaps"} {
			all[place], err = system.Kubectl().Run(ctx, "get", object, "-A", "-o", "yaml")
			Expect(err).NotTo(HaveOccurred())
		}
		return all
	}

	It("are used, by the manager, its callers and the proxy", func(ctx SpecContext) {
		_, err := system.Kubectl().Run(ctx, "create", "secret", "generic", "engine-keys",
			"--from-literal=api-key="+markedKey, "--from-literal=admin-api-key="+markedAdmin)
		Expect(err).NotTo(HaveOccurred())
		_, err = system.Kubectl().Run(ctx, "patch", pools, "policy", "--type=merge",
			"-p", `{"spec":{"backends":{"credentialsSecretRef":{"name":"engine-keys"}}}}`)
		Expect(err).NotTo(HaveOccurred())
		Expect(system.Until(ctx, "the manager to know the keys", func(p *v1alpha1.InferencePool) error {
			if p.Status.ObservedGeneration < p.Generation {
				return errNotYet
			}
			return story.AllServe(engines)(p)
		})).To(Succeed())
		pool := system.PoolURL()
		acquire := `{"requestID":"` + markedRequest + `","sessionID":"s1","sender":"train","senderGeneration":0,"epoch":1}`
		said.WriteString(call(ctx, markedCaller, http.MethodPost, pool+"/leases", acquire))
		granted := call(ctx, worker, http.MethodPost, pool+"/leases", acquire)
		var lease struct {
			Token string `json:"token"`
		}
		Expect(json.Unmarshal([]byte(granted), &lease)).To(Succeed(), granted)
		Expect(lease.Token).NotTo(BeEmpty(), granted)
		leased = append(leased, lease.Token)
		at := pool + "/leases/" + markedRequest
		for _, c := range []struct{ method, url, body string }{
			{http.MethodPost, at + "/renew", `{"token":"` + markedForged + `"}`},
			{http.MethodPost, at + "/renew", `{"token":"` + lease.Token + `"}`},
			{http.MethodPost, at + "/release", `{"token":"` + lease.Token + `","outcome":"` + markedForged + `"}`},
			{http.MethodPost, at + "/release", `{"token":"` + lease.Token + `","outcome":"NotSent"}`},
			{http.MethodPost, pool + "/leases", acquire},
			{http.MethodPost, pool + "/senders/train/proxy/generate", `{"text":"hello","sampling_params":{"max_new_tokens":2}}`},
			{http.MethodPost, pool + "/senders/train/proxy/pause_generation", `{}`},
			{http.MethodGet, pool + "/senders/train/proxy/server_info", ""}, {http.MethodGet, pool + "/senders/train/proxy/get_server_info", ""},
			{http.MethodGet, pool, ""}, {http.MethodGet, pool + "/sessions/s1", ""}, {http.MethodGet, pool + "-none", ""},
		} {
			said.WriteString(call(ctx, worker, c.method, c.url, c.body))
		}
		Expect(strings.Count(said.String(), `"effective_max_running_requests_per_dp"`)).To(Equal(2), "an engine is asked about itself twice: "+said.String())
		Expect(system.KillEngine("sglang-1")).To(Succeed()) // errors of connections are told as well
		Expect(system.Until(ctx, "the manager to miss it", func(p *v1alpha1.InferencePool) error {
			if story.AllServe(engines)(p) == nil {
				return errNotYet
			}
			return nil
		})).To(Succeed())
		Eventually(traces.text).WithTimeout(time.Minute).Should(ContainSubstring(markedRequest), "spans are sent in batches")
	})

	It("are in no answer, status, event, metric, log or trace", func(ctx SpecContext) {
		all := everything(ctx)
		for place, text := range all {
			Expect(text).NotTo(BeEmpty(), "nothing is told in the "+place)
		}
		secrets := append([]string{markedKey, markedAdmin, markedCaller, markedForged, worker, worker[strings.LastIndex(worker, ".")+1:]}, leased...)
		for _, secret := range secrets {
			Expect(all.with(secret)).To(BeEmpty(), secret)
		}
	})

	It("would be found there if they were", func(ctx SpecContext) {
		all := everything(ctx)
		Expect(all.with(markedRequest)).To(ContainElements("log", "traces"), "what the manager tells of requests")
		Expect(all.with("policy")).To(ContainElements("events", "log", "metrics", "status", "traces"), "what it tells of pools")
		Expect(all.with("sglang-1")).To(ContainElements("answers", "metrics", "status"), "what it tells of backends")
		itself := call(ctx, markedKey, http.MethodGet, system.EngineURLs()[0]+"/server_info", "")
		Expect(itself).To(And(ContainSubstring(markedKey), ContainSubstring(markedAdmin)), "what an engine tells whoever has its key")
		// A key that somebody tells, in what the search reads anew.
		said.WriteString("the engine refused " + markedKey)
		_, err := http.Post(traces.URL, "application/x-protobuf", strings.NewReader("\x0a\x04span"+markedKey))
		Expect(err).NotTo(HaveOccurred())
		for _, command := range [][]string{
			{"create", "configmap", "talkative", "--from-literal=key=" + markedKey},
			{"annotate", pools, "policy", "talkative=" + markedKey},
		} {
			_, err := system.Kubectl().Run(ctx, command...)
			Expect(err).NotTo(HaveOccurred())
		}
		_, err = system.Kubectl().Apply(ctx, `{"apiVersion":"events.k8s.io/v1","kind":"Event","metadata":{"name":"talkative","namespace":"default"},
			"eventTime":"2020-01-01T00:00:00.000000Z","reportingController":"a","reportingInstance":"a","action":"a","reason":"A","type":"Normal","note":"`+markedKey+`",
			"regarding":{"kind":"Pod","namespace":"default","name":"a"}}`)
		Expect(err).NotTo(HaveOccurred())
		Expect(everything(ctx).with(markedKey)).To(ConsistOf("answers", "configmaps", "events", "status", "traces"))
	})
})

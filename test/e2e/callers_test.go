package e2e

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"io"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/berthmaster/berthmaster/api/v1alpha1"
	"github.com/berthmaster/berthmaster/client"
	"github.com/berthmaster/berthmaster/test/local"
	"github.com/berthmaster/berthmaster/test/story"
)

const (
	// audience is that of tokens which were made for the manager and open nothing else.
	audience = "berthmaster"
	// apiServer is that of tokens which open the API server.
	apiServer = "https://kubernetes.default.svc"
)

var _ = Describe("callers of two replicas that guard their ports", Ordered, func() {
	var (
		system *local.System
		trust  *tls.Config
		ca     string // the file of the authorities
	)

	BeforeAll(func(ctx SpecContext) {
		root, err := filepath.Abs("../..")
		Expect(err).NotTo(HaveOccurred())
		programs, err := filepath.Abs(*bin)
		Expect(err).NotTo(HaveOccurred())
		assets := os.Getenv("KUBEBUILDER_ASSETS")
		if assets == "" {
			assets = filepath.Join(root, "bin", "k8s")
		}
		system, err = local.Start(ctx, local.Config{
			Root: root, Bin: programs, Assets: assets, Work: filepath.Join(root, ".cache", "e2e", "callers"),
			Engines: 2, FirstAddress: netip.MustParseAddr("127.0.0.41"), Speed: speed, Say: func(line string) { GinkgoWriter.Println(line) },
			Replicas: 2, ReplicaFlags: []string{"--authentication=TokenReview", "--token-audiences=" + audience, "--tls=Everywhere"},
		})
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(system.Close)
		Expect(system.ApplySample(ctx)).To(Succeed())
		Expect(system.Until(ctx, "every engine to serve", story.AllServe(2))).To(Succeed())
		kubectl := system.Kubectl()
		for _, command := range []string{
			"create serviceaccount worker", "create serviceaccount evaluator", "create serviceaccount stranger",
			"create rolebinding workers --clusterrole=berthmaster-client --serviceaccount=default:worker --serviceaccount=default:evaluator",
			"create serviceaccount trainer",
			"create role trainer --verb=get,patch --resource=inferencepools.inference.berthmaster.io",
			"create rolebinding trainer --role=trainer --serviceaccount=default:trainer",
		} {
			_, err := kubectl.Run(ctx, strings.Fields(command)...)
			Expect(err).NotTo(HaveOccurred())
		}
		_, err = kubectl.Apply(ctx, `{"apiVersion":"inference.berthmaster.io/v1alpha1","kind":"InferencePool","metadata":{"name":"policy","namespace":"default"},
			"spec":{"senders":[{"name":"eval","subjects":[{"kind":"ServiceAccount","name":"evaluator"}]}]}}`, "--server-side", "--field-manager=narrow")
		Expect(err).NotTo(HaveOccurred())
		// Clients find whom to trust in the namespace of the pool.
		var bundle string
		Eventually(func() string {
			bundle, _ = kubectl.Run(ctx, "get", "configmap", "berthmaster-ca", "-o", `jsonpath={.data.ca\.crt}`)
			return bundle
		}).WithTimeout(time.Minute).Should(ContainSubstring("BEGIN CERTIFICATE"))
		ca = filepath.Join(GinkgoT().TempDir(), "ca.crt")
		Expect(os.WriteFile(ca, []byte(bundle), 0o600)).To(Succeed())
		roots := x509.NewCertPool()
		Expect(roots.AppendCertsFromPEM([]byte(bundle))).To(BeTrue())
		trust = &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}
	})

	token := func(ctx context.Context, account, audience string) string {
		GinkgoHelper()
		out, err := system.Kubectl().Run(ctx, "create", "token", account, "--audience="+audience)
		Expect(err).NotTo(HaveOccurred())
		return strings.TrimSpace(out)
	}

	// each makes a call at every replica, of which one forwards it, and hands over status and answer.
	each := func(ctx context.Context, method, path, bearer, body string, judge func(status int, text string)) {
		GinkgoHelper()
		transport := &http.Transport{TLSClientConfig: trust.Clone()}
		defer transport.CloseIdleConnections()
		for _, replica := range system.Replicas() {
			r, err := http.NewRequestWithContext(ctx, method, "https://"+replica.Leases+"/v1alpha1/namespaces/default/inferencepools/policy"+path, strings.NewReader(body))
			Expect(err).NotTo(HaveOccurred())
			r.Header.Set("Content-Type", "application/json")
			if bearer != "" {
				r.Header.Set("Authorization", "Bearer "+bearer)
			}
			reply, err := (&http.Client{Transport: transport}).Do(r)
			Expect(err).NotTo(HaveOccurred())
			text, err := io.ReadAll(reply.Body)
			_ = reply.Body.Close()
			Expect(err).NotTo(HaveOccurred())
			judge(reply.StatusCode, string(text))
		}
	}

	ask := func(sender string) string {
		return `{"requestID":"never","sessionID":"s","sender":"` + sender + `","senderGeneration":0,"epoch":1}`
	}

	It("get nowhere without a token, or without rights, by whichever replica", func(ctx SpecContext) {
		for _, c := range []struct {
			bearer, sender string
			status         int
			reason         string
		}{
			{"", "train", 401, "Unauthenticated"}, {"made-up", "train", 401, "Unauthenticated"},
			{token(ctx, "worker", apiServer), "train", 401, "Unauthenticated"},
			{token(ctx, "stranger", audience), "train", 403, "Forbidden"}, {token(ctx, "worker", audience), "eval", 403, "Forbidden"},
		} {
			judge := func(status int, text string) {
				GinkgoHelper()
				Expect(status).To(Equal(c.status), text)
				Expect(text).To(ContainSubstring(c.reason))
			}
			each(ctx, http.MethodPost, "/leases", c.bearer, ask(c.sender), judge)
			each(ctx, http.MethodPost, "/senders/"+c.sender+"/proxy/generate", c.bearer, `{"text":"x"}`, judge)
			if c.sender == "train" {
				each(ctx, http.MethodGet, "", c.bearer, "", judge)
				each(ctx, http.MethodGet, "/watch", c.bearer, "", judge)
			}
		}
	})

	It("generate as the senders that are theirs, with the Go client, by whichever replica", func(ctx SpecContext) {
		for account, sender := range map[string]string{"worker": "train", "evaluator": "eval"} {
			bearer := token(ctx, account, audience)
			for _, replica := range system.Replicas() {
				pool, err := client.New(client.Config{
					BaseURL: "https://" + replica.Leases + "/v1alpha1/namespaces/default/inferencepools/policy", TLS: trust.Clone(),
					Token: func(context.Context) (string, error) { return bearer, nil },
				})
				Expect(err).NotTo(HaveOccurred())
				session := pool.Session(client.SessionConfig{ID: account + "-" + replica.Name(), Sender: sender, Epoch: 1})
				_, err = session.Generate(ctx, client.Request{Wait: time.Minute, Body: map[string]any{
					"text": "hello", "sampling_params": map[string]any{"max_new_tokens": 4},
				}})
				Expect(err).NotTo(HaveOccurred())
				Expect(session.Close(ctx)).To(Succeed())
				pool.Close()
			}
		}
	})

	It("keep their sessions, hear what is wrong with authorities and tokens, and update weights, with the Python client", func(ctx SpecContext) {
		pytest(ctx, map[string]string{
			"ROUTER": "https://" + system.Replicas()[0].Leases, "CA": ca, "KUBECONFIG": system.Kubectl().Kubeconfig(),
			"TOKEN": token(ctx, "worker", audience), "EVALUATOR": token(ctx, "evaluator", audience), "STRANGER": token(ctx, "stranger", audience),
			"OVERT": token(ctx, "worker", apiServer), "TRAINER": token(ctx, "trainer", apiServer), "ENGINES": strings.Join(system.EngineURLs(), " "), "EXECUTIONS": system.ExecutionLogs(),
		}, "tests/system/test_system_sessions.py", "tests/system/test_system_secure.py", "tests/system/test_system_weights.py")
	}, SpecTimeout(pythonPatience))

	It("are cut in the middle of a stream once their sender is somebody else's, by whichever replica", func(ctx SpecContext) {
		apply := func(spec string) {
			GinkgoHelper()
			_, err := system.Kubectl().Apply(ctx, `{"apiVersion":"inference.berthmaster.io/v1alpha1","kind":"InferencePool","metadata":{"name":"policy","namespace":"default"},
				"spec":`+spec+`}`, "--server-side", "--field-manager=rights")
			Expect(err).NotTo(HaveOccurred())
			Expect(system.Until(ctx, "the status to be of the spec", func(p *v1alpha1.InferencePool) error {
				if p.Status.ObservedGeneration < p.Generation {
					return errNotYet
				}
				return nil
			})).To(Succeed())
		}
		const leases = `"leases":{"ttlSeconds":6,"startSeconds":3}`
		apply(`{` + leases + `}`)
		transport := &http.Transport{TLSClientConfig: trust.Clone()}
		defer transport.CloseIdleConnections()
		var streams []io.ReadCloser
		for _, replica := range system.Replicas() {
			r, err := http.NewRequestWithContext(ctx, http.MethodPost, "https://"+replica.Leases+"/v1alpha1/namespaces/default/inferencepools/policy/senders/train/proxy/generate",
				strings.NewReader(`{"text":"hello","stream":true,"sampling_params":{"max_new_tokens":400000,"ignore_eos":true}}`))
			Expect(err).NotTo(HaveOccurred())
			r.Header.Set("Authorization", "Bearer "+token(ctx, "worker", audience))
			reply, err := (&http.Client{Transport: transport}).Do(r)
			Expect(err).NotTo(HaveOccurred())
			DeferCleanup(reply.Body.Close)
			Expect(reply.StatusCode).To(Equal(http.StatusOK))
			_, err = io.ReadFull(reply.Body, make([]byte, 16))
			Expect(err).NotTo(HaveOccurred())
			streams = append(streams, reply.Body)
		}
		apply(`{` + leases + `,"senders":[{"name":"train","subjects":[{"kind":"ServiceAccount","name":"evaluator"}]}]}`)
		for _, stream := range streams {
			_, err := io.Copy(io.Discard, stream)
			Expect(err).To(HaveOccurred(), "whoever reads it must see that it is cut")
			Expect(ctx.Err()).NotTo(HaveOccurred())
		}
		for _, engine := range system.EngineURLs() {
			Eventually(func(g Gomega) {
				reply, err := http.Get(engine + "/sim/state")
				g.Expect(err).NotTo(HaveOccurred())
				defer reply.Body.Close()
				text, err := io.ReadAll(reply.Body)
				g.Expect(err).NotTo(HaveOccurred())
				g.Expect(string(text)).To(ContainSubstring(`"sequences":[]`), "what was cut runs on")
			}).WithTimeout(time.Minute).Should(Succeed())
		}
		pool, err := system.Pool(ctx)
		Expect(err).NotTo(HaveOccurred())
		Expect(pool.Status.Failure).To(BeNil())
	}, SpecTimeout(2*time.Minute))
})

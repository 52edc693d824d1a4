package apitest

import (
	"context"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"sync"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/berthmaster/berthmaster/api/v1alpha1"
)

var _ = Describe("a command that changes a pool", func() {
	var w *world
	BeforeEach(func(ctx context.Context) { w = newWorld(ctx) })

	It("drains two backends under managers of their own, and takes back only the one", func(ctx context.Context) {
		for _, backend := range []string{"node-a", "node-b"} {
			out, said, err := w.run(ctx, "drain", backend)
			Expect(err).NotTo(HaveOccurred())
			Expect(out).To(Equal("inferencepool.inference.berthmaster.io/policy: backend " + backend + " is being drained\n"))
			Expect(said).To(ContainSubstring("kubectl berth undrain " + backend))
		}
		Expect(w.drained(ctx)).To(ConsistOf("node-a", "node-b"))
		Expect(w.managers(ctx)).To(ContainElements("owner", "kubectl-berth-drain-node-a", "kubectl-berth-drain-node-b"))
		_, _, err := w.run(ctx, "undrain", "node-a")
		Expect(err).NotTo(HaveOccurred())
		Expect(w.drained(ctx)).To(ConsistOf("node-b"))
	})

	It("drains with what the flags say", func(ctx context.Context) {
		_, _, err := w.run(ctx, "drain", "node-a", "--sessions", "Keep", "--deadline", "90s", "--abort-at-deadline")
		Expect(err).NotTo(HaveOccurred())
		Expect(w.pool(ctx).Spec.Drain).To(Equal([]v1alpha1.DrainSpec{
			{Backend: "node-a", DeadlineSeconds: 90, OnDeadline: v1alpha1.DeadlineAbort, Sessions: v1alpha1.DrainKeep},
		}))
	})

	It("leaves a drain alone that another manager holds, unless it is forced", func(ctx context.Context) {
		pool := w.pool(ctx)
		pool.Spec.Drain = []v1alpha1.DrainSpec{{Backend: "node-b"}, {Backend: "node-a"}}
		Expect(api.Update(ctx, pool, client.FieldOwner("somebody"))).To(Succeed())
		_, _, err := w.run(ctx, "undrain", "node-a")
		Expect(err).To(MatchError(ContainSubstring("held by the field manager somebody")))
		Expect(w.drained(ctx)).To(ConsistOf("node-a", "node-b"))
		_, _, err = w.run(ctx, "undrain", "node-a", "--force-conflicts", "--dry-run", "client")
		Expect(err).NotTo(HaveOccurred())
		Expect(w.drained(ctx)).To(ConsistOf("node-a", "node-b"))
		_, _, err = w.run(ctx, "undrain", "node-a", "--force-conflicts")
		Expect(err).NotTo(HaveOccurred())
		Expect(w.drained(ctx)).To(ConsistOf("node-b"))
	})

	It("names the manager that holds a sender's access, changes nothing, and takes it over when forced", func(ctx context.Context) {
		pool := w.pool(ctx)
		pool.Spec.Senders[1].Access = v1alpha1.SenderOpen
		Expect(api.Update(ctx, pool, client.FieldOwner("git"))).To(Succeed())
		_, _, err := w.run(ctx, "fence", "eval")
		Expect(err).To(MatchError(And(ContainSubstring(`spec.senders[name="eval"].access`), ContainSubstring(`"git"`), ContainSubstring("--force-conflicts"))))
		Expect(w.pool(ctx).Spec.Senders[1].Access).To(Equal(v1alpha1.SenderOpen))
		_, _, err = w.run(ctx, "fence", "eval", "--force-conflicts")
		Expect(err).NotTo(HaveOccurred())
		Expect(w.pool(ctx).Spec.Senders[1].Access).To(Equal(v1alpha1.SenderFenced))
		Expect(w.pool(ctx).Spec.Senders[0].Access).To(BeEmpty())
	})

	It("refuses names that the pool does not have", func(ctx context.Context) {
		w.report(ctx, func(s *v1alpha1.InferencePoolStatus) {})
		for _, args := range [][]string{{"drain", "node-c"}, {"fence", "tain"}, {"undrain", "node-c"}, {"undrain", "node-a"}} {
			_, _, err := w.run(ctx, args...)
			Expect(err).To(HaveOccurred(), "%v", args)
		}
		Expect(w.pool(ctx).Spec.Senders).To(HaveLen(2))
		Expect(w.drained(ctx)).To(BeEmpty())
	})

	It("stores nothing on a dry run, and prints the pool as it would be", func(ctx context.Context) {
		out, _, err := w.run(ctx, "drain", "node-a", "--dry-run", "server", "-o", "yaml")
		Expect(err).NotTo(HaveOccurred())
		Expect(out).To(And(ContainSubstring("- backend: node-a"), ContainSubstring("name: train")))
		out, _, err = w.run(ctx, "drain", "node-a", "--dry-run", "client", "-o", "json")
		Expect(err).NotTo(HaveOccurred())
		Expect(out).To(And(ContainSubstring(`"backend": "node-a"`), Not(ContainSubstring("train"))))
		out, _, err = w.run(ctx, "hold", "--dry-run", "server")
		Expect(err).NotTo(HaveOccurred())
		Expect(out).To(ContainSubstring("(server dry run)"))
		Expect(w.drained(ctx)).To(BeEmpty())
		Expect(w.pool(ctx).Spec.Leasing).To(BeEmpty())
	})

	It("raises the epoch once agreed to, and says what would end before", func(ctx context.Context) {
		w.report(ctx, func(s *v1alpha1.InferencePoolStatus) {
			s.Failure = &v1alpha1.PoolFailure{Epoch: 1, RequestID: "r-7", SessionID: "s-7", Backend: "node-a", Time: metav1.Now()}
		})
		_, _, err := w.run(ctx, "raise-epoch")
		Expect(err).To(MatchError(And(ContainSubstring("request r-7"), ContainSubstring("--yes"))))
		Expect(w.pool(ctx).Spec.Epoch).To(BeZero())
		_, _, err = w.run(ctx, "raise-epoch", "--yes")
		Expect(err).NotTo(HaveOccurred())
		Expect(w.pool(ctx).Spec.Epoch).To(BeEquivalentTo(2))
	})

	It("asks for the pool's name where there are several, and says so where there is none", func(ctx context.Context) {
		w.create(ctx, "critic")
		_, _, err := w.run(ctx, "hold")
		Expect(err).To(MatchError(ContainSubstring("critic, policy")))
		_, _, err = w.run(ctx, "hold", "--pool", "policy")
		Expect(err).NotTo(HaveOccurred())
		Expect(w.pool(ctx).Spec.Leasing).To(Equal(v1alpha1.LeasingHeld))
		Expect(api.DeleteAllOf(ctx, &v1alpha1.InferencePool{}, client.InNamespace(w.namespace))).To(Succeed())
		_, _, err = w.run(ctx, "open")
		Expect(err).To(MatchError(ContainSubstring("has no inferencepools.inference.berthmaster.io")))
	})

	It("completes backends, senders and pools", func(ctx context.Context) {
		for want, args := range map[string][]string{
			"node-a\nnode-b\n": {"drain", "node-"}, "eval\n": {"fence", "e"}, "policy\n": {"top", "--pool", ""},
		} {
			out, _, err := w.run(ctx, append([]string{"__complete"}, args...)...)
			Expect(err).NotTo(HaveOccurred())
			Expect(out).To(HavePrefix(want), "of %v", args)
		}
	})

	It("does not make a pool of one entry when the pool went meanwhile", func(ctx context.Context) {
		swap := sync.OnceFunc(func() {
			Expect(api.Delete(context.Background(), w.pool(context.Background()))).To(Succeed())
			w.create(context.Background(), "policy")
		})
		between := interpose(func(r *http.Request) {
			if r.Method == http.MethodPatch {
				swap()
			}
		})
		_, _, err := w.run(ctx, "hold", "--server", between, "--kubeconfig", tokenless())
		Expect(err).To(MatchError(ContainSubstring("is gone or was replaced")))
		Expect(w.pool(ctx).Spec.Leasing).To(BeEmpty())
	})
})

var _ = Describe("--wait", func() {
	var w *world
	BeforeEach(func(ctx context.Context) { w = newWorld(ctx) })

	state := func(state v1alpha1.BackendState, reason v1alpha1.BackendReason, message string) func(*v1alpha1.InferencePoolStatus) {
		return func(s *v1alpha1.InferencePoolStatus) {
			s.Backends = []v1alpha1.BackendStatus{{
				Name: "node-a", Incarnation: "endpoint:node-a/1", State: state, Reason: reason, Message: message, LastTransitionTime: metav1.Now(),
			}}
		}
	}

	It("tells how a drain goes and ends with it", func(ctx context.Context) {
		w.report(ctx, state(v1alpha1.BackendDrained, "", "")) // of an earlier generation: it proves nothing
		r := w.start(ctx, "drain", "node-a", "--wait", "--timeout", "0")
		Eventually(r.said.String).Should(ContainSubstring("does not describe the change yet"))
		w.report(ctx, state(v1alpha1.BackendDraining, v1alpha1.ReasonDrainRequested, "3 executions run"))
		Eventually(r.said.String).Should(ContainSubstring("node-a is Draining (DrainRequested): 3 executions run"))
		Consistently(r.done, "100ms").ShouldNot(Receive())
		w.report(ctx, state(v1alpha1.BackendDrained, v1alpha1.ReasonDrainRequested, ""))
		Eventually(r.done).Should(Receive(BeNil()))
		Expect(r.said.String()).To(ContainSubstring("node-a is drained: nothing runs there"))
	})

	It("says at its time-out where things stand and what to look at", func(ctx context.Context) {
		_, _, err := w.run(ctx, "fence", "eval", "--wait", "--timeout", "1ms")
		Expect(err).To(MatchError(And(ContainSubstring("not done after 1ms"), ContainSubstring("the change stands"), ContainSubstring("kubectl berth doctor"))))
		Expect(w.pool(ctx).Spec.Senders[1].Access).To(Equal(v1alpha1.SenderFenced))
	})

	It("ends when the pool is replaced", func(ctx context.Context) {
		r := w.start(ctx, "hold", "--wait")
		Eventually(r.said.String).Should(ContainSubstring("does not describe the change yet"))
		Expect(api.Delete(ctx, w.pool(ctx))).To(Succeed())
		w.create(ctx, "policy")
		Eventually(r.done).Should(Receive(MatchError(Or(ContainSubstring("replaced"), ContainSubstring("gone")))))
	})

	It("is interrupted without undoing the change", func(ctx context.Context) {
		ctx, interrupt := context.WithCancel(ctx)
		r := w.start(ctx, "hold", "--wait")
		Eventually(r.said.String).Should(ContainSubstring("does not describe the change yet"))
		interrupt()
		Eventually(r.done).Should(Receive(MatchError(ContainSubstring("the change stands"))))
		Expect(w.pool(context.Background()).Spec.Leasing).To(Equal(v1alpha1.LeasingHeld))
	})

	It("believes a condition only of the generation that it applied", func(ctx context.Context) {
		r := w.start(ctx, "hold", "--wait")
		Eventually(func() v1alpha1.Leasing { return w.pool(ctx).Spec.Leasing }).Should(Equal(v1alpha1.LeasingHeld))
		condition := func(generation int64) func(*v1alpha1.InferencePoolStatus) {
			return func(s *v1alpha1.InferencePoolStatus) {
				s.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionHeld, Status: metav1.ConditionTrue, Reason: "LeasingHeld",
					ObservedGeneration: generation, LastTransitionTime: metav1.Now()}}
			}
		}
		w.report(ctx, condition(w.pool(ctx).Generation-1))
		Consistently(r.done, "2s").ShouldNot(Receive())
		w.report(ctx, condition(w.pool(ctx).Generation))
		Eventually(r.done).Should(Receive(BeNil()))
	})
})

// interpose is an API server on plain HTTP that has each request seen before it is passed on.
func interpose(see func(*http.Request)) string {
	target, err := url.Parse(config.Host)
	Expect(err).NotTo(HaveOccurred())
	transport, err := rest.TransportFor(config)
	Expect(err).NotTo(HaveOccurred())
	passing := httputil.NewSingleHostReverseProxy(target)
	passing.Transport = transport
	server := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		defer GinkgoRecover()
		see(r)
		passing.ServeHTTP(rw, r)
	}))
	DeferCleanup(server.Close)
	return server.URL
}

// tokenless is an empty kubeconfig.
func tokenless() string {
	path := filepath.Join(GinkgoT().TempDir(), "empty")
	Expect(os.WriteFile(path, []byte("apiVersion: v1\nkind: Config\n"), 0o600)).To(Succeed())
	return path
}

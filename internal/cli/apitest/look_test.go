package apitest

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/portforward"
	"k8s.io/streaming/pkg/httpstream"
	"k8s.io/streaming/pkg/httpstream/spdy"

	"github.com/berthmaster/berthmaster/api/v1alpha1"
	"github.com/berthmaster/berthmaster/internal/cli/doctor"
	"github.com/berthmaster/berthmaster/internal/cli/live"
	"github.com/berthmaster/berthmaster/internal/enginesim"
	"github.com/berthmaster/berthmaster/internal/router"
	"github.com/berthmaster/berthmaster/internal/router/server"
)

// routerOf serves the lease API for the world's pool, whose two backends are one simulated engine each, and
// returns its URL. Each call is seen first.
func routerOf(w *world, see func(*http.Request)) string {
	GinkgoHelper()
	fleet := router.Fleet{
		Epoch: 1, Leasing: router.LeasingOpen, Config: router.DefaultConfig(),
		Senders: []router.Sender{{Name: "train", Access: router.AccessOpen}, {Name: "eval", Access: router.AccessOpen}},
	}
	for _, name := range []string{"node-a", "node-b"} {
		fleet.Members = append(fleet.Members, router.Member{
			Name: router.BackendName(name), Incarnation: router.Incarnation("endpoint:" + name + "/1"), URL: engine(), Capacity: 64,
		})
	}
	now := time.Now()
	table := router.NewTable("uid-1", nil, now)
	table.Lead(1, router.Takeover{}, now)
	Expect(table.Apply(fleet, now)).To(Succeed())
	for _, m := range fleet.Members {
		table.Observe(router.Observation{Incarnation: m.Incarnation, Seq: 1, Health: router.Healthy, EngineTotal: -1}, now)
	}
	pools := router.NewPools()
	pools.Put(router.PoolKey{Namespace: w.namespace, Name: "policy"}, table)
	leases, err := server.New(server.Config{Pools: pools, Keys: server.Keys{Current: make([]byte, 32)}})
	Expect(err).NotTo(HaveOccurred())
	front := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		see(r)
		leases.ServeHTTP(rw, r)
	}))
	DeferCleanup(func() { leases.Close(); front.Close() })
	return front.URL
}

func unseen(*http.Request) {}

func unchanged(*v1alpha1.InferencePoolStatus) {}

func engine() string {
	GinkgoHelper()
	simulated, err := enginesim.New(enginesim.Config{Speed: 100})
	Expect(err).NotTo(HaveOccurred())
	socket, err := simulated.Listen("127.0.0.1:0")
	Expect(err).NotTo(HaveOccurred())
	done := make(chan error, 1)
	go func() { done <- socket.Serve() }()
	DeferCleanup(func() { simulated.Close(); <-done })
	return socket.URL()
}

var _ = Describe("a command that looks", func() {
	var w *world
	BeforeEach(func(ctx context.Context) { w = newWorld(ctx) })

	It("replays a trace, and then shows, lists and explains what came of it", func(ctx context.Context) {
		url := routerOf(w, unseen)
		trace := filepath.Join(GinkgoT().TempDir(), "small.csv")
		Expect(os.WriteFile(trace, []byte("arrival_ms,session,turn,input_tokens,output_tokens\n0,a,0,40,5\n0,b,0,40,6\n100,a,1,60,7\n"), 0o600)).To(Succeed())
		out, _, err := w.run(ctx, "replay", trace, "--sender", "train", "--router-url", url, "-o", "json")
		Expect(err).NotTo(HaveOccurred())
		var played struct {
			Done     int
			Backends map[string]struct{ Sessions, OutputTokens int64 }
		}
		Expect(json.Unmarshal([]byte(out), &played)).To(Succeed())
		Expect(played.Done).To(Equal(3))
		Expect(played.Backends["node-a"].OutputTokens + played.Backends["node-b"].OutputTokens).To(BeEquivalentTo(18))
		Expect(played.Backends["node-a"].Sessions + played.Backends["node-b"].Sessions).To(BeEquivalentTo(2))

		out, _, err = w.run(ctx, "sessions", "--router-url", url)
		Expect(err).NotTo(HaveOccurred())
		Expect(out).To(BeEmpty(), "a replay ends its sessions")
	})

	It("ends a session at its first turn that fails, and says so", func(ctx context.Context) {
		url := routerOf(w, unseen)
		trace := filepath.Join(GinkgoT().TempDir(), "long.csv")
		Expect(os.WriteFile(trace, []byte("arrival_ms,session,turn,input_tokens,output_tokens\n"+
			"0,a,0,600000,5\n1,a,1,600100,5\n0,b,0,40,6\n"), 0o600)).To(Succeed())
		out, _, err := w.run(ctx, "replay", trace, "--sender", "train", "--router-url", url)
		Expect(err).To(MatchError(And(ContainSubstring("1 of 3 turns failed"), ContainSubstring("replay-a: "))))
		Expect(out).To(ContainSubstring("OUTPUT TOKENS"))
		_, _, err = w.run(ctx, "replay", trace, "--sender", "nobody", "--router-url", url)
		Expect(err).To(MatchError(ContainSubstring("has no sender nobody")))
	})

	It("shows the load without colours, bars and control characters where there is no terminal", func(ctx context.Context) {
		out, said, err := w.run(ctx, "top", "--router-url", routerOf(w, unseen))
		Expect(err).NotTo(HaveOccurred())
		Expect(said).To(BeEmpty())
		Expect(out).To(And(ContainSubstring("node-a"), ContainSubstring("0/64"), Not(ContainSubstring("\x1b")), Not(ContainSubstring("░"))))
	})

	It("lists and explains a session", func(ctx context.Context) {
		url := routerOf(w, unseen)
		acquire(url, w, "s-1")
		out, _, err := w.run(ctx, "sessions", "--router-url", url, "--sender", "train", "-o", "yaml")
		Expect(err).NotTo(HaveOccurred())
		Expect(out).To(And(ContainSubstring("sessionID: s-1"), ContainSubstring("activeLeases: 1")))
		out, _, err = w.run(ctx, "explain", "s-1", "--router-url", url)
		Expect(err).NotTo(HaveOccurred())
		Expect(out).To(And(ContainSubstring("has 1 lease"), ContainSubstring("best of 2 backends"), ContainSubstring("next turn goes there again")))
		_, _, err = w.run(ctx, "explain", "s-2", "--router-url", url)
		Expect(err).To(MatchError(ContainSubstring("SessionUnknown")))
		out, _, err = w.run(ctx, "__complete", "explain", "--router-url", url, "s")
		Expect(err).NotTo(HaveOccurred())
		Expect(out).To(HavePrefix("s-1\n"))
	})

	It("asks as a service account by a token of its own", func(ctx context.Context) {
		Expect(api.Create(ctx, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "viewer", Namespace: w.namespace}})).To(Succeed())
		shown := make(chan string, 10)
		url := routerOf(w, func(r *http.Request) { shown <- r.Header.Get("Authorization") })
		_, _, err := w.run(ctx, "top", "--router-url", url, "--as-service-account", "viewer")
		Expect(err).NotTo(HaveOccurred())
		token, ok := strings.CutPrefix(<-shown, "Bearer ")
		Expect(ok).To(BeTrue())
		review := &authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: token}}
		Expect(api.Create(ctx, review)).To(Succeed())
		Expect(review.Status.User.Username).To(Equal("system:serviceaccount:" + w.namespace + ":viewer"))

		_, _, err = w.run(ctx, "top", "--router-url", url, "--as-service-account", "nobody")
		Expect(err).To(MatchError(ContainSubstring("has no service account nobody")))
		_, _, err = w.run(ctx, "top", "--router-url", "http://router.example:8085", "--as-service-account", "viewer")
		Expect(err).To(MatchError(ContainSubstring("without TLS")))
	})

	It("tells a user of a client certificate what a router that wants a token needs", func(ctx context.Context) {
		strict := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) {
			rw.WriteHeader(http.StatusUnauthorized)
			fmt.Fprint(rw, `{"reason":"Unauthenticated","status":401,"title":"The caller is not authenticated."}`)
		}))
		DeferCleanup(strict.Close)
		_, _, err := w.run(ctx, "top", "--router-url", strict.URL)
		Expect(err).To(MatchError(ContainSubstring("--as-service-account")))
	})

	It("finds what is wrong, and fails for it", func(ctx context.Context) {
		url := routerOf(w, unseen)
		w.report(ctx, unchanged)
		out, _, err := w.run(ctx, "doctor", "--router-url", url)
		Expect(err).NotTo(HaveOccurred())
		Expect(out).To(Equal("Nothing wrong found.\n"))
		out, _, err = w.run(ctx, "doctor", "--router-url", url, "-o", "json")
		Expect(err).NotTo(HaveOccurred())
		Expect(out).To(Equal("[]\n"))

		_, _, err = w.run(ctx, "hold")
		Expect(err).NotTo(HaveOccurred())
		w.report(ctx, unchanged)
		out, _, err = w.run(ctx, "doctor", "--router-url", url, "-o", "json")
		Expect(err).NotTo(HaveOccurred(), "to be held is no fault")
		var found []doctor.Finding
		Expect(json.Unmarshal([]byte(out), &found)).To(Succeed())
		Expect(found).To(HaveLen(1))
		Expect(found[0].Fault).To(Equal(doctor.LeasingHeld))

		out, _, err = w.run(ctx, "doctor")
		Expect(err).To(MatchError(ContainSubstring("see above")))
		Expect(out).To(ContainSubstring("no pod of the manager is ready"))
	})

	It("reaches the router through a port-forward of its own, by the real API server", func(ctx context.Context) {
		url := routerOf(w, unseen)
		namespace := managerPod(ctx, url)
		out, _, err := w.run(ctx, "top", "--router-namespace", namespace)
		Expect(err).NotTo(HaveOccurred())
		Expect(out).To(ContainSubstring("node-b"))
		_, _, err = w.run(ctx, "top", "--router-namespace", "elsewhere")
		Expect(err).To(MatchError(ContainSubstring("--router-namespace")))
	})
})

func acquire(base string, w *world, session string) {
	GinkgoHelper()
	pool := live.New(base, http.DefaultTransport, w.namespace, "policy")
	body := fmt.Sprintf(`{"requestID":"r-%s","sessionID":%q,"sender":"train","senderGeneration":0,"epoch":1}`, session, session)
	reply, err := http.Post(pool.URL()+"/leases", "application/json", strings.NewReader(body))
	Expect(err).NotTo(HaveOccurred())
	defer reply.Body.Close()
	Expect(reply.StatusCode).To(Equal(http.StatusCreated))
}

// managerPod makes a pod of the manager on a node whose kubelet forwards its port 8085 to the router, and
// returns its namespace.
func managerPod(ctx context.Context, routerURL string) string {
	GinkgoHelper()
	target, err := url.Parse(routerURL)
	Expect(err).NotTo(HaveOccurred())
	kubelet := httptest.NewTLSServer(&kubelet{reach: map[string]string{"8085": target.Host}})
	DeferCleanup(kubelet.Close)
	host, port, err := net.SplitHostPort(kubelet.Listener.Addr().String())
	Expect(err).NotTo(HaveOccurred())
	number, err := strconv.Atoi(port)
	Expect(err).NotTo(HaveOccurred())

	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "manager-"}}
	Expect(api.Create(ctx, namespace)).To(Succeed())
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{GenerateName: "node-"}}
	Expect(api.Create(ctx, node)).To(Succeed())
	node.Status = corev1.NodeStatus{
		Addresses:       []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: host}},
		DaemonEndpoints: corev1.NodeDaemonEndpoints{KubeletEndpoint: corev1.DaemonEndpoint{Port: int32(number)}},
	}
	Expect(api.Status().Update(ctx, node)).To(Succeed())
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "manager-0", Namespace: namespace.Name, Labels: map[string]string{"app.kubernetes.io/name": "berthmaster"}},
		Spec: corev1.PodSpec{NodeName: node.Name, Containers: []corev1.Container{{
			Name: "manager", Image: "berthmaster", Args: []string{"--lease-bind-address=127.0.0.1:8085"},
		}}},
	}
	Eventually(func() error { // the namespace gets its default service account from a controller that is not here
		err := api.Create(ctx, pod)
		if apierrors.IsForbidden(err) {
			_ = api.Create(ctx, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "default", Namespace: namespace.Name}})
		}
		return err
	}).Should(Succeed())
	pod.Status = corev1.PodStatus{Phase: corev1.PodRunning, Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}}
	Expect(api.Status().Update(ctx, pod)).To(Succeed())
	return namespace.Name
}

// kubelet forwards ports of pods as a kubelet does.
type kubelet struct {
	// reach is the address that a port leads to.
	reach map[string]string
}

func (k *kubelet) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	if !strings.HasPrefix(r.URL.Path, "/portForward/") {
		http.NotFound(rw, r)
		return
	}
	if _, err := httpstream.Handshake(r, rw, []string{portforward.PortForwardProtocolV1Name}); err != nil {
		return
	}
	streams := make(chan httpstream.Stream, 16)
	link := spdy.NewResponseUpgrader().UpgradeResponse(rw, r, func(s httpstream.Stream, _ <-chan struct{}) error {
		streams <- s
		return nil
	})
	if link == nil {
		return
	}
	defer link.Close()
	for {
		select {
		case s := <-streams:
			if s.Headers().Get(corev1.StreamType) == corev1.StreamTypeData {
				go k.join(s)
			}
		case <-link.CloseChan():
			return
		}
	}
}

func (k *kubelet) join(data httpstream.Stream) {
	conn, err := net.Dial("tcp", k.reach[data.Headers().Get(corev1.PortHeader)])
	if err != nil {
		_ = data.Reset()
		return
	}
	go func() {
		_, _ = io.Copy(conn, data)
		conn.Close()
	}()
	_, _ = io.Copy(data, conn)
	data.Close()
}

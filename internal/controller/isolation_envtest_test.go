package controller_test

import (
	"context"
	"fmt"
	"net"
	"strconv"
	"sync/atomic"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/berthmaster/berthmaster/api/v1alpha1"
	"github.com/berthmaster/berthmaster/internal/router"
)

// silentEngine accepts connections and never answers.
type silentEngine struct {
	url             v1alpha1.EndpointURL
	accepted, ended atomic.Int64
}

func openSilentEngine(ctx context.Context) *silentEngine {
	GinkgoHelper()
	var lc net.ListenConfig
	listener, err := lc.Listen(ctx, "tcp", "127.0.77.200:0")
	Expect(err).NotTo(HaveOccurred())
	s := &silentEngine{url: v1alpha1.EndpointURL("http://" + listener.Addr().String())}
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			s.accepted.Add(1)
			go s.hold(conn)
		}
	}()
	DeferCleanup(func() { _ = listener.Close() })
	return s
}

// hold reads until the caller gives up.
func (s *silentEngine) hold(conn net.Conn) {
	defer conn.Close()
	defer s.ended.Add(1)
	buffer := make([]byte, 512)
	for {
		if _, err := conn.Read(buffer); err != nil {
			return
		}
	}
}

// endpointPool creates a pool of one static endpoint under a name of its own.
func (h *house) endpointPool(ctx context.Context, name string, url v1alpha1.EndpointURL, timeoutSeconds int32) {
	GinkgoHelper()
	Expect(admin.Create(ctx, &v1alpha1.InferencePool{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: h.namespace},
		Spec: v1alpha1.InferencePoolSpec{
			Backends: v1alpha1.BackendsSpec{Endpoints: []v1alpha1.Endpoint{{Name: "only", URL: url}}},
			Senders:  []v1alpha1.SenderSpec{{Name: "train"}},
			Health:   v1alpha1.HealthSpec{PeriodSeconds: 1, TimeoutSeconds: timeoutSeconds},
		},
	})).To(Succeed())
}

func (h *house) named(ctx context.Context, g Gomega, name string) *v1alpha1.InferencePool {
	pool := &v1alpha1.InferencePool{}
	g.Expect(admin.Get(ctx, client.ObjectKey{Namespace: h.namespace, Name: name}, pool)).To(Succeed())
	return pool
}

// What is on time is not read from a clock: all that the other pools do is done while the first
// call to the silent engine still hangs (R12).
var _ = It("serves ninety-nine pools on time beside one whose engine never answers", func(ctx context.Context) {
	const others = 99
	h := openHouse(ctx)
	silent, port := openSilentEngine(ctx), freePort(ctx)
	h.endpointPool(ctx, "silent", silent.url, 600)
	Eventually(silent.accepted.Load).Should(BeNumerically(">=", 1))
	name := func(i int) string { return fmt.Sprintf("pool-%d", i) }
	for i := range others {
		at := net.JoinHostPort(address(i), strconv.Itoa(int(port)))
		startEngine(at)
		h.endpointPool(ctx, name(i), v1alpha1.EndpointURL("http://"+at), 25)
	}

	By("reporting every other pool Ready")
	for i := range others {
		Eventually(func(g Gomega) {
			ready := meta.FindStatusCondition(h.named(ctx, g, name(i)).Status.Conditions, v1alpha1.ConditionReady)
			g.Expect(ready).To(HaveField("Status", metav1.ConditionTrue), name(i))
		}).Should(Succeed())
	}

	By("granting in every other pool")
	for i := range others {
		table, found := h.pools.Get(router.PoolKey{Namespace: h.namespace, Name: name(i)})
		Expect(found).To(BeTrue())
		_, err := table.Acquire(request("s", i), time.Now())
		Expect(err).NotTo(HaveOccurred(), name(i))
	}

	By("reporting a drain of another pool")
	Eventually(func(g Gomega) {
		pool := h.named(ctx, g, name(0))
		pool.Spec.Drain = []v1alpha1.DrainSpec{{Backend: "only"}}
		g.Expect(admin.Update(ctx, pool)).To(Succeed())
	}).Should(Succeed())
	Eventually(func(g Gomega) {
		g.Expect(h.named(ctx, g, name(0)).Status.Backends).To(ContainElement(HaveField("State", v1alpha1.BackendDraining)))
	}).Should(Succeed())

	Expect(silent.ended.Load()).To(BeZero(), "the calls to the silent engine still hang")
})

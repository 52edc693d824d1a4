package controller_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/berthmaster/berthmaster/api/v1alpha1"
	"github.com/berthmaster/berthmaster/internal/router"
)

var _ = Describe("an engine that two pools claim", func() {
	It("stays with the older and goes to the other when that one goes", func(ctx context.Context) {
		h := openHouse(ctx)
		f := openFleet(ctx, h, 1)
		f.createPool(ctx)
		h.untilServing(ctx, 1)

		younger := &v1alpha1.InferencePool{
			ObjectMeta: metav1.ObjectMeta{Name: "younger", Namespace: h.namespace},
			Spec: v1alpha1.InferencePoolSpec{
				Backends: v1alpha1.BackendsSpec{Endpoints: []v1alpha1.Endpoint{{Name: "mine", URL: f.url(0)}}},
				Senders:  []v1alpha1.SenderSpec{{Name: "train"}},
				Health:   v1alpha1.HealthSpec{PeriodSeconds: 1},
			},
		}
		// Pools of one second are told apart by their UIDs: let a second pass.
		first := h.pool(ctx)
		Eventually(func() time.Duration { return time.Since(first.CreationTimestamp.Time) }).Should(BeNumerically(">", 2*time.Second))
		Expect(admin.Create(ctx, younger)).To(Succeed())
		state := func() v1alpha1.BackendState {
			Expect(admin.Get(ctx, client.ObjectKeyFromObject(younger), younger)).To(Succeed())
			if len(younger.Status.Backends) == 0 {
				return ""
			}
			return younger.Status.Backends[0].State
		}
		reason := func() v1alpha1.BackendReason {
			if state() == "" {
				return ""
			}
			return younger.Status.Backends[0].Reason
		}
		Eventually(reason).Should(Equal(v1alpha1.ReasonBackendConflict))
		Expect(younger.Status.Backends[0].State).To(Equal(v1alpha1.BackendPending))
		Expect(h.pool(ctx).Status.Summary.Serving).To(BeEquivalentTo(1))

		Expect(admin.Delete(ctx, first)).To(Succeed())
		Eventually(state).Should(Equal(v1alpha1.BackendServing))
		table, found := h.pools.Get(router.PoolKey{Namespace: h.namespace, Name: "younger"})
		Expect(found).To(BeTrue())
		Expect(table.Snapshot(time.Now()).Backends).To(ConsistOf(HaveField("UnknownLoad", true)),
			"the older pool may have left something running there")
	})

	It("stays with the older after a restart, whichever is looked at first, and goes to the other then", func(ctx context.Context) {
		h := openHouse(ctx)
		f := openFleet(ctx, h, 1)
		// The younger sorts before the older, and there are enough pools to keep every worker busy.
		h.claim(ctx, "z-older", f.url(0))
		h.untilState(ctx, "z-older", v1alpha1.BackendServing, "")
		passASecond(h.named(ctx, Default, "z-older"))
		const younger = 6
		for i := range younger {
			h.claim(ctx, fmt.Sprintf("a-younger-%d", i), f.url(0))
			h.untilState(ctx, fmt.Sprintf("a-younger-%d", i), v1alpha1.BackendPending, v1alpha1.ReasonBackendConflict)
		}
		for range 2 {
			h.stop()
			h.start()
			for i := range younger {
				name := fmt.Sprintf("a-younger-%d", i)
				term := h.named(ctx, Default, name).Status.Term
				Eventually(func(g Gomega) { g.Expect(h.named(ctx, g, name).Status.Term).To(BeNumerically(">=", term)) }).Should(Succeed())
				Eventually(h.found(name)).Should(BeTrue())
				Expect(h.met(name)).To(BeEmpty(), "no router but the older pool's may be told of the engine")
			}
			Eventually(func() []router.BackendSnapshot { return h.members("z-older") }).Should(HaveLen(1))
			for i := range younger {
				h.untilState(ctx, fmt.Sprintf("a-younger-%d", i), v1alpha1.BackendPending, v1alpha1.ReasonBackendConflict)
			}
		}

		Expect(admin.Delete(ctx, h.named(ctx, Default, "z-older"))).To(Succeed())
		owners := func() (n int) {
			for i := range younger {
				n += len(h.members(fmt.Sprintf("a-younger-%d", i)))
			}
			return n
		}
		Eventually(owners).Should(Equal(1))
		Consistently(owners).WithTimeout(2*time.Second).Should(Equal(1), "exactly one of the others has it")
	})

	It("does not stay with a pool that was deleted and made anew", func(ctx context.Context) {
		h := openHouse(ctx)
		f := openFleet(ctx, h, 1)
		h.claim(ctx, "first", f.url(0))
		h.untilState(ctx, "first", v1alpha1.BackendServing, "")
		passASecond(h.named(ctx, Default, "first"))
		h.claim(ctx, "second", f.url(0))
		h.untilState(ctx, "second", v1alpha1.BackendPending, v1alpha1.ReasonBackendConflict)
		passASecond(h.named(ctx, Default, "second"))
		Expect(admin.Delete(ctx, h.named(ctx, Default, "first"))).To(Succeed())
		h.claim(ctx, "first", f.url(0))
		h.untilState(ctx, "first", v1alpha1.BackendPending, v1alpha1.ReasonBackendConflict)
		Eventually(func() []router.BackendSnapshot { return h.members("second") }).Should(HaveLen(1))
	})
})

var _ = Describe("an engine that one pool names twice", func() {
	It("belongs to the first of two spellings of its URL, and to the other when that one goes", func(ctx context.Context) {
		h := openHouse(ctx)
		f := openFleet(ctx, h, 1)
		plain := v1alpha1.EndpointURL(strings.TrimRight(string(f.url(0)), "/"))
		h.createPool(ctx, v1alpha1.BackendsSpec{Endpoints: []v1alpha1.Endpoint{{Name: "one", URL: plain}, {Name: "other", URL: f.url(0)}}})
		h.untilBackend(ctx, "one", v1alpha1.BackendServing, "")
		h.untilBackend(ctx, "other", v1alpha1.BackendPending, v1alpha1.ReasonBackendConflict)
		Expect(h.pool(ctx).Status.Summary.Ready).To(Equal("1/2"))
		h.changePool(ctx, func(s *v1alpha1.InferencePoolSpec) { s.Backends.Endpoints = s.Backends.Endpoints[1:] })
		h.untilBackend(ctx, "other", v1alpha1.BackendServing, "")
	})
})

// claim makes a pool of one endpoint.
func (h *house) claim(ctx context.Context, name string, url v1alpha1.EndpointURL) {
	GinkgoHelper()
	h.endpointPool(ctx, name, url, 25)
}

// passASecond waits until a pool made now is younger than this one: the API tells ages to the second.
func passASecond(pool *v1alpha1.InferencePool) {
	GinkgoHelper()
	Eventually(func() time.Duration { return time.Since(pool.CreationTimestamp.Time) }).Should(BeNumerically(">", 2*time.Second))
}

// untilState waits for the state of the one backend of a pool.
func (h *house) untilState(ctx context.Context, name string, state v1alpha1.BackendState, reason v1alpha1.BackendReason) {
	GinkgoHelper()
	Eventually(func(g Gomega) {
		g.Expect(h.named(ctx, g, name).Status.Backends).To(ConsistOf(And(HaveField("State", state), HaveField("Reason", reason))), name)
	}).Should(Succeed())
}

// found reports whether a pool has a router.
func (h *house) found(name string) func() bool {
	return func() bool {
		_, found := h.pools.Get(router.PoolKey{Namespace: h.namespace, Name: name})
		return found
	}
}

// met are the backends that a pool's router was ever told of and has not forgotten.
func (h *house) met(name string) []router.BackendSnapshot {
	table, found := h.pools.Get(router.PoolKey{Namespace: h.namespace, Name: name})
	if !found {
		return nil
	}
	return table.Snapshot(time.Now()).Backends
}

// members are the backends that a pool's router may lease.
func (h *house) members(name string) []router.BackendSnapshot {
	return slices.DeleteFunc(h.met(name), func(b router.BackendSnapshot) bool { return b.Retired })
}

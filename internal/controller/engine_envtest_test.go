package controller_test

import (
	"bytes"
	"context"
	"encoding/json"
	"net"
	"net/http"
	"strconv"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/berthmaster/berthmaster/api/v1alpha1"
	"github.com/berthmaster/berthmaster/internal/enginesim"
	"github.com/berthmaster/berthmaster/internal/router"
)

// mode sets spec.engineMode.
func mode(to v1alpha1.EngineMode) func(*v1alpha1.InferencePoolSpec) {
	return func(s *v1alpha1.InferencePoolSpec) { s.EngineMode = to }
}

// base is the canonical base URL of an engine.
func (f *fleet) base(i int) string { return string(f.url(i))[:len(f.url(i))-2] }

// tell posts to an engine as somebody who is not its operator.
func (f *fleet) tell(ctx context.Context, i int, path string, body any) {
	GinkgoHelper()
	Expect(f.try(ctx, http.MethodPost, i, path, body)).To(Equal(http.StatusOK))
}

func (f *fleet) try(ctx context.Context, method string, i int, path string, body any) int {
	GinkgoHelper()
	encoded, err := json.Marshal(body)
	Expect(err).NotTo(HaveOccurred())
	call, err := http.NewRequestWithContext(ctx, method, f.base(i)+path, bytes.NewReader(encoded))
	Expect(err).NotTo(HaveOccurred())
	reply, err := http.DefaultClient.Do(call)
	Expect(err).NotTo(HaveOccurred())
	defer reply.Body.Close()
	return reply.StatusCode
}

// inside is what nobody but the simulator could tell of an engine.
type inside struct {
	Paused  string   `json:"paused"`
	Running []string `json:"sequences"`
	Weights struct {
		Version string `json:"version"`
		Content string `json:"content"`
	} `json:"weights"`
}

// inside looks into an engine.
func (f *fleet) inside(ctx context.Context, i int) inside {
	GinkgoHelper()
	call, err := http.NewRequestWithContext(ctx, http.MethodGet, f.base(i)+"/sim/state", http.NoBody)
	Expect(err).NotTo(HaveOccurred())
	reply, err := http.DefaultClient.Do(call)
	Expect(err).NotTo(HaveOccurred())
	defer reply.Body.Close()
	var state inside
	Expect(json.NewDecoder(reply.Body).Decode(&state)).To(Succeed())
	return state
}

// paused is how an engine is paused; empty: it runs.
func (f *fleet) paused(ctx context.Context, i int) func() string {
	return func() string { return f.inside(ctx, i).Paused }
}

// fail arms a fault of an engine.
func (f *fleet) fail(ctx context.Context, i int, fault enginesim.Fault) {
	GinkgoHelper()
	f.tell(ctx, i, "/sim/faults", fault)
}

// mend disarms every fault of an engine.
func (f *fleet) mend(ctx context.Context, i int) {
	GinkgoHelper()
	Expect(f.try(ctx, http.MethodDelete, i, "/sim/faults", nil)).To(Equal(http.StatusOK))
}

// grants reports whether the router grants leases now.
func (h *house) grants() error {
	r := request("probe", int(time.Now().UnixNano()%1e9))
	grant, err := h.table().Acquire(r, time.Now())
	if err != nil {
		return err
	}
	_, err = h.table().Release(grant.Claim, router.NotSent, router.Reply{}, time.Now())
	return err
}

var _ = Describe("a pause of the engines", func() {
	var (
		h *house
		f *fleet
	)
	BeforeEach(func(ctx context.Context) {
		h = openHouse(ctx)
		f = openFleet(ctx, h, 2)
		f.createPool(ctx)
		h.untilServing(ctx, 2)
	})
	untilPaused := func(ctx context.Context) {
		GinkgoHelper()
		condition := h.untilCondition(ctx, v1alpha1.ConditionEnginesPaused, metav1.ConditionTrue, v1alpha1.ReasonEnginesPaused)
		Expect(condition.Message).To(ContainSubstring("2/2"))
	}
	untilRunning := func(ctx context.Context) {
		GinkgoHelper()
		h.untilCondition(ctx, v1alpha1.ConditionEnginesPaused, metav1.ConditionFalse, v1alpha1.ReasonEnginesRunning)
		h.untilServing(ctx, 2)
	}

	DescribeTable("stops leases, is recorded as ours, and ends with the engines that it paused",
		func(ctx context.Context, asked v1alpha1.EngineMode, recorded v1alpha1.PauseMode, engines string) {
			Expect(h.pool(ctx).Finalizers).To(BeEmpty())
			h.changePool(ctx, mode(asked))
			untilPaused(ctx)
			Expect(h.grants()).To(MatchError(router.ErrNoBackend))
			pool := h.pool(ctx)
			Expect(pool.Finalizers).To(ConsistOf(v1alpha1.Finalizer))
			for i, entry := range pool.Status.Backends {
				Expect(entry.State).To(Equal(v1alpha1.BackendPaused))
				Expect(entry.PausedBy).To(Equal(v1alpha1.PausedByEngineMode))
				Expect(entry.PauseMode).To(Equal(recorded))
				Expect(f.paused(ctx, i)()).To(Equal(engines))
			}
			Eventually(h.eventsOf(ctx, "EnginesPaused")).Should(HaveLen(1))

			h.changePool(ctx, mode(v1alpha1.EnginesRunning))
			untilRunning(ctx)
			Expect(f.paused(ctx, 0)()).To(BeEmpty())
			Expect(f.paused(ctx, 1)()).To(BeEmpty())
			Expect(h.grants()).To(Succeed())
			Eventually(func() []string { return h.pool(ctx).Finalizers }).Should(BeEmpty())
			for _, entry := range h.pool(ctx).Status.Backends {
				Expect(entry.PausedBy).To(BeEmpty())
			}
			Eventually(h.eventsOf(ctx, "EnginesContinued")).Should(HaveLen(1))
		},
		Entry("by aborting", v1alpha1.EnginesPausedAbort, v1alpha1.PauseAbort, "abort"),
		Entry("by retracting", v1alpha1.EnginesPausedRetract, v1alpha1.PauseRetract, "retract"),
		Entry("in place", v1alpha1.EnginesPausedInPlace, v1alpha1.PauseInPlace, "in_place"),
	)

	It("that aborts ends what runs; one that does not lets it go on afterwards", func(ctx context.Context) {
		grant := h.acquire(request("s", 1))
		reply := generate(ctx, grant)
		Eventually(func() int { return len(f.inside(ctx, 0).Running) + len(f.inside(ctx, 1).Running) }).Should(Equal(1))
		h.changePool(ctx, mode(v1alpha1.EnginesPausedRetract))
		untilPaused(ctx)
		Expect(reply).NotTo(Receive())
		h.changePool(ctx, mode(v1alpha1.EnginesRunning))
		untilRunning(ctx)
		Expect(f.inside(ctx, 0).Running).To(HaveLen(1 - len(f.inside(ctx, 1).Running)))

		h.changePool(ctx, mode(v1alpha1.EnginesPausedAbort))
		Eventually(reply).Should(Receive(Equal("abort")))
		untilPaused(ctx)
		h.release(grant, router.Aborted)
	})

	It("of one kind becomes one of another by way of running", func(ctx context.Context) {
		h.changePool(ctx, mode(v1alpha1.EnginesPausedInPlace))
		untilPaused(ctx)
		h.changePool(ctx, mode(v1alpha1.EnginesPausedAbort))
		Eventually(f.paused(ctx, 0)).Should(Equal("abort"))
		Eventually(f.paused(ctx, 1)).Should(Equal("abort"))
		untilPaused(ctx)
		Expect(h.grants()).To(MatchError(router.ErrNoBackend))
	})

	It("leaves an engine alone that somebody else has paused", func(ctx context.Context) {
		f.tell(ctx, 0, "/pause_generation", map[string]string{"mode": "in_place"})
		f.fail(ctx, 0, enginesim.Fault{Kind: enginesim.FaultHealth}) // as it answers after its 20 s
		h.untilBackend(ctx, "sglang-0", v1alpha1.BackendPending, v1alpha1.ReasonSuspectedPaused)
		h.changePool(ctx, mode(v1alpha1.EnginesPausedAbort))
		condition := h.untilCondition(ctx, v1alpha1.ConditionEnginesPaused, metav1.ConditionFalse, v1alpha1.ReasonPausedByOthers)
		Expect(condition.Message).To(And(ContainSubstring("1/2"), ContainSubstring("sglang-0")))
		Expect(f.paused(ctx, 0)()).To(Equal("in_place"))
		h.changePool(ctx, mode(v1alpha1.EnginesRunning))
		h.untilCondition(ctx, v1alpha1.ConditionEnginesPaused, metav1.ConditionFalse, v1alpha1.ReasonEnginesRunning)
		h.untilServing(ctx, 1)
		Expect(f.paused(ctx, 0)()).To(Equal("in_place"), "what others paused is theirs to continue")
		f.tell(ctx, 0, "/continue_generation", struct{}{})
		f.mend(ctx, 0)
		h.untilServing(ctx, 2)
	})

	It("leaves an engine where nobody listens to its start, and comes once it serves", func(ctx context.Context) {
		f.kills["sglang-1"]()
		h.untilServing(ctx, 1)
		h.changePool(ctx, mode(v1alpha1.EnginesPausedAbort))
		Eventually(func() string {
			return h.untilCondition(ctx, v1alpha1.ConditionEnginesPaused, metav1.ConditionFalse, v1alpha1.ReasonPausing).Message
		}).Should(Equal("1/2 engines are paused; waiting for: sglang-1"))
		startEngine(net.JoinHostPort(address(1), strconv.Itoa(int(f.port))))
		untilPaused(ctx)
		Expect(f.paused(ctx, 1)()).To(Equal("abort"))
	})

	It("is ordered again until it is answered, with the engine's words in status meanwhile", func(ctx context.Context) {
		f.fail(ctx, 0, enginesim.Fault{Kind: enginesim.FaultStatus, Paths: []string{"/pause_generation"}})
		h.changePool(ctx, mode(v1alpha1.EnginesPausedAbort))
		entry := h.untilBackend(ctx, "sglang-0", v1alpha1.BackendPausing, v1alpha1.ReasonEngineCallFailed)
		Expect(entry.Message).To(ContainSubstring("/pause_generation answered 500"))
		h.untilCondition(ctx, v1alpha1.ConditionEnginesPaused, metav1.ConditionFalse, v1alpha1.ReasonEngineCallsFailed)
		f.mend(ctx, 0)
		untilPaused(ctx)

		f.fail(ctx, 1, enginesim.Fault{Kind: enginesim.FaultStatus, Paths: []string{"/continue_generation"}})
		h.changePool(ctx, mode(v1alpha1.EnginesRunning))
		h.untilBackend(ctx, "sglang-1", v1alpha1.BackendContinuing, v1alpha1.ReasonEngineCallFailed)
		h.untilServing(ctx, 1)
		f.mend(ctx, 1)
		untilRunning(ctx)
	})

	It("is finished by the next manager, which no memory of it reaches", func(ctx context.Context) {
		f.fail(ctx, 1, enginesim.Fault{Kind: enginesim.FaultHang, Paths: []string{"/pause_generation"}})
		h.changePool(ctx, mode(v1alpha1.EnginesPausedAbort))
		Eventually(f.paused(ctx, 0)).Should(Equal("abort"))
		h.until(ctx, "both pauses on record", func(s *v1alpha1.InferencePoolStatus) bool {
			return len(s.Backends) == 2 && s.Backends[0].PausedBy != "" && s.Backends[1].PausedBy != ""
		})
		h.stop()
		f.mend(ctx, 1)
		h.start()
		untilPaused(ctx)
		Expect(f.paused(ctx, 1)()).To(Equal("abort"))
		h.stop()
		h.changePool(ctx, mode(v1alpha1.EnginesRunning))
		h.start()
		untilRunning(ctx)
		Expect(f.paused(ctx, 0)()).To(BeEmpty())
		Expect(f.paused(ctx, 1)()).To(BeEmpty())
	})

	It("ends on an engine that leaves the pool", func(ctx context.Context) {
		h.changePool(ctx, mode(v1alpha1.EnginesPausedRetract))
		untilPaused(ctx)
		f.relabel(ctx, "sglang-0", "role", "other")
		Eventually(f.paused(ctx, 0)).Should(BeEmpty())
		h.until(ctx, "one backend, paused", func(s *v1alpha1.InferencePoolStatus) bool {
			return len(s.Backends) == 1 && s.Backends[0].State == v1alpha1.BackendPaused
		})
		Expect(f.paused(ctx, 1)()).To(Equal("retract"))
	})

	It("ends on an engine whose pod is being deleted, and goes on elsewhere", func(ctx context.Context) {
		h.changePool(ctx, mode(v1alpha1.EnginesPausedInPlace))
		untilPaused(ctx)
		f.beginToDelete(ctx, "sglang-0")
		Eventually(f.paused(ctx, 0)).Should(BeEmpty())
		Eventually(func() string {
			return h.untilCondition(ctx, v1alpha1.ConditionEnginesPaused, metav1.ConditionTrue, v1alpha1.ReasonEnginesPaused).Message
		}).Should(Equal("1/1 engines are paused"))
		Expect(f.paused(ctx, 1)()).To(Equal("in_place"))
		Expect(h.grants()).To(MatchError(router.ErrNoBackend))
	})

	It("ends with its pool, and an engine that is dead does not hold the pool for ever", func(ctx context.Context) {
		h.changePool(ctx, mode(v1alpha1.EnginesPausedInPlace))
		untilPaused(ctx)
		f.kills["sglang-1"]()
		Expect(admin.Delete(ctx, h.pool(ctx))).To(Succeed())
		Eventually(f.paused(ctx, 0)).Should(BeEmpty())
		Eventually(func() bool {
			err := admin.Get(ctx, client.ObjectKey{Namespace: h.namespace, Name: theName}, &v1alpha1.InferencePool{})
			return apierrors.IsNotFound(err)
		}).Should(BeTrue())
	})
})

package controller_test

import (
	"context"
	"fmt"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/berthmaster/berthmaster/api/v1alpha1"
	"github.com/berthmaster/berthmaster/internal/router"
)

// theName is the name of every pool of the suite.
const theName = "policy"

// createPool creates a pool over the fleet's pods, changed as a spec wants it.
func (f *fleet) createPool(ctx context.Context, changes ...func(*v1alpha1.InferencePoolSpec)) {
	GinkgoHelper()
	selector := &v1alpha1.PodSelector{MatchLabels: map[string]v1alpha1.LabelValue{"app": "sglang", "role": "rollout"}}
	f.house.createPool(ctx, v1alpha1.BackendsSpec{Selector: selector, Port: f.port}, changes...)
}

func (h *house) createPool(ctx context.Context, backends v1alpha1.BackendsSpec, changes ...func(*v1alpha1.InferencePoolSpec)) {
	GinkgoHelper()
	pool := &v1alpha1.InferencePool{
		ObjectMeta: metav1.ObjectMeta{Name: theName, Namespace: h.namespace},
		Spec: v1alpha1.InferencePoolSpec{
			Backends: backends,
			Senders:  []v1alpha1.SenderSpec{{Name: "train"}, {Name: "eval"}},
			Health:   v1alpha1.HealthSpec{PeriodSeconds: 1},
		},
	}
	for _, change := range changes {
		change(&pool.Spec)
	}
	Expect(admin.Create(ctx, pool)).To(Succeed())
}

// changePool changes the spec as a person would.
func (h *house) changePool(ctx context.Context, change func(*v1alpha1.InferencePoolSpec)) {
	GinkgoHelper()
	Eventually(func() error {
		pool := h.pool(ctx)
		change(&pool.Spec)
		return admin.Update(ctx, pool)
	}).Should(Succeed())
}

func (h *house) pool(ctx context.Context) *v1alpha1.InferencePool {
	GinkgoHelper()
	pool := &v1alpha1.InferencePool{}
	Expect(admin.Get(ctx, client.ObjectKey{Namespace: h.namespace, Name: theName}, pool)).To(Succeed())
	return pool
}

// until waits for something of the pool's status that is up to date with its spec.
func (h *house) until(ctx context.Context, what string, holds func(*v1alpha1.InferencePoolStatus) bool) *v1alpha1.InferencePoolStatus {
	GinkgoHelper()
	var status *v1alpha1.InferencePoolStatus
	Eventually(func(g Gomega) {
		pool := h.pool(ctx)
		status = &pool.Status
		g.Expect(status.ObservedGeneration).To(Equal(pool.Generation))
		g.Expect(holds(status)).To(BeTrue(), "waiting for %s; the status is %s", what, Sprint(status))
	}).Should(Succeed())
	return status
}

// untilServing waits until n backends serve.
func (h *house) untilServing(ctx context.Context, n int32) *v1alpha1.InferencePoolStatus {
	GinkgoHelper()
	return h.until(ctx, fmt.Sprintf("%d backends to serve", n), func(s *v1alpha1.InferencePoolStatus) bool {
		return s.Summary != nil && s.Summary.Serving == n
	})
}

// untilCondition waits for a condition's status and reason.
func (h *house) untilCondition(ctx context.Context, kind string, want metav1.ConditionStatus, reason string) *metav1.Condition {
	GinkgoHelper()
	var condition *metav1.Condition
	h.until(ctx, fmt.Sprintf("%s=%s/%s", kind, want, reason), func(s *v1alpha1.InferencePoolStatus) bool {
		condition = meta.FindStatusCondition(s.Conditions, kind)
		return condition != nil && condition.Status == want && condition.Reason == reason
	})
	return condition
}

// untilBackend waits for a backend's state, of any of its incarnations.
func (h *house) untilBackend(ctx context.Context, name string, state v1alpha1.BackendState, reason v1alpha1.BackendReason) v1alpha1.BackendStatus {
	GinkgoHelper()
	var found v1alpha1.BackendStatus
	h.until(ctx, fmt.Sprintf("backend %s to be %s/%s", name, state, reason), func(s *v1alpha1.InferencePoolStatus) bool {
		for _, entry := range s.Backends {
			if entry.Name == name && entry.State == state && entry.Reason == reason {
				found = entry
				return true
			}
		}
		return false
	})
	return found
}

// Sprint is a status in short.
func Sprint(s *v1alpha1.InferencePoolStatus) string {
	text := fmt.Sprintf("term %d epoch %d senders %v failure %v;", s.Term, s.Epoch, s.Senders, s.Failure)
	for _, b := range s.Backends {
		text += fmt.Sprintf(" %s(%s)=%s/%s", b.Name, b.Incarnation, b.State, b.Reason)
	}
	for _, c := range s.Conditions {
		text += fmt.Sprintf(" %s=%s/%s", c.Type, c.Status, c.Reason)
	}
	return text
}

// table is the pool's router.
func (h *house) table() *router.Table {
	GinkgoHelper()
	var table *router.Table
	Eventually(func() (found bool) {
		table, found = h.pools.Get(router.PoolKey{Namespace: h.namespace, Name: theName})
		return found
	}).Should(BeTrue())
	return table
}

// request is a lease request of one execution for a session.
func request(session string, turn int) router.Request {
	return router.Request{
		ID: router.RequestID(fmt.Sprintf("%s-%d", session, turn)), Session: router.SessionID(session),
		Sender: "train", Epoch: 1, Executions: 1,
	}
}

// acquire takes a lease, which must be granted.
func (h *house) acquire(r router.Request) router.Grant {
	GinkgoHelper()
	grant, err := h.table().Acquire(r, time.Now())
	Expect(err).NotTo(HaveOccurred())
	return grant
}

// release ends a lease and returns what the router says about it.
func (h *house) release(grant router.Grant, outcome router.Outcome) router.Ending {
	GinkgoHelper()
	ending, err := h.table().Release(grant.Claim, outcome, router.Reply{}, time.Now())
	Expect(err).NotTo(HaveOccurred())
	return ending
}

// outstanding is what is counted on an incarnation.
func (h *house) outstanding(incarnation router.Incarnation) int64 {
	for _, b := range h.table().Snapshot(time.Now()).Backends {
		if b.Incarnation == incarnation {
			return b.Outstanding
		}
	}
	return 0
}

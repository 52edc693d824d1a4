package controller

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/utils/ptr"

	"github.com/berthmaster/berthmaster/api/v1alpha1"
	"github.com/berthmaster/berthmaster/internal/prober"
	"github.com/berthmaster/berthmaster/internal/router"
)

func TestEmptySpecMeansTheDocumentedDefaults(t *testing.T) {
	spec := &v1alpha1.InferencePoolSpec{}
	if diff := cmp.Diff(router.DefaultConfig(), configOf(spec)); diff != "" {
		t.Errorf("config (-want +got):\n%s", diff)
	}
	want := healthRule{period: 5 * time.Second, timeout: 25 * time.Second, budget: time.Minute, threshold: 3}
	if got := healthOf(&spec.Health); got != want {
		t.Errorf("health %+v, want %+v", got, want)
	}
	if epochOf(spec) != 1 || startSecondsOf(spec) != 30 {
		t.Errorf("epoch %d and %d s, want 1 and 30 s", epochOf(spec), startSecondsOf(spec))
	}
}

func TestEveryFieldOfTheSpecReachesTheRouter(t *testing.T) {
	spec := &v1alpha1.InferencePoolSpec{
		Routing: v1alpha1.RoutingSpec{
			Policy: v1alpha1.PolicyLeastSessions, GroupSlackPercent: 22, AdmissionPercent: 23,
			Affinity: v1alpha1.AffinitySpec{
				Mode: v1alpha1.AffinityRebalance, IdleTimeoutSeconds: 11, MaxSessions: 12,
				Rebalance: v1alpha1.RebalanceSpec{CoolDownSeconds: 24, GapTurns: 25},
			},
		},
		Leases: v1alpha1.LeasesSpec{
			TTLSeconds: 13, StartSeconds: 5, RetentionSeconds: 14, MaxRequests: 15,
			OnAmbiguous: v1alpha1.AmbiguousIsolateBackend, CertaintySeconds: ptr.To[int32](16),
		},
		Health: v1alpha1.HealthSpec{PeriodSeconds: 17, TimeoutSeconds: 18, FailureThreshold: 19, BudgetSeconds: 20},
		Epoch:  21,
	}
	want := router.DefaultConfig()
	want.Policy, want.GroupSlackPercent, want.AdmissionPercent = router.LeastSessions, 22, 23
	want.Mode, want.IdleTimeout, want.MaxSessions = router.Rebalance, 11*time.Second, 12
	want.Moving = router.Moving{CoolDown: 24 * time.Second, GapTurns: 25}
	want.TTL, want.StartWindow, want.Retention, want.MaxRequests = 13*time.Second, 5*time.Second, 14*time.Second, 15
	want.OnAmbiguous, want.Certainty = router.IsolateBackend, 16*time.Second
	if diff := cmp.Diff(want, configOf(spec)); diff != "" {
		t.Errorf("config (-want +got):\n%s", diff)
	}
	rule := healthRule{period: 17 * time.Second, timeout: 18 * time.Second, budget: 20 * time.Second, threshold: 19}
	if got := healthOf(&spec.Health); got != rule {
		t.Errorf("health %+v, want %+v", got, rule)
	}
	if epochOf(spec) != 21 {
		t.Errorf("epoch %d, want 21", epochOf(spec))
	}
}

func TestEveryChoiceOfTheSpecIsOneOfTheRouters(t *testing.T) {
	for policy, want := range map[v1alpha1.RoutingPolicy]router.Policy{
		v1alpha1.PolicyLeastOutstanding: router.LeastOutstanding, v1alpha1.PolicyLeastSessions: router.LeastSessions,
		v1alpha1.PolicyRoundRobin: router.RoundRobin, v1alpha1.PolicyConsistentHash: router.ConsistentHash,
	} {
		spec := &v1alpha1.InferencePoolSpec{Routing: v1alpha1.RoutingSpec{Policy: policy}}
		if got := configOf(spec).Policy; got != want {
			t.Errorf("policy %s: %q, want %q", policy, got, want)
		}
	}
	for mode, want := range map[v1alpha1.AffinityMode]router.AffinityMode{
		v1alpha1.AffinitySticky: router.Sticky, v1alpha1.AffinityRebalance: router.Rebalance,
	} {
		spec := &v1alpha1.InferencePoolSpec{Routing: v1alpha1.RoutingSpec{Affinity: v1alpha1.AffinitySpec{Mode: mode}}}
		if got := configOf(spec).Mode; got != want {
			t.Errorf("mode %s: %q, want %q", mode, got, want)
		}
	}
}

func TestCertaintyOfZeroIsNotTheDefault(t *testing.T) {
	spec := &v1alpha1.InferencePoolSpec{Leases: v1alpha1.LeasesSpec{CertaintySeconds: ptr.To[int32](0)}}
	if got := configOf(spec).Certainty; got != 0 {
		t.Errorf("certainty %v, want none", got)
	}
}

func TestSendersOfAreOpenUnlessFenced(t *testing.T) {
	spec := &v1alpha1.InferencePoolSpec{Senders: []v1alpha1.SenderSpec{
		{Name: "a"}, {Name: "b", Access: v1alpha1.SenderOpen, MinGeneration: ptr.To[int64](2)}, {Name: "c", Access: v1alpha1.SenderFenced},
	}}
	want := []router.Sender{
		{Name: "a", Access: router.AccessOpen}, {Name: "b", Access: router.AccessOpen, MinGeneration: 2}, {Name: "c", Access: router.AccessFenced},
	}
	if diff := cmp.Diff(want, sendersOf(spec, "rl")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestSubjectsAreUsersAndGroupsAndServiceAccountsOfThePoolsNamespaceUnlessTold(t *testing.T) {
	spec := &v1alpha1.InferencePoolSpec{Senders: []v1alpha1.SenderSpec{{Name: "train", Subjects: []v1alpha1.SenderSubject{
		{Kind: v1alpha1.SubjectServiceAccount, Name: "trainer"},
		{Kind: v1alpha1.SubjectServiceAccount, Name: "trainer", Namespace: "other"},
		{Kind: v1alpha1.SubjectGroup, Name: "researchers"},
		{Kind: v1alpha1.SubjectUser, Name: "ann"},
	}}}}
	want := []router.Subject{
		{Kind: router.SubjectUser, Name: "system:serviceaccount:rl:trainer"},
		{Kind: router.SubjectUser, Name: "system:serviceaccount:other:trainer"},
		{Kind: router.SubjectGroup, Name: "researchers"},
		{Kind: router.SubjectUser, Name: "ann"},
	}
	if diff := cmp.Diff(want, sendersOf(spec, "rl")[0].Subjects); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestObservationCarriesAVersionOnlyWhileConfirmed(t *testing.T) {
	o := prober.Observation{
		Key: prober.Key{Pool: "p", Incarnation: "i"}, Seq: 4, Verdict: prober.Healthy, Reason: prober.ReasonProbeSucceeded,
		Capacity: 8, EngineTotal: 2, WeightVersion: "v1", VersionConfirmed: true,
	}
	want := router.Observation{
		Incarnation: "i", Seq: 4, Health: router.Healthy, Capacity: 8, EngineTotal: 2, Version: "v1", Reason: "ProbeSucceeded",
	}
	if diff := cmp.Diff(want, observationOf(o)); diff != "" {
		t.Errorf("confirmed (-want +got):\n%s", diff)
	}
	o.VersionConfirmed, want.Version = false, ""
	if diff := cmp.Diff(want, observationOf(o)); diff != "" {
		t.Errorf("unconfirmed (-want +got):\n%s", diff)
	}
}

func TestEveryVerdictHasAHealth(t *testing.T) {
	for verdict, want := range map[prober.Verdict]router.Health{
		prober.Unknown: router.HealthUnknown, prober.Healthy: router.Healthy, prober.Unhealthy: router.Unhealthy,
		prober.SuspectedPaused: router.SuspectedPaused, prober.Refused: router.Refused,
	} {
		if got := healthIn(verdict); got != want {
			t.Errorf("%s: %q, want %q", verdict, got, want)
		}
	}
}

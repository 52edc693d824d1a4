package doctor_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/berthmaster/berthmaster/api/v1alpha1"
	"github.com/berthmaster/berthmaster/internal/cli/doctor"
	"github.com/berthmaster/berthmaster/internal/cli/live"
	"github.com/berthmaster/berthmaster/internal/enginesim"
)

func TestAHealthySystemHasNoFindings(t *testing.T) {
	if found := healthy(t).examine(); len(found) != 0 {
		t.Errorf("%+v", found)
	}
}

// planted is a fault put into a healthy system.
type planted struct {
	plant func(s *system)
	want  doctor.Fault
	// do is a part of what to do about it.
	do string
}

func TestEveryKnownFaultIsPlanted(t *testing.T) {
	tested := map[doctor.Fault]bool{}
	for _, c := range plantedFaults() {
		tested[c.want] = true
	}
	for _, k := range doctor.Known() {
		if !tested[k.Fault] || k.Means == "" {
			t.Errorf("%s: planted %v, means %q", k.Fault, tested[k.Fault], k.Means)
		}
		delete(tested, k.Fault)
	}
	if len(tested) > 0 {
		t.Errorf("planted and not known: %v", tested)
	}
}

func plantedFaults() map[string]planted {
	return map[string]planted{
		"the selector matches no pod": {func(s *system) {
			s.pod.Labels["role"] = "serving"
			s.pool.Status.Backends[0].URL, s.live.Backends = "", nil
		}, doctor.SelectorMatchesNothing, "pod sglang-0, which lacks role=rollout"},
		"the port is another than the engine's": {func(s *system) {
			s.pod.Spec.Containers[0].Ports[0].ContainerPort = 8000
			s.is(v1alpha1.BackendPending, v1alpha1.ReasonConnectionRefused)
		}, doctor.WrongPort, "spec.backends.port"},
		"nobody listens on the declared port": {func(s *system) {
			s.is(v1alpha1.BackendPending, v1alpha1.ReasonConnectionRefused)
		}, doctor.EngineRefuses, "--host 0.0.0.0"},
		"the engine fails its probes": {func(s *system) {
			s.is(v1alpha1.BackendUnhealthy, v1alpha1.ReasonProbesFailed)
		}, doctor.EngineUnhealthy, "log"},
		"the manager may not call the engine": {func(s *system) {
			s.is(v1alpha1.BackendUnhealthy, v1alpha1.ReasonProbesFailed)
			s.backend().Message = "/health: the manager may not call this address: 127.0.0.11 is a special address (--engine-special-addresses)"
		}, doctor.AddressNotAllowed, "--engine-special-addresses"},
		"somebody else paused the engine": {func(s *system) {
			s.is(v1alpha1.BackendPending, v1alpha1.ReasonSuspectedPaused)
		}, doctor.PausedByOthers, "/continue_generation"},
		"somebody else paused the engine while its weights are looked at": {func(s *system) {
			s.is(v1alpha1.BackendPending, "Weights")
			s.live.Backends[0].Health, s.live.Backends[0].Engine = "SuspectedPaused", "Updating"
		}, doctor.PausedByOthers, "/continue_generation"},
		"an engine has stale weights": {func(s *system) {
			s.live.Backends[0].WeightVersion = "step-40"
		}, doctor.StaleVersion, "push"},
		"the engine rejects the key": {func(s *system) {
			s.engine.APIKey = "another"
			s.is(v1alpha1.BackendUnhealthy, v1alpha1.ReasonProbesFailed)
		}, doctor.KeyRejected, "Secret keys"},
		"the engine wants a key and the pool names none": {func(s *system) {
			s.pool.Spec.Backends.CredentialsSecretRef = nil
		}, doctor.KeyRejected, "credentialsSecretRef"},
		"the Secret has no api-key": {func(s *system) {
			s.secret.Data, s.engine.APIKey = nil, ""
		}, doctor.KeyMissing, "api-key"},
		"there is no such Secret": {func(s *system) {
			s.secret, s.engine.APIKey = nil, ""
		}, doctor.KeyMissing, "make it"},
		"an older pool has the engine": {func(s *system) {
			s.is(v1alpha1.BackendPending, v1alpha1.ReasonBackendConflict)
		}, doctor.EngineConflict, "one pool"},
		"two managers run without an election": {func(s *system) {
			s.managers[1].Spec.Containers[0].Args = nil
		}, doctor.TwoLeaders, "--leader-elect"},
		"the router that answers was overtaken": {func(s *system) {
			s.live.Term = 3
		}, doctor.TwoLeaders, "end the replica"},
		"the token has expired by the API server's clock alone": {func(s *system) {
			s.you = doctor.Identity{TokenExpires: noon, ServerTime: noon.Add(30 * time.Second), LocalTime: noon.Add(-20 * time.Second)}
		}, doctor.TokenExpired, "kubectl create token"},
		"the user's clock is wrong": {func(s *system) {
			s.you.LocalTime = noon.Add(-5 * time.Minute)
		}, doctor.ClockSkewed, "set it"},
		"the engine keeps no prefixes": {func(s *system) {
			s.engine.RadixCache = enginesim.Off
		}, doctor.RadixCacheOff, "--disable-radix-cache"},
		"no capacity is known": {func(s *system) {
			s.is(v1alpha1.BackendPending, v1alpha1.ReasonCapacityUnknown)
		}, doctor.CapacityUnknown, "capacity.fallback"},
		"another project has the same kind": {func(s *system) {
			s.kinds["inference.networking.k8s.io"] = []string{"inferencepools"}
		}, doctor.KindShadowed, "rlpool"},
		"a pod is not Ready": {func(s *system) {
			s.is(v1alpha1.BackendPending, v1alpha1.ReasonPodNotReady)
		}, doctor.PodsNotReady, "kubectl describe pod"},
		"the container cannot be told": {func(s *system) {
			s.is(v1alpha1.BackendPending, v1alpha1.ReasonContainerNotFound)
		}, doctor.ContainerNotFound, "spec.backends.container"},
		"the capacity annotation is no number": {func(s *system) {
			s.is(v1alpha1.BackendPending, v1alpha1.ReasonInvalidCapacityAnnotation)
		}, doctor.BadAnnotation, v1alpha1.AnnotationCapacity},
		"no manager is ready": {func(s *system) {
			for _, m := range s.managers {
				m.Status.Conditions = nil
			}
		}, doctor.ManagerMissing, "--router-namespace"},
		"nobody reads the spec": {func(s *system) {
			s.pool.Generation = 4
		}, doctor.StatusBehind, "--namespace"},
		"the router does not answer": {func(s *system) {
			s.live, s.liveErr = nil, errors.New("connection reset by peer")
		}, doctor.RouterUnreachable, "log"},
		"the router may not grant": {func(s *system) {
			s.live.Term = 0
		}, doctor.RouterUnreachable, "Lease"},
		"the router refuses the user": {func(s *system) {
			s.live, s.liveErr = nil, &live.Problem{Reason: "Forbidden", Status: 403}
		}, doctor.CallerRefused, "inferencepools/leases"},
		"the pool has failed": {func(s *system) {
			s.pool.Status.Failure = &v1alpha1.PoolFailure{Epoch: 1, RequestID: "r-7", Time: metav1.NewTime(noon)}
		}, doctor.PoolFailed, "raise-epoch"},
		"a backend is isolated": {func(s *system) {
			s.is(v1alpha1.BackendIsolated, v1alpha1.ReasonExecutionUncertain)
		}, doctor.BackendIsolated, "uid/containerd://1"},
		"a pod object went without a word": {func(s *system) {
			s.is(v1alpha1.BackendRetired, v1alpha1.ReasonPodMissing)
		}, doctor.PodLost, "confirmedGone"},
		"what an earlier term left is unknown": {func(s *system) {
			s.is(v1alpha1.BackendPending, v1alpha1.ReasonUnknownLoad)
		}, doctor.LoadUnknown, "quiet"},
		"a drain names nobody": {func(s *system) {
			s.pool.Status.Backends = append(s.pool.Status.Backends, v1alpha1.BackendStatus{
				Name: "sglnag-0", State: v1alpha1.BackendDrained, Reason: v1alpha1.ReasonBackendNotFound})
		}, doctor.DrainOfNobody, "undrain"},
		"a drain is late": {func(s *system) {
			s.is(v1alpha1.BackendDraining, v1alpha1.ReasonDeadlineExceeded)
		}, doctor.DrainLate, "--abort-at-deadline"},
		"leasing is held": {func(s *system) {
			s.pool.Spec.Leasing = v1alpha1.LeasingHeld
		}, doctor.LeasingHeld, "berth open"},
		"the engines are paused": {func(s *system) {
			s.pool.Spec.EngineMode = v1alpha1.EnginesPausedRetract
		}, doctor.EnginesPaused, "berth continue"},
		"a sender is fenced": {func(s *system) {
			s.pool.Spec.Senders[0].Access = v1alpha1.SenderFenced
		}, doctor.SenderFenced, "unfence train"},
		"the user may not read pods": {func(s *system) {
			s.forbidden["*v1.PodList"], s.way = true, doctor.ByURL
		}, doctor.NotLooked, "not found"},
		"the user may not read the keys": {func(s *system) {
			s.forbidden["*v1.Secret"] = true
		}, doctor.NotLooked, "not found"},
		"the engine cannot be reached from here": {func(s *system) {
			s.backend().URL = nowhere(s.t)
		}, doctor.NotLooked, "not found"},
	}
}

// Each planted fault is found, and nothing else is.
func TestEachFaultIsFound(t *testing.T) {
	for name, c := range plantedFaults() {
		t.Run(name, func(t *testing.T) {
			s := healthy(t)
			c.plant(s)
			found := s.examine()
			if len(found) == 0 {
				t.Fatal("nothing is found")
			}
			for _, f := range found {
				if f.Fault != c.want {
					t.Errorf("found %+v, planted %s", f, c.want)
				}
				if f.Subject == "" || f.What == "" || f.Do == "" {
					t.Errorf("a finding that says too little: %+v", f)
				}
			}
			if text := found[0].What + found[0].Do; !strings.Contains(text, c.do) {
				t.Errorf("%q does not say %q", text, c.do)
			}
		})
	}
}

func TestTheWorstIsToldFirst(t *testing.T) {
	s := healthy(t)
	s.pool.Spec.Leasing = v1alpha1.LeasingHeld
	s.engine.RadixCache = enginesim.Off
	s.live.Backends[0].WeightVersion = "step-40"
	var got []doctor.Severity
	for _, f := range s.examine() {
		got = append(got, f.Severity)
	}
	if diff := cmp.Diff([]doctor.Severity{doctor.Error, doctor.Warning, doctor.Notice}, got); diff != "" {
		t.Error(diff)
	}
}

func TestARouterThatNoManagerStandsBehindIsNotAsked(t *testing.T) {
	s := healthy(t)
	s.managers = nil
	found := s.examine()
	if s.asked || len(found) != 1 || found[0].Fault != doctor.ManagerMissing {
		t.Errorf("asked %v, found %+v", s.asked, found)
	}
	s = healthy(t)
	s.managers, s.way = nil, doctor.ByURL
	if found := s.examine(); !s.asked || len(found) != 0 {
		t.Errorf("by URL: asked %v, found %+v", s.asked, found)
	}
}

func TestAnEngineThatThePoolItselfPausedIsNotPausedByOthers(t *testing.T) {
	s := healthy(t)
	s.is(v1alpha1.BackendPending, "Weights")
	s.backend().PausedBy = v1alpha1.PausedByWeights
	s.live.Backends[0].Health = "SuspectedPaused"
	if found := s.examine(); len(found) != 0 {
		t.Errorf("%+v", found)
	}
}

func TestAManagerThatHasEndedIsNoSecondLeader(t *testing.T) {
	s := healthy(t)
	s.managers[1].Spec.Containers[0].Args = nil
	s.managers[1].Status.Phase = corev1.PodFailed
	if found := s.examine(); len(found) != 0 {
		t.Errorf("%+v", found)
	}
}

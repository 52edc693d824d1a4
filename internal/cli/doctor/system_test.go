package doctor_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"testing"
	"time"

	"go.uber.org/goleak"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/berthmaster/berthmaster/api/v1alpha1"
	"github.com/berthmaster/berthmaster/internal/cli/doctor"
	"github.com/berthmaster/berthmaster/internal/cli/live"
	"github.com/berthmaster/berthmaster/internal/enginesim"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// noon is when every test takes place.
var noon = time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)

// system is a pool in perfect health with one backend, whose engine is a simulated one: two replicas of
// the manager that elect, a router that answers, a Secret with the engine's key. Tests plant faults in it.
type system struct {
	t        *testing.T
	engine   enginesim.Config
	secret   *corev1.Secret
	pool     *v1alpha1.InferencePool
	pod      *corev1.Pod
	managers []*corev1.Pod
	lease    *coordinationv1.Lease
	live     *live.Pool
	liveErr  error
	kinds    kinds
	you      doctor.Identity
	// forbidden are the kinds of object that the user may not read.
	forbidden map[string]bool
	way       doctor.RouterWay
	asked     bool
}

// kinds are the resources of a cluster, by group.
type kinds map[string][]string

func (k kinds) ServerGroupsAndResources() ([]*metav1.APIGroup, []*metav1.APIResourceList, error) {
	var lists []*metav1.APIResourceList
	for group, names := range k {
		list := &metav1.APIResourceList{GroupVersion: group + "/v1"}
		for _, n := range names {
			list.APIResources = append(list.APIResources, metav1.APIResource{Name: n})
		}
		lists = append(lists, list)
	}
	return nil, lists, nil
}

func healthy(t *testing.T) *system {
	return &system{
		t: t, engine: enginesim.Config{APIKey: "sesame"}, forbidden: map[string]bool{},
		secret: &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "keys", Namespace: "rl"}, Data: map[string][]byte{"api-key": []byte("sesame\n")}},
		pool: &v1alpha1.InferencePool{
			ObjectMeta: metav1.ObjectMeta{Name: "policy", Namespace: "rl", Generation: 3},
			Spec: v1alpha1.InferencePoolSpec{
				Backends: v1alpha1.BackendsSpec{
					Selector: &v1alpha1.PodSelector{MatchLabels: map[string]v1alpha1.LabelValue{"app": "sglang", "role": "rollout"}},
					Port:     30000, CredentialsSecretRef: &v1alpha1.CredentialsReference{Name: "keys"},
				},
				Senders: []v1alpha1.SenderSpec{{Name: "train"}},
			},
			Status: v1alpha1.InferencePoolStatus{
				ObservedGeneration: 3, Term: 4, Epoch: 1,
				Backends: []v1alpha1.BackendStatus{{Name: "sglang-0", Incarnation: "uid/containerd://1", State: v1alpha1.BackendServing, Capacity: 256}},
			},
		},
		pod:      pod("rl", "sglang-0", map[string]string{"app": "sglang", "role": "rollout"}, 30000),
		managers: []*corev1.Pod{manager("manager-a"), manager("manager-b")},
		lease: &coordinationv1.Lease{
			ObjectMeta: metav1.ObjectMeta{Name: "berthmaster-manager", Namespace: "berthmaster-system"},
			Spec:       coordinationv1.LeaseSpec{HolderIdentity: ptr.To("manager-a")},
		},
		live: &live.Pool{Epoch: 1, Term: 4, Leasing: "Open", PublishedVersion: "step-41", Backends: []live.Backend{
			{Name: "sglang-0", Incarnation: "uid/containerd://1", Admissible: true, WeightVersion: "step-41"},
		}},
		kinds: kinds{"inference.berthmaster.io": {"inferencepools"}, "apps": {"deployments"}},
		you:   doctor.Identity{TokenExpires: noon.Add(time.Hour), ServerTime: noon, LocalTime: noon.Add(time.Second)},
	}
}

func pod(namespace, name string, labels map[string]string, port int32, arguments ...string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace, Labels: labels},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{
			Name: "server", Args: arguments, Ports: []corev1.ContainerPort{{ContainerPort: port}},
		}}},
		Status: corev1.PodStatus{Phase: corev1.PodRunning, Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}},
	}
}

func manager(name string) *corev1.Pod {
	return pod("berthmaster-system", name, map[string]string{"app.kubernetes.io/name": "berthmaster"}, 8085, "--leader-elect")
}

// backend is the status of the one backend.
func (s *system) backend() *v1alpha1.BackendStatus { return &s.pool.Status.Backends[0] }

// is gives the backend a state that the operator reports.
func (s *system) is(state v1alpha1.BackendState, reason v1alpha1.BackendReason) {
	s.backend().State, s.backend().Reason = state, reason
}

// examine starts the engine and looks at the system.
func (s *system) examine() []doctor.Finding {
	s.t.Helper()
	s.startEngine()
	transport := &http.Transport{}
	s.t.Cleanup(transport.CloseIdleConnections)
	w := doctor.Look(s.t.Context(), doctor.Sources{
		Reader: s.reader(), Kinds: s.kinds, ManagerNamespace: "berthmaster-system", Way: s.way, You: s.you,
		Router: func(context.Context) (*live.Pool, error) { s.asked = true; return s.live, s.liveErr },
		Engine: func(*v1alpha1.BackendStatus) http.RoundTripper { return transport },
	}, s.pool)
	return doctor.Judge(w)
}

func (s *system) startEngine() {
	s.t.Helper()
	s.engine.Speed = 50
	engine, err := enginesim.New(s.engine)
	if err != nil {
		s.t.Fatal(err)
	}
	socket, err := engine.Listen("127.0.0.1:0")
	if err != nil {
		s.t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- socket.Serve() }()
	s.t.Cleanup(func() { engine.Close(); <-done })
	if s.backend().URL == "" {
		s.backend().URL = socket.URL()
	}
}

// reader is an API server with the system's objects.
func (s *system) reader() client.Reader {
	known := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{scheme.AddToScheme, v1alpha1.AddToScheme} {
		if err := add(known); err != nil {
			s.t.Fatal(err)
		}
	}
	objects := []client.Object{s.pod}
	for _, m := range s.managers {
		objects = append(objects, m)
	}
	if s.lease != nil {
		objects = append(objects, s.lease)
	}
	if s.secret != nil {
		objects = append(objects, s.secret)
	}
	return fake.NewClientBuilder().WithScheme(known).WithObjects(objects...).WithInterceptorFuncs(interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, into client.Object, o ...client.GetOption) error {
			if s.forbidden[fmt.Sprintf("%T", into)] {
				return errors.New("forbidden")
			}
			return c.Get(ctx, key, into, o...)
		},
		List: func(ctx context.Context, c client.WithWatch, into client.ObjectList, o ...client.ListOption) error {
			if s.forbidden[fmt.Sprintf("%T", into)] {
				return errors.New("forbidden")
			}
			return c.List(ctx, into, o...)
		},
	}).Build()
}

// nowhere is an address at which nobody listens.
func nowhere(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := l.Addr().(*net.TCPAddr).Port
	l.Close()
	return "http://127.0.0.1:" + strconv.Itoa(port)
}

package controller_test

import (
	"context"
	"io"
	"net/http"
	"strings"
	"sync/atomic"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/berthmaster/berthmaster/api/v1alpha1"
	"github.com/berthmaster/berthmaster/internal/controller"
	"github.com/berthmaster/berthmaster/internal/prober"
	"github.com/berthmaster/berthmaster/internal/router"
	"github.com/berthmaster/berthmaster/internal/settler"
	"github.com/berthmaster/berthmaster/internal/sglang"
)

// house is one manager in a namespace of its own, and what it talks to.
type house struct {
	namespace string
	pools     *router.Pools
	calls     *calls
	// reconciler is the manager's.
	reconciler *controller.Reconciler
	// reach is what the manager may look at.
	reach reach
	// user is who the manager is to the API server; nil: the one of config/rbac.
	user *rest.Config
	// stop ends the manager, as a crash would as far as the cluster can tell.
	stop func()
}

// reach is how far a manager's rights go.
type reach int

const (
	// reachNamespace is its own namespace, as with --namespace.
	reachNamespace reach = iota
	// reachNodes is the cluster's nodes, too.
	reachNodes
)

// openHouse makes a namespace and starts a manager of that one in it.
func openHouse(ctx context.Context) *house { return openHouseWith(ctx, reachNamespace) }

func openHouseWith(ctx context.Context, far reach) *house {
	GinkgoHelper()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "house-"}}
	Expect(admin.Create(ctx, namespace)).To(Succeed())
	grantRights(ctx, namespace.Name)
	if far == reachNodes {
		grantNodes(ctx, namespace.Name)
	}
	h := &house{namespace: namespace.Name, reach: far}
	h.start()
	return h
}

// start runs a manager with nothing but what the cluster remembers. It ends with the spec.
func (h *house) start() {
	GinkgoHelper()
	h.pools, h.calls = router.NewPools(), &calls{denied: denied, server: serverThatStreams}
	watched := rest.CopyConfig(managers)
	if h.user != nil {
		watched = rest.CopyConfig(h.user)
		h.calls.denied, h.calls.server = newRights(), serverThatLists
	}
	watched.QPS = -1
	watched.Wrap(h.calls.wrap)
	manager, err := ctrl.NewManager(watched, ctrl.Options{
		Scheme: scheme,
		Cache: cache.Options{
			DefaultNamespaces: map[string]cache.Config{h.namespace: {}},
			ByObject: map[client.Object]cache.ByObject{
				&corev1.Pod{}: {Transform: controller.TrimPod}, &corev1.Node{}: {Transform: controller.TrimNode},
			},
		},
		Metrics:    metricsserver.Options{BindAddress: "0"},
		Controller: config.Controller{SkipNameValidation: ptr.To(true)},
	})
	Expect(err).NotTo(HaveOccurred())
	var nodes controller.Informers
	if h.reach == reachNodes {
		nodes = manager.GetCache()
	}
	var probes *prober.Prober
	reconciler := controller.New(controller.Config{
		Client: manager.GetClient(), Live: manager.GetAPIReader(), Pools: h.pools, Nodes: nodes,
		NewProber: func(sink prober.Sink) controller.Prober {
			probes = prober.New(sink, prober.Config{})
			return probes
		},
		Settle: func(ctx context.Context, table *router.Table, keys sglang.KeySource) {
			settler.Run(ctx, table, settler.Config{Transport: sglang.NewTransport(), Keys: keys})
		},
		Engines: sglang.NewTransport(),
		Events:  manager.GetEventRecorder("berthmaster"), Clock: clock.RealClock{},
		Self: v1alpha1.RouterStatus{Name: "manager-0", Address: "127.0.0.1:8085"},
	})
	h.reconciler = reconciler
	Expect(reconciler.SetupWithManager(manager)).To(Succeed())
	h.run(manager, func() { reconciler.Close(); probes.Close() })
}

// run runs the manager until stop is called or the spec ends.
func (h *house) run(manager ctrl.Manager, closeAll func()) {
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- manager.Start(ctx) }()
	stopped := false
	h.stop = func() {
		GinkgoHelper()
		if stopped {
			return
		}
		stopped = true
		cancel()
		var err error
		Eventually(ended).Should(Receive(&err))
		if h.user == nil {
			Expect(err).NotTo(HaveOccurred())
		} // one without its rights may have failed
		closeAll()
	}
	DeferCleanup(h.stop)
}

// calls counts what a manager asks of the API server, reads by watch excepted.
type calls struct {
	statusWrites atomic.Int64
	all          atomic.Int64
	// denied are the rights that it lacked.
	denied *rights
	server serverKind
}

// serverKind is how an API server begins a watch.
type serverKind int

const (
	// serverThatStreams begins a watch with the objects there are.
	serverThatStreams serverKind = iota
	// serverThatLists knows only watches that follow a list, as older ones do.
	serverThatLists
)

func (c *calls) wrap(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(request *http.Request) (*http.Response, error) {
		streams := request.URL.Query().Get("sendInitialEvents") != ""
		if streams && c.server == serverThatLists {
			return invalid(request), nil
		}
		used.note(request)
		if request.URL.Query().Get("watch") != "true" {
			c.all.Add(1)
			GinkgoWriter.Println("call", request.Method, request.URL)
		}
		if request.Method == http.MethodPatch && strings.HasSuffix(request.URL.Path, "/status") {
			c.statusWrites.Add(1)
		}
		reply, err := next.RoundTrip(request)
		if err == nil && reply.StatusCode == http.StatusForbidden {
			c.denied.note(request)
		}
		return reply, err
	})
}

// invalid is what a server says to a parameter that it does not know.
func invalid(request *http.Request) *http.Response {
	status := `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Invalid","code":422}`
	return &http.Response{
		StatusCode: http.StatusUnprocessableEntity, Request: request, ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(status)),
	}
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(request *http.Request) (*http.Response, error) { return f(request) }

package apitest

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/berthmaster/berthmaster/api/v1alpha1"
	"github.com/berthmaster/berthmaster/internal/cli"
)

// patience bounds every wait for a condition; no test's outcome depends on it.
const patience = time.Minute

var (
	api        client.Client
	config     *rest.Config
	kubeconfig string
)

func TestTheCommandLineAgainstAnAPIServer(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "internal/cli")
}

var _ = BeforeSuite(func() {
	SetDefaultEventuallyTimeout(patience)
	environment := &envtest.Environment{
		BinaryAssetsDirectory: controlPlane(),
		CRDDirectoryPaths:     []string{filepath.Join("..", "..", "..", "config", "crd", "bases")},
		ErrorIfCRDPathMissing: true,
	}
	var err error
	config, err = environment.Start()
	Expect(err).NotTo(HaveOccurred(), "start the control plane in %s", environment.BinaryAssetsDirectory)
	DeferCleanup(environment.Stop)

	known := runtime.NewScheme()
	Expect(scheme.AddToScheme(known)).To(Succeed())
	Expect(v1alpha1.AddToScheme(known)).To(Succeed())
	api, err = client.New(config, client.Options{Scheme: known})
	Expect(err).NotTo(HaveOccurred())

	person, err := environment.AddUser(envtest.User{Name: "person", Groups: []string{"system:masters"}}, nil)
	Expect(err).NotTo(HaveOccurred())
	raw, err := person.KubeConfig()
	Expect(err).NotTo(HaveOccurred())
	kubeconfig = filepath.Join(GinkgoT().TempDir(), "kubeconfig")
	Expect(os.WriteFile(kubeconfig, raw, 0o600)).To(Succeed())
})

// controlPlane is the folder of kube-apiserver and etcd. A suite that could not run must not look
// like one that passed, so their absence fails.
func controlPlane() string {
	if assets := os.Getenv("KUBEBUILDER_ASSETS"); assets != "" {
		return assets
	}
	assets, err := filepath.Abs(filepath.Join("..", "..", "..", "bin", "k8s"))
	Expect(err).NotTo(HaveOccurred())
	Expect(filepath.Join(assets, "kube-apiserver")).To(BeAnExistingFile(),
		"KUBEBUILDER_ASSETS is not set and the control plane is not built: run make test, or set KUBEBUILDER_ASSETS")
	return assets
}

// world is a namespace with the pool "policy" of two endpoints and the senders train and eval, made by
// a field manager "owner".
type world struct {
	namespace string
}

func newWorld(ctx context.Context) *world {
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "berth-"}}
	Expect(api.Create(ctx, namespace)).To(Succeed())
	w := &world{namespace: namespace.Name}
	w.create(ctx, "policy")
	return w
}

func (w *world) create(ctx context.Context, name string) {
	pool := &v1alpha1.InferencePool{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: w.namespace},
		Spec: v1alpha1.InferencePoolSpec{
			Backends: v1alpha1.BackendsSpec{Endpoints: []v1alpha1.Endpoint{
				{Name: "node-a", URL: "http://192.0.2.1:30000"}, {Name: "node-b", URL: "http://192.0.2.2:30000"},
			}},
			Senders: []v1alpha1.SenderSpec{{Name: "train"}, {Name: "eval"}},
		},
	}
	Expect(api.Create(ctx, pool, client.FieldOwner("owner"))).To(Succeed())
}

func (w *world) pool(ctx context.Context) *v1alpha1.InferencePool {
	GinkgoHelper()
	pool := &v1alpha1.InferencePool{}
	Expect(api.Get(ctx, client.ObjectKey{Namespace: w.namespace, Name: "policy"}, pool)).To(Succeed())
	return pool
}

// drained are the backends that the spec drains.
func (w *world) drained(ctx context.Context) []string {
	names := []string{}
	for _, d := range w.pool(ctx).Spec.Drain {
		names = append(names, d.Backend)
	}
	return names
}

// managers are the field managers of the pool's spec.
func (w *world) managers(ctx context.Context) []string {
	var names []string
	for _, f := range w.pool(ctx).ManagedFields {
		names = append(names, f.Manager)
	}
	return names
}

// report writes a status as the operator would: it describes the spec as it is now.
func (w *world) report(ctx context.Context, change func(*v1alpha1.InferencePoolStatus)) {
	GinkgoHelper()
	pool := w.pool(ctx)
	pool.Status.ObservedGeneration = pool.Generation
	change(&pool.Status)
	Expect(api.Status().Update(ctx, pool)).To(Succeed())
}

// output is what a command wrote, which may go on meanwhile.
type output struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

// ran is a command under way or ended.
type ran struct {
	out, said output
	done      chan error
}

// start runs the command line in the world's namespace.
func (w *world) start(ctx context.Context, args ...string) *ran {
	r := &ran{done: make(chan error, 1)}
	root := cli.New(genericiooptions.IOStreams{In: strings.NewReader(""), Out: &r.out, ErrOut: &r.said})
	root.SetArgs(append([]string{"--kubeconfig", kubeconfig, "--namespace", w.namespace}, args...))
	go func() { r.done <- root.ExecuteContext(ctx) }()
	return r
}

// run runs a command to its end.
func (w *world) run(ctx context.Context, args ...string) (out, said string, err error) {
	GinkgoHelper()
	r := w.start(ctx, args...)
	Eventually(r.done).Should(Receive(&err), "of %v", args)
	return r.out.String(), r.said.String(), err
}

package controller_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"

	"github.com/berthmaster/berthmaster/api/v1alpha1"
)

// patience bounds every wait; it is generous because nothing here may depend on a machine's speed.
const patience = 60 * time.Second

var (
	// scheme knows every kind that the suite uses.
	scheme = runtime.NewScheme()
	// admin reaches the suite's API server as an administrator, without a cache.
	admin client.Client
	// cluster is the suite's control plane.
	cluster *envtest.Environment
	// managers is how the suite's managers reach it.
	managers *rest.Config
)

func TestControllerAgainstARealAPIServer(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "internal/controller")
}

var _ = BeforeSuite(func(ctx context.Context) {
	SetDefaultEventuallyTimeout(patience)
	SetDefaultEventuallyPollingInterval(50 * time.Millisecond)
	ctrl.SetLogger(zap.New(zap.WriteTo(GinkgoWriter), zap.UseDevMode(true)))
	for _, add := range []func(*runtime.Scheme) error{
		authorizationv1.AddToScheme, corev1.AddToScheme, eventsv1.AddToScheme, rbacv1.AddToScheme, v1alpha1.AddToScheme,
	} {
		Expect(add(scheme)).To(Succeed())
	}
	cluster = &envtest.Environment{
		ControlPlaneStartTimeout: 2 * patience,
		BinaryAssetsDirectory:    controlPlane(),
		CRDDirectoryPaths:        []string{filepath.Join("..", "..", "config", "crd", "bases")},
		ErrorIfCRDPathMissing:    true,
	}
	config, err := cluster.Start()
	Expect(err).NotTo(HaveOccurred(), "start the control plane in %s", cluster.BinaryAssetsDirectory)
	DeferCleanup(cluster.Stop)
	admin, err = client.New(config, client.Options{Scheme: scheme})
	Expect(err).NotTo(HaveOccurred())
	managers = addManager(ctx, cluster)
})

// controlPlane is the folder of kube-apiserver and etcd. A suite that could not run must not look
// like one that passed, so their absence fails.
func controlPlane() string {
	if assets := os.Getenv("KUBEBUILDER_ASSETS"); assets != "" {
		return assets
	}
	assets, err := filepath.Abs(filepath.Join("..", "..", "bin", "k8s"))
	Expect(err).NotTo(HaveOccurred())
	Expect(filepath.Join(assets, "kube-apiserver")).To(BeAnExistingFile(),
		"KUBEBUILDER_ASSETS is not set and the control plane is not built: run make test, or set KUBEBUILDER_ASSETS")
	return assets
}

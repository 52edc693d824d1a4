package v1alpha1_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/berthmaster/berthmaster/api/v1alpha1"
)

// api talks to the suite's API server as an administrator.
var api client.Client

func TestAPIServerHoldsPoolsToTheirSchema(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "api/v1alpha1")
}

var _ = BeforeSuite(func() {
	environment := &envtest.Environment{
		ControlPlaneStartTimeout: 2 * time.Minute, // generous: nothing depends on the speed of the machine
		BinaryAssetsDirectory:    controlPlane(),
		CRDDirectoryPaths:        []string{filepath.Join("..", "..", "config", "crd", "bases")},
		ErrorIfCRDPathMissing:    true,
	}
	config, err := environment.Start()
	Expect(err).NotTo(HaveOccurred(), "start the control plane in %s", environment.BinaryAssetsDirectory)
	DeferCleanup(environment.Stop)

	scheme := runtime.NewScheme()
	Expect(v1alpha1.AddToScheme(scheme)).To(Succeed())
	api, err = refusals.listening(config, client.Options{Scheme: scheme})
	Expect(err).NotTo(HaveOccurred())
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

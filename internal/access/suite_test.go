package access_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
)

// patience bounds every wait.
const patience = time.Minute

var (
	// admin may do everything, and manager what config/rbac lets it.
	admin, manager kubernetes.Interface
	config         *rest.Config
)

func TestAccessAgainstARealAPIServer(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "internal/access")
}

var _ = BeforeSuite(func(ctx context.Context) {
	SetDefaultEventuallyTimeout(patience)
	assets := os.Getenv("KUBEBUILDER_ASSETS")
	if assets == "" {
		var err error
		assets, err = filepath.Abs(filepath.Join("..", "..", "bin", "k8s"))
		Expect(err).NotTo(HaveOccurred())
	}
	cluster := &envtest.Environment{ControlPlaneStartTimeout: 2 * patience, BinaryAssetsDirectory: assets}
	// Some clusters have it, and it asks for more rights than others do.
	cluster.ControlPlane.GetAPIServer().Configure().Append("enable-admission-plugins", "OwnerReferencesPermissionEnforcement")
	var err error
	config, err = cluster.Start()
	Expect(err).NotTo(HaveOccurred(), "start the control plane in %s", assets)
	DeferCleanup(cluster.Stop)
	admin, err = kubernetes.NewForConfig(config)
	Expect(err).NotTo(HaveOccurred())
	for _, namespace := range []string{"berthmaster-system", "rl"} {
		_, err := admin.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}, metav1.CreateOptions{})
		Expect(err).NotTo(HaveOccurred())
	}
	install(ctx)
	account(ctx, "berthmaster-system", "manager")
	own := rest.AnonymousClientConfig(config)
	own.BearerToken = token(ctx, "berthmaster-system", "manager")
	manager, err = kubernetes.NewForConfig(own)
	Expect(err).NotTo(HaveOccurred())
})

// install applies roles of config/rbac as they are, with the names that kustomize would give them.
func install(ctx context.Context) {
	GinkgoHelper()
	for _, file := range []string{"access_role.yaml", "client_role.yaml", "metrics_reader_role.yaml"} {
		for _, role := range clusterRoles(filepath.Join("..", "..", "config", "rbac", file)) {
			_, err := admin.RbacV1().ClusterRoles().Create(ctx, role, metav1.CreateOptions{})
			Expect(err).NotTo(HaveOccurred())
		}
	}
	_, err := admin.RbacV1().ClusterRoleBindings().Create(ctx, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "access"}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "access-role"},
		Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Name: "manager", Namespace: "berthmaster-system"}},
	}, metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
}

func account(ctx context.Context, namespace, name string) {
	GinkgoHelper()
	_, err := admin.CoreV1().ServiceAccounts(namespace).Create(ctx, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
}

// token is a new one of a service account, for these audiences.
func token(ctx context.Context, namespace, name string, audiences ...string) string {
	GinkgoHelper()
	made, err := admin.CoreV1().ServiceAccounts(namespace).CreateToken(ctx, name, &authenticationv1.TokenRequest{
		Spec: authenticationv1.TokenRequestSpec{Audiences: audiences, ExpirationSeconds: ptr.To[int64](600)},
	}, metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
	return made.Status.Token
}

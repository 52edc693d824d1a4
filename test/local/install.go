package local

import (
	"cmp"
	"context"
	"crypto/tls"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	v1alpha1 "github.com/berthmaster/berthmaster/api/v1alpha1"
)

const (
	// managerNamespace and managerAccount are what config/rbac binds.
	managerNamespace = "berthmaster-system"
	managerAccount   = "berthmaster-manager"
	// managerPatience bounds how long the manager may take to be ready.
	managerPatience = 2 * time.Minute
	// tokenLife outlasts any run.
	tokenLife = 12 * time.Hour
)

// readSample reads the one pool of a manifest.
func readSample(path string) (*v1alpha1.InferencePool, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("sample: %w", err)
	}
	pool := &v1alpha1.InferencePool{}
	if err := yaml.UnmarshalStrict(text, pool); err != nil {
		return nil, fmt.Errorf("sample %s: %w", path, err)
	}
	if pool.Spec.Backends.Selector == nil {
		return nil, fmt.Errorf("sample %s: spec.backends.selector is not set, so no pod can match it", path)
	}
	if pool.Namespace == "" {
		pool.Namespace = metav1.NamespaceDefault
	}
	return pool, nil
}

// install applies the resource definition and the manager's rights as a user
// would, and makes the namespaces.
func (s *System) install(ctx context.Context) error {
	kubectl := s.Kubectl()
	for _, namespace := range []string{managerNamespace, s.sample.Namespace} {
		if err := s.ensureNamespace(ctx, namespace); err != nil {
			return err
		}
	}
	for _, folder := range []string{"config/crd", "config/rbac"} {
		if _, err := kubectl.Run(ctx, "apply", "-k", filepath.Join(s.config.Root, folder)); err != nil {
			return err
		}
	}
	_, err := kubectl.Run(ctx, "wait", "--for=condition=Established", "--timeout=60s",
		"crd/inferencepools.inference.berthmaster.io")
	if err != nil {
		return err
	}
	s.config.Say("installed config/crd and config/rbac")
	return nil
}

func (s *System) ensureNamespace(ctx context.Context, name string) error {
	if name == metav1.NamespaceDefault {
		return nil
	}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if _, err := s.clients.CoreV1().Namespaces().Create(ctx, namespace, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("namespace %s: %w", name, err)
	}
	return nil
}

// startManager runs the real binary as the service account that config/rbac
// binds, and so with exactly its rights.
func (s *System) startManager(ctx context.Context) error {
	if s.config.Replicas > 0 {
		return s.startReplicas(ctx)
	}
	account, err := s.managerConfig(ctx)
	if err != nil {
		return err
	}
	kubeconfig := filepath.Join(s.state(), "manager.kubeconfig")
	if err := writeKubeconfig(kubeconfig, account); err != nil {
		return err
	}
	ports, err := freePorts(ctx, 3)
	if err != nil {
		return err
	}
	leases := cmp.Or(s.config.LeaseAddress, loopback(ports[0]))
	s.leases, s.metrics = "http://"+leases, "http://"+loopback(ports[1])+"/metrics"
	s.manager, err = s.processes.Start(Command{
		Name: "manager",
		Path: filepath.Join(s.config.Bin, "manager"),
		Args: append([]string{
			"--kubeconfig=" + kubeconfig,
			"--lease-bind-address=" + leases,
			"--metrics-bind-address=" + loopback(ports[1]),
			"--health-probe-bind-address=" + loopback(ports[2]),
			"--engine-special-addresses=Allow", "--engine-networks=127.0.0.0/8",
		}, s.config.ManagerFlags...),
	})
	if err != nil {
		return err
	}
	s.watch(s.manager)
	if err := s.waitManager(ctx, "http://"+loopback(ports[2])+"/readyz"); err != nil {
		return err
	}
	s.config.Say("the manager serves leases on " + s.leases + ", as " + managerNamespace + "/" + managerAccount)
	return nil
}

func (s *System) waitManager(ctx context.Context, url string) error {
	return until(ctx, managerPatience, "the manager to be ready", func(ctx context.Context) error {
		select {
		case <-s.manager.Done():
			return hopeless(fmt.Errorf("manager ended: %w; see %s", s.manager.Err(), s.processes.LogPath("manager")))
		default:
			return probe(ctx, url)
		}
	})
}

// managerConfig is how the manager's service account reaches the API server.
func (s *System) managerConfig(ctx context.Context) (*rest.Config, error) {
	token, err := s.clients.CoreV1().ServiceAccounts(managerNamespace).CreateToken(ctx, managerAccount,
		&authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{
			ExpirationSeconds: ptr.To(int64(tokenLife.Seconds())),
		}}, metav1.CreateOptions{})
	if err != nil {
		return nil, fmt.Errorf("token of the manager's service account: %w", err)
	}
	return &rest.Config{
		Host:            s.control.Admin.Host,
		BearerToken:     token.Status.Token,
		TLSClientConfig: rest.TLSClientConfig{CAData: s.control.Admin.CAData},
	}, nil
}

// probe asks a URL and is content with the status 200.
func probe(ctx context.Context, url string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	// As the kubelet does, it looks at no certificate.
	transport := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true, MinVersion: tls.VersionTLS12}}
	defer transport.CloseIdleConnections()
	reply, err := (&http.Client{Transport: transport}).Do(req)
	if err != nil {
		return err
	}
	defer reply.Body.Close()
	if reply.StatusCode != http.StatusOK {
		return fmt.Errorf("%s answers %s", url, reply.Status)
	}
	return nil
}

package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/yaml"

	"github.com/berthmaster/berthmaster/api/v1alpha1"
)

// namespace is where all pools and pods are.
const namespace = "default"

// site is a cluster, engines and a manager.
type site struct {
	layout  layout
	folder  string
	cluster *envtest.Environment
	api     client.WithWatch
	engines *engines
	manager *manager
}

// openSite brings everything up. On failure nothing is left running.
func openSite(ctx context.Context, o *options, l layout) (_ *site, err error) {
	s := &site{layout: l}
	defer func() {
		if err != nil {
			err = s.close(err)
		}
	}()
	if s.folder, err = os.MkdirTemp("", "berthmaster-bench-"); err != nil {
		return nil, err
	}
	if s.engines, err = openEngines(l.pools * l.backends); err != nil {
		return nil, err
	}
	kubeconfig, err := s.openCluster(ctx, o)
	if err != nil {
		return nil, err
	}
	if err := s.populate(ctx); err != nil {
		return nil, err
	}
	ports, err := freePorts(ctx)
	if err != nil {
		return nil, err
	}
	s.manager, err = startManager(o, s.folder, kubeconfig, ports)
	return s, err
}

// openCluster starts a control plane with the project's resource definition and a user with the
// manager's rights, whose kubeconfig it returns.
func (s *site) openCluster(ctx context.Context, o *options) (string, error) {
	assets, err := filepath.Abs(o.assets)
	if err != nil {
		return "", err
	}
	cluster := &envtest.Environment{
		ControlPlaneStartTimeout: patience,
		BinaryAssetsDirectory:    assets, ErrorIfCRDPathMissing: true,
		CRDDirectoryPaths: []string{filepath.Join(o.root, "config", "crd", "bases")},
	}
	// Else it would look for a network other than loopback, which there need not be.
	cluster.ControlPlane.GetAPIServer().Configure().
		Set("advertise-address", "127.0.0.1").Set("endpoint-reconciler-type", "none")
	config, err := cluster.Start()
	if err != nil {
		return "", fmt.Errorf("start the control plane in %s: %w", assets, err)
	}
	s.cluster = cluster
	config.QPS = -1
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, rbacv1.AddToScheme, v1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			return "", err
		}
	}
	if s.api, err = client.NewWithWatch(config, client.Options{Scheme: scheme}); err != nil {
		return "", err
	}
	user, err := cluster.AddUser(envtest.User{Name: "berthmaster"}, nil)
	if err != nil {
		return "", err
	}
	if err := s.grant(ctx, o); err != nil {
		return "", err
	}
	text, err := user.KubeConfig()
	if err != nil {
		return "", err
	}
	path := filepath.Join(s.folder, "kubeconfig")
	return path, os.WriteFile(path, text, 0o600)
}

// grant gives the manager's user the rights of config/rbac.
func (s *site) grant(ctx context.Context, o *options) error {
	manifest, err := os.ReadFile(filepath.Join(o.root, "config", "rbac", "role.yaml"))
	if err != nil {
		return err
	}
	role := &rbacv1.ClusterRole{}
	if err := yaml.UnmarshalStrict(manifest, role); err != nil {
		return fmt.Errorf("config/rbac/role.yaml: %w", err)
	}
	return errors.Join(s.api.Create(ctx, role), s.api.Create(ctx, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "berthmaster"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role.Name},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: "berthmaster"}},
	}))
}

// close ends what runs, and keeps the manager's log if something failed.
func (s *site) close(failed error) error {
	if s.manager != nil {
		s.manager.stop()
	}
	if s.engines != nil {
		s.engines.close()
	}
	if s.cluster != nil {
		failed = errors.Join(failed, s.cluster.Stop())
	}
	if failed != nil && s.folder != "" {
		return fmt.Errorf("%w; the manager's log is in %s", failed, s.folder)
	}
	return errors.Join(failed, os.RemoveAll(s.folder))
}

// freePorts are three that were free a moment ago.
func freePorts(ctx context.Context) (ports [3]int, err error) {
	var lc net.ListenConfig
	for i := range ports {
		listener, err := lc.Listen(ctx, "tcp", "127.0.0.1:0")
		if err != nil {
			return ports, err
		}
		defer listener.Close()
		ports[i] = listener.Addr().(*net.TCPAddr).Port
	}
	return ports, nil
}

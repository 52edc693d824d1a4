package local

import (
	"context"
	"fmt"
	"net"
	"path/filepath"
	"strconv"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// controlPlanePatience bounds how long etcd and kube-apiserver may take to come
// up together; on an idle machine they need three seconds.
const controlPlanePatience = 3 * time.Minute

// ControlPlane is a running etcd and kube-apiserver.
type ControlPlane struct {
	// Admin may do everything.
	Admin *rest.Config
	// AdminKubeconfig is a file with the same rights, for kubectl.
	AdminKubeconfig string

	etcd, apiserver *Process
}

// controlPlaneConfig says where a control plane finds and leaves things.
type controlPlaneConfig struct {
	assets string // folder with etcd and kube-apiserver
	state  string // folder for data and certificates; must be empty
	now    time.Time
}

// startControlPlane returns once the API server says that it is ready.
func startControlPlane(ctx context.Context, processes *Processes, c controlPlaneConfig) (*ControlPlane, error) {
	ports, err := freePorts(ctx, 3)
	if err != nil {
		return nil, err
	}
	creds, err := makeCredentials(c.state, c.now)
	if err != nil {
		return nil, err
	}
	cp := &ControlPlane{AdminKubeconfig: filepath.Join(c.state, "admin.kubeconfig")}
	client := "http://" + loopback(ports[0])
	cp.etcd, err = processes.Start(Command{
		Name: "etcd", Path: filepath.Join(c.assets, "etcd"),
		Args: etcdArgs(filepath.Join(c.state, "etcd"), client, "http://"+loopback(ports[1])),
	})
	if err != nil {
		return nil, err
	}
	cp.apiserver, err = processes.Start(Command{
		Name: "kube-apiserver", Path: filepath.Join(c.assets, "kube-apiserver"),
		Args: apiserverArgs(creds, client, ports[2]),
	})
	if err != nil {
		return nil, err
	}
	cp.Admin = creds.admin("https://" + loopback(ports[2]))
	if err := cp.waitReady(ctx); err != nil {
		return nil, err
	}
	return cp, writeKubeconfig(cp.AdminKubeconfig, cp.Admin)
}

func etcdArgs(data, client, peer string) []string {
	return []string{
		"--data-dir=" + data,
		"--listen-client-urls=" + client, "--advertise-client-urls=" + client,
		"--listen-peer-urls=" + peer, "--initial-advertise-peer-urls=" + peer,
		"--initial-cluster=default=" + peer,
		// The data does not outlive the processes, so nothing is gained by
		// waiting for the disk.
		"--unsafe-no-fsync",
	}
}

func apiserverArgs(c *credentials, etcd string, port int) []string {
	return []string{
		"--etcd-servers=" + etcd,
		"--bind-address=127.0.0.1", "--secure-port=" + strconv.Itoa(port),
		"--advertise-address=127.0.0.1", "--endpoint-reconciler-type=none",
		"--tls-cert-file=" + c.path("apiserver.crt"), "--tls-private-key-file=" + c.path("apiserver.key"),
		"--client-ca-file=" + c.path("ca.crt"),
		"--service-account-issuer=https://kubernetes.default.svc",
		"--service-account-key-file=" + c.path("service-accounts.pub"),
		"--service-account-signing-key-file=" + c.path("service-accounts.key"),
		"--authorization-mode=RBAC",
		"--service-cluster-ip-range=10.0.0.0/24",
		// Nobody makes the default service account of a namespace here, and
		// pods that nobody runs need none.
		"--disable-admission-plugins=ServiceAccount",
	}
}

// waitReady polls the API server until it is ready, ctx ends, or one of the two
// processes does.
func (cp *ControlPlane) waitReady(ctx context.Context) error {
	clients, err := kubernetes.NewForConfig(cp.Admin)
	if err != nil {
		return fmt.Errorf("client for the API server: %w", err)
	}
	return until(ctx, controlPlanePatience, "kube-apiserver to be ready", func(ctx context.Context) error {
		for _, p := range []*Process{cp.etcd, cp.apiserver} {
			select {
			case <-p.Done():
				return hopeless(fmt.Errorf("%s ended: %w", p.Name(), p.Err()))
			default:
			}
		}
		return clients.RESTClient().Get().AbsPath("/readyz").Do(ctx).Error()
	})
}

// stop ends the API server first, so that it does not complain about its store.
func (cp *ControlPlane) stop(ctx context.Context) {
	for _, p := range []*Process{cp.apiserver, cp.etcd} {
		if p != nil {
			stop(ctx, 10*time.Second, p)
		}
	}
}

func loopback(port int) string {
	return net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
}

// freePorts finds ports of 127.0.0.1 that nobody listens on. Another process
// may take one before it is used; then its user fails to start, and says so.
func freePorts(ctx context.Context, n int) ([]int, error) {
	ports := make([]int, 0, n)
	var listen net.ListenConfig
	for range n {
		// All stay open until the last is found, so that they differ.
		l, err := listen.Listen(ctx, "tcp", "127.0.0.1:0")
		if err != nil {
			return nil, fmt.Errorf("looking for a free port: %w", err)
		}
		defer l.Close()
		ports = append(ports, l.Addr().(*net.TCPAddr).Port)
	}
	return ports, nil
}

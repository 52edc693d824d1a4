package cluster

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"net/http"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	ctrlclient "sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/berthmaster/berthmaster/client"
	"github.com/berthmaster/berthmaster/test/local"
)

const (
	// leaseService is the Service that the manifests make, authorities the ConfigMap that the
	// manager publishes what it is trusted by in.
	leaseService = "berthmaster-leases"
	authorities  = "berthmaster-ca"
	// retryFor outlasts what is done to the operator here, and stays below half of what a pool remembers.
	retryFor = 4 * time.Minute
)

// workers are the accounts and rights of those who take leases, as docs/install.md has them.
// The role is of the cluster, or where the operator is installed for one namespace, of that.
const workers = `apiVersion: v1
kind: ServiceAccount
metadata: {name: worker, namespace: rl}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: workers-by-KIND, namespace: rl}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: KIND, name: berthmaster-client}
subjects: [{kind: ServiceAccount, name: worker, namespace: rl}]
`

// allowWorkers gives the workers their rights.
func (h *house) allowWorkers(ctx context.Context) {
	GinkgoHelper()
	kind := "ClusterRole"
	if h.home == poolNamespace {
		kind = "Role"
	}
	h.apply(ctx, strings.NewReplacer("by-KIND", "by-"+strings.ToLower(kind), "KIND", kind).Replace(workers), "--server-side")
}

// caller is a worker outside of pods: it has a pod's token, and reaches the Service by its ClusterIP.
type caller struct {
	url   string
	token string
	trust *tls.Config
	http  *http.Client
}

// newCaller takes a fresh token and the authorities that the manager publishes in the pool's namespace.
func (h *house) newCaller(ctx context.Context) *caller {
	GinkgoHelper()
	var service corev1.Service
	Expect(h.kube.Get(ctx, ctrlclient.ObjectKey{Namespace: h.home, Name: leaseService}, &service)).To(Succeed())
	c := &caller{
		token: strings.TrimSpace(h.must(ctx, "create token worker -n rl --duration=2h")),
		trust: &tls.Config{RootCAs: h.roots(ctx), MinVersion: tls.VersionTLS12},
		url: fmt.Sprintf("https://%s.%s.svc:%d/v1alpha1/namespaces/%s/inferencepools/%s",
			leaseService, h.home, service.Spec.Ports[0].Port, poolNamespace, poolName),
	}
	// The machine beside the nodes does not ask the cluster's DNS.
	address := net.JoinHostPort(service.Spec.ClusterIP, fmt.Sprint(service.Spec.Ports[0].Port))
	c.http = &http.Client{Transport: &http.Transport{
		TLSClientConfig: c.trust, TLSHandshakeTimeout: 5 * time.Second, ResponseHeaderTimeout: 10 * time.Minute,
		MaxIdleConnsPerHost: 64, IdleConnTimeout: 30 * time.Second, ForceAttemptHTTP2: true,
		DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
			return (&net.Dialer{Timeout: 5 * time.Second}).DialContext(ctx, network, address)
		},
	}}
	DeferCleanup(c.http.CloseIdleConnections)
	return c
}

func (h *house) roots(ctx context.Context) *x509.CertPool {
	GinkgoHelper()
	var bundle corev1.ConfigMap
	Eventually(ctx, func(ctx context.Context) error {
		return h.kube.Get(ctx, ctrlclient.ObjectKey{Namespace: poolNamespace, Name: authorities}, &bundle)
	}).Should(Succeed())
	roots := x509.NewCertPool()
	Expect(roots.AppendCertsFromPEM([]byte(bundle.Data["ca.crt"]))).To(BeTrue())
	return roots
}

// config is how the Go client reaches the pool.
func (c *caller) config() client.Config {
	return client.Config{
		BaseURL: c.url, Transport: c.http.Transport, RetryFor: retryFor,
		Token: func(context.Context) (string, error) { return c.token, nil },
	}
}

func (c *caller) authorize(r *http.Request) { r.Header.Set("Authorization", "Bearer "+c.token) }

// live asks the router what it counts.
func (c *caller) live(ctx context.Context) (local.Live, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, c.url, nil)
	if err != nil {
		return local.Live{}, err
	}
	c.authorize(req)
	return local.ReadLive(c.http, req)
}

package connect

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net/http"
	"os"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

const (
	// authorityConfigMap is where the manager publishes whom to trust: in its own namespace, and in each
	// that has a pool.
	authorityConfigMap = "berthmaster-ca"
	authorityKey       = "ca.crt"
	// serviceName is the name that the manager's certificate is for, in its namespace.
	serviceName = "berthmaster-leases"
)

// Trust is how the certificate of a router is judged.
type Trust struct {
	// CAFile has the certificates, as PEM, of those who may vouch for the router; empty: those that the
	// manager publishes, or the system's for a router whose URL is given.
	CAFile string
}

// transport is an HTTP transport that trusts the router's URL that the user gave. It goes through no
// proxy: a router is not out on the internet.
func (t Trust) transport() (*http.Transport, error) {
	settings := &tls.Config{MinVersion: tls.VersionTLS12}
	if t.CAFile != "" {
		pem, err := os.ReadFile(t.CAFile)
		if err != nil {
			return nil, fmt.Errorf("--router-ca-file: %w", err)
		}
		settings.RootCAs = x509.NewCertPool()
		if !settings.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("--router-ca-file: %s has no certificate", t.CAFile)
		}
	}
	return &http.Transport{TLSClientConfig: settings, TLSHandshakeTimeout: 10 * time.Second, IdleConnTimeout: 30 * time.Second, MaxIdleConnsPerHost: 16}, nil
}

// published is what the manager says whom to trust, and the name of its certificate.
func (t Trust) published(ctx context.Context, clients kubernetes.Interface, manager, pool string) (*http.Transport, error) {
	transport, err := t.transport()
	if err != nil {
		return nil, err
	}
	transport.TLSClientConfig.ServerName = serviceName + "." + manager + ".svc"
	if t.CAFile != "" {
		return transport, nil
	}
	pem, err := readAuthorities(ctx, clients, pool, manager)
	if err != nil {
		return nil, err
	}
	transport.TLSClientConfig.RootCAs = x509.NewCertPool()
	if !transport.TLSClientConfig.RootCAs.AppendCertsFromPEM([]byte(pem)) {
		return nil, fmt.Errorf("the ConfigMap %s has no certificate: name one with --router-ca-file", authorityConfigMap)
	}
	return transport, nil
}

// readAuthorities reads the bundle in the first of the namespaces that has it.
func readAuthorities(ctx context.Context, clients kubernetes.Interface, namespaces ...string) (string, error) {
	var last error
	for _, namespace := range namespaces {
		found, err := clients.CoreV1().ConfigMaps(namespace).Get(ctx, authorityConfigMap, metav1.GetOptions{})
		if err == nil {
			return found.Data[authorityKey], nil
		}
		last = err
	}
	return "", fmt.Errorf("whom to trust for the router is not known: the ConfigMap %s cannot be read in the namespaces %s; "+
		"name a file with --router-ca-file: %w", authorityConfigMap, strings.Join(namespaces, " and "), last)
}

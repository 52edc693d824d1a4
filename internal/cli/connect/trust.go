package connect

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net/http"
	"os"
	"time"

	"k8s.io/client-go/rest"
)

// Trust is how the certificate of a router is judged.
type Trust struct {
	// CAFile has the certificates, as PEM, of those who may vouch for the router; empty: the system's.
	CAFile string
	// forwarded is the namespace of the manager's pod, where calls go through a port-forward to it.
	forwarded string
}

func (t Trust) within(namespace string) Trust {
	t.forwarded = namespace
	return t
}

// transport is an HTTP transport that judges so. It goes through no proxy: a port-forward cannot, and
// a router is not out on the internet.
func (t Trust) transport(_ context.Context, _ *rest.Config) (*http.Transport, error) {
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

package connect

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/transport"

	"github.com/berthmaster/berthmaster/internal/cli/live"
)

// Router says how to reach a pool's router, and as whom.
type Router struct {
	// Config is the user's way to the API server.
	Config *rest.Config
	// URL is the router's base URL; empty: a port-forward to a pod of the manager.
	URL string
	// Namespace is where the manager runs.
	Namespace string
	// ServiceAccount is the account of the pool's namespace that a token is asked for; empty: the
	// kubeconfig's own token.
	ServiceAccount string
	// Trust is how a router of an https URL is trusted.
	Trust Trust
}

// Open returns a client of one pool, and what closes its connections.
func (r Router) Open(ctx context.Context, namespace, pool string) (*live.Client, func(), error) {
	base, wire, closing, err := r.wire(ctx, namespace)
	if err != nil {
		return nil, nil, err
	}
	authorized, err := r.authorize(ctx, base, namespace, wire)
	if err != nil {
		closing()
		return nil, nil, err
	}
	return live.New(base, authorized, namespace, pool), closing, nil
}

// wire is the way to the router, without credentials.
func (r Router) wire(ctx context.Context, namespace string) (base string, wire *http.Transport, closing func(), err error) {
	if r.URL != "" {
		wire, err := r.Trust.transport()
		if err != nil {
			return "", nil, nil, err
		}
		return r.URL, wire, wire.CloseIdleConnections, nil
	}
	clients, err := kubernetes.NewForConfig(r.Config)
	if err != nil {
		return "", nil, nil, fmt.Errorf("client of the API server: %w", err)
	}
	manager, err := findManager(ctx, clients, r.Namespace)
	if err != nil {
		return "", nil, nil, err
	}
	if wire, err = r.Trust.transport(); manager.scheme == "https" {
		wire, err = r.Trust.published(ctx, clients, r.Namespace, namespace)
	}
	if err != nil {
		return "", nil, nil, err
	}
	forward := NewForward(r.Config, r.Namespace, manager.pod, manager.port)
	wire.DialContext = forward.Dial
	return manager.base(), wire, func() { wire.CloseIdleConnections(); forward.Close() }, nil
}

// ErrPlain is that a token would have to cross a network in the clear.
var ErrPlain = errors.New("a token is not sent to a router beyond this machine without TLS: use an https URL")

// authorize adds the caller's token, if there is one.
func (r Router) authorize(ctx context.Context, base, namespace string, wire http.RoundTripper) (http.RoundTripper, error) {
	identity, err := r.identity(ctx, namespace)
	if err != nil || identity == nil {
		return wire, err
	}
	if r.URL != "" && !private(base) {
		return nil, ErrPlain
	}
	settings, err := identity.TransportConfig()
	if err != nil {
		return nil, fmt.Errorf("credentials for the router: %w", err)
	}
	authorized, err := transport.HTTPWrappersForConfig(settings, wire)
	if err != nil {
		return nil, fmt.Errorf("credentials for the router: %w", err)
	}
	return authorized, nil
}

// identity has nothing but the user's token; nil: the user has none.
func (r Router) identity(ctx context.Context, namespace string) (*rest.Config, error) {
	if r.ServiceAccount != "" {
		token, err := requestToken(ctx, r.Config, namespace, r.ServiceAccount)
		return &rest.Config{BearerToken: token}, err
	}
	if r.Config == nil || !HasToken(r.Config) {
		return nil, nil //nolint:nilnil // to have no token is no error: the router may ask for none
	}
	return &rest.Config{
		BearerToken: r.Config.BearerToken, BearerTokenFile: r.Config.BearerTokenFile,
		ExecProvider: r.Config.ExecProvider, AuthProvider: r.Config.AuthProvider, AuthConfigPersister: r.Config.AuthConfigPersister,
	}, nil
}

// HasToken reports whether a kubeconfig identifies its user by a token, which the router can check,
// and not by a client certificate alone.
func HasToken(c *rest.Config) bool {
	return c.BearerToken != "" || c.BearerTokenFile != "" || c.ExecProvider != nil || c.AuthProvider != nil
}

// private: nobody on the way can read what is sent.
func private(base string) bool {
	u, err := url.Parse(base)
	return err == nil && (u.Scheme == "https" || loopback(u.Hostname()))
}

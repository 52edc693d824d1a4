package apiserver

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// Addresses are those of the API server. They are safe for concurrent use.
type Addresses struct {
	// Hosts are where clients reach it: host:port, or a URL; a missing port is that of HTTPS, and an empty host none.
	Hosts []string
	// Clients read the EndpointSlice kubernetes of the namespace default; required.
	Clients kubernetes.Interface
	// Lookup resolves the name of a host; nil: the machine's resolver does.
	Lookup func(ctx context.Context, network, host string) ([]netip.Addr, error)

	mu       sync.RWMutex
	hosts    map[netip.AddrPort]struct{} // guarded by mu
	backends map[netip.AddrPort]struct{} // guarded by mu
}

// ErrNoRight: the manager may not read where the API server's processes are, as with the rights of one namespace only.
// Their hosts are known none the less.
var ErrNoRight = errors.New("no right to get the EndpointSlice default/kubernetes")

// patience bounds one reading.
const patience = 10 * time.Second

// Has reports whether the API server is at this address, as far as is known.
func (a *Addresses) Has(at netip.AddrPort) bool {
	at = netip.AddrPortFrom(at.Addr().Unmap(), at.Port())
	a.mu.RLock()
	defer a.mu.RUnlock()
	_, host := a.hosts[at]
	_, backend := a.backends[at]
	return host || backend
}

// Read looks where the API server is now. What cannot be read stays as it was, and is in the error.
func (a *Addresses) Read(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	hosts, hostsErr := a.resolve(ctx)
	backends, backendsErr := a.slice(ctx)
	a.mu.Lock()
	defer a.mu.Unlock()
	if hostsErr == nil {
		a.hosts = hosts
	}
	if backendsErr == nil {
		a.backends = backends
	}
	return errors.Join(hostsErr, backendsErr)
}

// Follow reads again once in each period, until ctx is done. Complain is told of what could not be read, but for a
// right that is not there.
func (a *Addresses) Follow(ctx context.Context, period time.Duration, complain func(error)) {
	tick := time.NewTicker(period)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		if err := a.Read(ctx); err != nil && !errors.Is(err, ErrNoRight) && ctx.Err() == nil {
			complain(err)
		}
	}
}

func (a *Addresses) resolve(ctx context.Context) (map[netip.AddrPort]struct{}, error) {
	lookup := a.Lookup
	if lookup == nil {
		lookup = net.DefaultResolver.LookupNetIP
	}
	found := map[netip.AddrPort]struct{}{}
	for _, text := range a.Hosts {
		host, port, err := hostPort(text)
		if err != nil {
			return nil, err
		}
		if host == "" {
			continue
		}
		list, err := lookup(ctx, "ip", host)
		if err != nil {
			return nil, fmt.Errorf("addresses of the API server: %w", err)
		}
		for _, address := range list {
			found[netip.AddrPortFrom(address.Unmap(), port)] = struct{}{}
		}
	}
	return found, nil
}

// hostPort takes host:port or a URL apart.
func hostPort(text string) (string, uint16, error) {
	if u, err := url.Parse(text); err == nil && u.Host != "" {
		text = u.Host
	}
	host, port, err := net.SplitHostPort(text)
	if err != nil {
		host, port = strings.Trim(text, "[]"), "443"
	}
	if host == "" {
		return "", 0, nil
	}
	number, err := strconv.ParseUint(port, 10, 16)
	if err != nil {
		return "", 0, fmt.Errorf("host of the API server: the port %q is no number", port)
	}
	return host, uint16(number), nil
}

// slice reads where the processes are that serve it. Without such an object there are none that are told of.
func (a *Addresses) slice(ctx context.Context) (map[netip.AddrPort]struct{}, error) {
	slice, err := a.Clients.DiscoveryV1().EndpointSlices(metav1.NamespaceDefault).Get(ctx, "kubernetes", metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil
	case apierrors.IsForbidden(err):
		return nil, ErrNoRight
	case err != nil:
		return nil, fmt.Errorf("addresses of the API server: %w", err)
	}
	return endpoints(slice), nil
}

// endpoints are all of a slice, ready or not: one that is not may be so in a moment.
func endpoints(slice *discoveryv1.EndpointSlice) map[netip.AddrPort]struct{} {
	found := map[netip.AddrPort]struct{}{}
	for _, endpoint := range slice.Endpoints {
		for _, text := range endpoint.Addresses {
			address, err := netip.ParseAddr(text)
			if err != nil {
				continue // a name, which these have not
			}
			for _, port := range slice.Ports {
				if port.Port != nil {
					found[netip.AddrPortFrom(address.Unmap(), uint16(*port.Port))] = struct{}{}
				}
			}
		}
	}
	return found
}

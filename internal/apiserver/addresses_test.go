package apiserver

import (
	"context"
	"errors"
	"net/netip"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/fake"
	k8stesting "k8s.io/client-go/testing"
	"k8s.io/utils/ptr"
)

// served is the slice of API servers at these addresses, port 6443.
func served(addresses ...string) *discoveryv1.EndpointSlice {
	s := &discoveryv1.EndpointSlice{
		ObjectMeta:  metav1.ObjectMeta{Namespace: "default", Name: "kubernetes"},
		AddressType: discoveryv1.AddressTypeIPv4,
		Ports:       []discoveryv1.EndpointPort{{Name: ptr.To("https"), Port: ptr.To[int32](6443)}},
	}
	for i, address := range addresses {
		s.Endpoints = append(s.Endpoints, discoveryv1.Endpoint{Addresses: []string{address}, Conditions: discoveryv1.EndpointConditions{Ready: ptr.To(i == 0)}})
	}
	return s
}

// names is a resolver that knows some.
type names map[string]string

func (n names) lookup(_ context.Context, _, host string) ([]netip.Addr, error) {
	if address, err := netip.ParseAddr(host); err == nil {
		return []netip.Addr{address}, nil
	}
	address, ok := n[host]
	if !ok {
		return nil, errors.New("no such host")
	}
	return []netip.Addr{netip.MustParseAddr(address)}, nil
}

func (n names) addresses(clients *fake.Clientset, hosts ...string) *Addresses {
	return &Addresses{Hosts: hosts, Clients: clients, Lookup: n.lookup}
}

// has fails unless exactly these of the candidates are known.
func has(t *testing.T, a *Addresses, when string, want map[string]bool) {
	t.Helper()
	for text, known := range want {
		if a.Has(netip.MustParseAddrPort(text)) != known {
			t.Errorf("%s: %s is known as the API server's: %t, want %t", when, text, !known, known)
		}
	}
}

func TestTheAPIServerIsAtItsHostsAndWhereItsServiceLeads(t *testing.T) {
	a := names{"api.example": "192.0.2.1", "bare.example": "192.0.2.2"}.addresses(fake.NewClientset(served("10.0.0.5", "10.0.0.6")),
		"https://api.example:6443/base", "10.96.0.1:443", "bare.example", "https://[2001:db8::1]", ":", "")
	has(t, a, "before it is read", map[string]bool{"10.0.0.5:6443": false})
	if err := a.Read(t.Context()); err != nil {
		t.Fatal(err)
	}
	has(t, a, "then", map[string]bool{
		"192.0.2.1:6443": true, "10.96.0.1:443": true, "192.0.2.2:443": true, "[2001:db8::1]:443": true,
		"10.0.0.5:6443": true, "[::ffff:10.0.0.5]:6443": true, "10.0.0.6:6443": true,
		"10.0.0.5:30000": false, "10.0.0.7:6443": false, "192.0.2.1:443": false,
	})
}

func TestWhatCannotBeReadStaysKnown(t *testing.T) {
	clients, n := fake.NewClientset(served("10.0.0.5")), names{"api.example": "192.0.2.1"}
	a := n.addresses(clients, "https://api.example")
	if err := a.Read(t.Context()); err != nil {
		t.Fatal(err)
	}
	away := errors.New("away")
	clients.PrependReactor("get", "endpointslices", func(k8stesting.Action) (bool, runtime.Object, error) { return true, nil, away })
	n["api.example"] = "192.0.2.9"
	if err := a.Read(t.Context()); !errors.Is(err, away) {
		t.Errorf("got %v", err)
	}
	has(t, a, "while slices cannot be read", map[string]bool{"10.0.0.5:6443": true, "192.0.2.9:443": true, "192.0.2.1:443": false})
	delete(n, "api.example")
	clients.PrependReactor("get", "endpointslices", func(k8stesting.Action) (bool, runtime.Object, error) { return true, served("10.0.0.8"), nil })
	if a.Read(t.Context()) == nil {
		t.Error("a name that does not resolve is no error")
	}
	has(t, a, "while names cannot be resolved", map[string]bool{"10.0.0.8:6443": true, "10.0.0.5:6443": false, "192.0.2.9:443": true})
}

func TestWithoutTheRightOrTheSliceHostsAreKnown(t *testing.T) {
	none, forbidden := fake.NewClientset(), fake.NewClientset()
	forbidden.PrependReactor("get", "endpointslices", func(k8stesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewForbidden(schema.GroupResource{Resource: "endpointslices"}, "kubernetes", nil)
	})
	for what, c := range map[string]struct {
		clients *fake.Clientset
		err     error
	}{"no slice": {none, nil}, "no right": {forbidden, ErrNoRight}} {
		a := names{}.addresses(c.clients, "10.96.0.1:443")
		if err := a.Read(t.Context()); !errors.Is(err, c.err) {
			t.Errorf("%s: %v", what, err)
		}
		has(t, a, what, map[string]bool{"10.96.0.1:443": true})
	}
}

func TestHostsThatMakeNoSenseAreAnError(t *testing.T) {
	if a := (names{}).addresses(fake.NewClientset(), "10.0.0.1:https"); a.Read(t.Context()) == nil {
		t.Error("a port that is no number is taken")
	}
}

func TestAnAPIServerThatMovesIsFollowed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		clients := fake.NewClientset()
		type answer struct {
			slice *discoveryv1.EndpointSlice
			err   error
		}
		var now atomic.Pointer[answer]
		clients.PrependReactor("get", "endpointslices", func(k8stesting.Action) (bool, runtime.Object, error) {
			return true, now.Load().slice, now.Load().err
		})
		a := names{}.addresses(clients)
		ctx, stop := context.WithCancel(t.Context())
		var told []error
		ended := make(chan struct{})
		go func() { a.Follow(ctx, time.Minute, func(err error) { told = append(told, err) }); close(ended) }()
		pass := func(slice *discoveryv1.EndpointSlice, err error) {
			now.Store(&answer{slice, err})
			<-time.After(time.Minute)
			synctest.Wait()
		}
		pass(served("10.0.0.5"), nil)
		has(t, a, "a minute later", map[string]bool{"10.0.0.5:6443": true})
		pass(served("10.0.0.6"), nil)
		has(t, a, "once it has moved", map[string]bool{"10.0.0.5:6443": false, "10.0.0.6:6443": true})
		pass(nil, errors.New("away"))
		pass(nil, apierrors.NewForbidden(schema.GroupResource{Resource: "endpointslices"}, "kubernetes", nil))
		stop()
		<-ended
		if len(told) != 1 {
			t.Errorf("told of %v, want once that it is away", told)
		}
	})
}

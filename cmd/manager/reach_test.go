package main

import (
	"errors"
	"testing"

	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"

	"github.com/berthmaster/berthmaster/internal/sglang"
)

func TestTheAPIServerIsNoEngineNeitherByItsServiceNorByItsNodes(t *testing.T) {
	t.Setenv("KUBERNETES_SERVICE_HOST", "10.96.0.1")
	t.Setenv("KUBERNETES_SERVICE_PORT", "443")
	slice := &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "kubernetes"},
		Endpoints:  []discoveryv1.Endpoint{{Addresses: []string{"10.0.0.5"}}}, Ports: []discoveryv1.EndpointPort{{Port: ptr.To[int32](6443)}},
	}
	for name, c := range map[string]struct {
		url, special string
		may          bool
	}{
		"the Service":                          {"https://10.96.0.1", "Refuse", false},
		"the host that the manager itself has": {"https://10.0.0.9:8443", "Refuse", false},
		"a node of the control plane":          {"https://10.0.0.5:6443", "Refuse", false},
		"an engine on that node":               {"http://10.0.0.5:30000", "Refuse", true},
		"that node where special is as usual":  {"https://10.0.0.5:6443", "Allow", true},
	} {
		o := reachOptions{networks: "10.0.0.0/8", special: c.special}
		reach, api, err := o.reach(t.Context(), &rest.Config{Host: "https://10.0.0.9:8443"}, fake.NewClientset(slice))
		if err != nil || (api == nil) != (c.special == "Allow") {
			t.Fatalf("%s: %v, followed: %t", name, err, api != nil)
		}
		base, err := sglang.ParseBaseURL(c.url)
		if err != nil {
			t.Fatal(err)
		}
		if err := reach.Endpoint(base); (err == nil) != c.may || err != nil && !errors.Is(err, sglang.ErrUnreachable) {
			t.Errorf("%s: %v, want allowed: %t", name, err, c.may)
		}
	}
}

package controller

import (
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berthmaster/berthmaster/api/v1alpha1"
	"github.com/berthmaster/berthmaster/internal/router"
	"github.com/berthmaster/berthmaster/internal/sglang"
)

func TestEndpointKeepsItsLifeWhileItsURLIsTheSameAndNobodyVouches(t *testing.T) {
	status := []v1alpha1.BackendStatus{
		{Name: "a", Incarnation: "endpoint:a/2", URL: "http://b:1"},
		{Name: "a", Incarnation: "endpoint:a/10", URL: "http://c:1"},
	}
	for name, c := range map[string]struct {
		url  v1alpha1.EndpointURL
		gone []v1alpha1.Incarnation
		want router.Incarnation
	}{
		"the URL of its latest life":                 {"http://c:1", nil, "endpoint:a/10"},
		"the same URL in another spelling":           {"http://C:1//", nil, "endpoint:a/10"},
		"the URL of an earlier life":                 {"http://b:1", nil, "endpoint:a/11"},
		"another URL":                                {"http://d:1", nil, "endpoint:a/11"},
		"a life that somebody vouches has ended":     {"http://c:1", []v1alpha1.Incarnation{"endpoint:a/10"}, "endpoint:a/11"},
		"an earlier life somebody vouches has ended": {"http://c:1", []v1alpha1.Incarnation{"endpoint:a/2"}, "endpoint:a/10"},
	} {
		t.Run(name, func(t *testing.T) {
			pool := &v1alpha1.InferencePool{}
			pool.Spec.Backends.Endpoints = []v1alpha1.Endpoint{{Name: "a", URL: c.url}}
			pool.Spec.ConfirmedGone = c.gone
			pool.Status.Backends, pool.Status.Lives = status, 10
			list, lives := sightEndpoints(pool, pool.Status.Lives, nil)
			if list[0].incarnation != c.want {
				t.Errorf("life %s, want %s", list[0].incarnation, c.want)
			}
			if want := lifeNumber("a", string(c.want)); lives != want {
				t.Errorf("%d lives given, want %d", lives, want)
			}
		})
	}
}

func TestEndpointsNeverShareALife(t *testing.T) {
	pool := &v1alpha1.InferencePool{}
	for _, name := range []string{"a", "a-1", "b"} {
		pool.Spec.Backends.Endpoints = append(pool.Spec.Backends.Endpoints, v1alpha1.Endpoint{Name: name, URL: "http://x"})
	}
	list, lives := sightEndpoints(pool, 0, nil)
	var got []router.Incarnation
	for _, s := range list {
		got = append(got, s.incarnation)
	}
	if diff := cmp.Diff([]router.Incarnation{"endpoint:a/1", "endpoint:a-1/2", "endpoint:b/3"}, got); diff != "" || lives != 3 {
		t.Errorf("%d lives (-want +got):\n%s", lives, diff)
	}
}

func TestEndpointWhoseURLMakesNoSenseIsNotUsed(t *testing.T) {
	pool := &v1alpha1.InferencePool{}
	pool.Spec.Backends.Endpoints = []v1alpha1.Endpoint{{Name: "a", URL: "http://[::::]:1"}}
	list, lives := sightEndpoints(pool, 0, nil)
	if list[0].unusable != v1alpha1.ReasonInvalidURL || list[0].incarnation != "" || lives != 0 {
		t.Errorf("%+v and %d lives, want no life and InvalidURL", list[0], lives)
	}
}

func TestPodOfTellsPodsFromEndpoints(t *testing.T) {
	for incarnation, want := range map[router.Incarnation]string{
		"uid/containerd://c": "uid", "endpoint:a/1": "", "": "", "uid": "",
	} {
		uid, isPod := podOf(incarnation)
		if string(uid) != want || isPod != (want != "") {
			t.Errorf("%q: %q, %t; want %q", incarnation, uid, isPod, want)
		}
	}
}

func TestAnEndpointThatTheManagerMayNotCallIsNoBackend(t *testing.T) {
	pool := &v1alpha1.InferencePool{}
	pool.Spec.Backends.Endpoints = []v1alpha1.Endpoint{{Name: "a", URL: "http://10.0.0.7:30000"}, {Name: "b", URL: "http://169.254.169.254"}}
	reach := sglang.Reach{Networks: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("169.254.0.0/16")}}
	list, lives := sightEndpoints(pool, 0, reach.Endpoint)
	if list[0].unusable != "" || list[0].incarnation == "" {
		t.Errorf("within the networks: %+v", list[0])
	}
	if list[1].unusable != v1alpha1.ReasonInvalidURL || list[1].incarnation != "" || lives != 1 {
		t.Errorf("the address of a cloud's metadata: %+v", list[1])
	}
}

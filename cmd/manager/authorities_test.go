package main

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/berthmaster/berthmaster/api/v1alpha1"
	"github.com/berthmaster/berthmaster/internal/certs"
)

// placesWith are the places of a cluster with these pools.
func placesWith(t *testing.T, pools ...client.Object) []certs.Place {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	places, err := placesOf(t.Context(), fake.NewClientBuilder().WithScheme(scheme).WithObjects(pools...).Build(), "system")
	if err != nil {
		t.Fatal(err)
	}
	return places
}

func poolIn(namespace, name string) client.Object {
	return &v1alpha1.InferencePool{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, UID: types.UID("uid of " + name)}}
}

func TestAuthoritiesBelongToThePoolsOfTheirNamespaceButStayAtHome(t *testing.T) {
	owner := func(name string) metav1.OwnerReference {
		return metav1.OwnerReference{
			APIVersion: "inference.berthmaster.io/v1alpha1", Kind: "InferencePool", Name: name, UID: types.UID("uid of " + name),
		}
	}
	got := placesWith(t, poolIn("rl", "b"), poolIn("system", "own"), poolIn("rl", "a"), poolIn("eval", "c"))
	want := []certs.Place{
		{Namespace: "eval", Owners: []metav1.OwnerReference{owner("c")}},
		{Namespace: "rl", Owners: []metav1.OwnerReference{owner("a"), owner("b")}},
		{Namespace: "system"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("places (-want +got):\n%s", diff)
	}
}

func TestAuthoritiesOfThousandsOfPoolsHaveABoundedListOfOwners(t *testing.T) {
	var many []client.Object
	for i := range 3 * maxOwners {
		many = append(many, poolIn("rl", fmt.Sprintf("pool-%04d", i)))
	}
	places := placesWith(t, many...)
	if n := len(places[0].Owners); places[0].Namespace != "rl" || n != maxOwners {
		t.Errorf("%s has %d owners, want %d", places[0].Namespace, n, maxOwners)
	}
}

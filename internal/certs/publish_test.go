package certs

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	k8stesting "k8s.io/client-go/testing"
)

// press is a publisher that runs, and what it is told.
type press struct {
	clients *fake.Clientset
	holder  Holder
	places  atomic.Pointer[[]Place]
	writes  atomic.Int64
}

// newPress publishes in a bubble until the test ends.
func newPress(t *testing.T, places ...Place) *press {
	t.Helper()
	p := &press{clients: fake.NewClientset()}
	p.places.Store(&places)
	p.holder.Use(material(t))
	p.clients.PrependReactor("patch", "configmaps", func(k8stesting.Action) (bool, runtime.Object, error) {
		p.writes.Add(1)
		return false, nil, nil
	})
	publisher := Publisher{
		ConfigMaps: p.clients.CoreV1(), Name: "ca", Manager: "berthmaster", Clock: time.Now,
		Places: func(context.Context) ([]Place, error) { return *p.places.Load(), nil },
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		publisher.Follow(ctx, &p.holder, time.Second, func(err error) { t.Error(err) })
	}()
	t.Cleanup(func() { cancel(); <-done })
	pass(time.Second / 2)
	return p
}

// tell changes the places, and gives the publisher time to look.
func (p *press) tell(places ...Place) {
	p.places.Store(&places)
	pass(time.Second)
}

// expect demands the present bundle in these namespaces, of these owners, and nowhere else.
func (p *press) expect(t *testing.T, want map[string][]types.UID) {
	t.Helper()
	list, err := p.clients.CoreV1().ConfigMaps("").List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	got := map[string][]types.UID{}
	for i := range list.Items {
		found := &list.Items[i]
		got[found.Namespace] = nil
		for _, owner := range found.OwnerReferences {
			got[found.Namespace] = append(got[found.Namespace], owner.UID)
			if owner.Controller != nil || owner.BlockOwnerDeletion != nil {
				t.Errorf("%s has an owner that controls or blocks: %+v", found.Namespace, owner)
			}
		}
		if found.Data[caCert] != string(p.holder.Bundle()) {
			t.Errorf("%s has another bundle", found.Namespace)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("namespaces and owners (-want +got):\n%s", diff)
	}
}

func pools(uids ...types.UID) []metav1.OwnerReference {
	var list []metav1.OwnerReference
	for _, uid := range uids {
		list = append(list, metav1.OwnerReference{APIVersion: "example.test/v1", Kind: "Pool", Name: "pool-" + string(uid), UID: uid})
	}
	return list
}

func TestTheBundleIsPublishedInEachNamespaceAndAgainWhenItChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPress(t, Place{Namespace: "system"})
		p.expect(t, map[string][]types.UID{"system": nil})
		p.tell(Place{Namespace: "rl"}, Place{Namespace: "system"})
		both := map[string][]types.UID{"rl": nil, "system": nil}
		p.expect(t, both)
		if n := p.writes.Load(); n != 2 {
			t.Errorf("%d writes, want one for each namespace", n)
		}
		p.holder.Use(material(t))
		pass(time.Second)
		p.expect(t, both)
		if err := p.clients.CoreV1().ConfigMaps("rl").Delete(t.Context(), "ca", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		pass(again + time.Second)
		p.expect(t, both)
	})
}

func TestTheBundleBelongsToThePoolsThatAreThereNow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPress(t, Place{"rl", pools("1", "2")})
		p.expect(t, map[string][]types.UID{"rl": {"1", "2"}})
		p.tell(Place{"rl", pools("2", "3")})
		p.expect(t, map[string][]types.UID{"rl": {"2", "3"}})
		p.tell(Place{"rl", pools("2", "3")})
		if n := p.writes.Load(); n != 2 {
			t.Errorf("%d writes, want one for each list of owners", n)
		}
		// A namespace that lost its last pool is the garbage collector's; a pool that comes back is news.
		p.tell()
		if err := p.clients.CoreV1().ConfigMaps("rl").Delete(t.Context(), "ca", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		p.tell(Place{"rl", pools("3")})
		p.expect(t, map[string][]types.UID{"rl": {"3"}})
	})
}

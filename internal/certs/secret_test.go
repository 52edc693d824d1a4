package certs

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	k8stesting "k8s.io/client-go/testing"
)

func TestReplicasThatStartAtOnceShareOneAuthority(t *testing.T) {
	secrets := fake.NewClientset().CoreV1().Secrets("system")
	m := SelfMade{Secrets: secrets, Name: "serving", Names: names, Clock: time.Now}
	holders := make([]Holder, 5)
	var all sync.WaitGroup
	for i := range holders {
		all.Go(func() {
			if err := m.Load(t.Context(), &holders[i]); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	for i := range holders {
		if string(holders[i].Bundle()) != string(holders[0].Bundle()) || len(holders[i].Bundle()) == 0 {
			t.Errorf("replica %d trusts another authority", i)
		}
	}
}

func TestWhatIsDueIsReplacedWhileServing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		secrets := fake.NewClientset().CoreV1().Secrets("system")
		m := SelfMade{Secrets: secrets, Name: "serving", Names: names, Clock: time.Now}
		var h Holder
		if err := m.Load(t.Context(), &h); err != nil {
			t.Fatal(err)
		}
		first := h.now.Load().Certificate.Leaf
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() {
			defer close(done)
			m.Follow(ctx, &h, time.Hour, func(err error) { t.Error(err) })
		}()
		pass(LeafLife * 3 / 4)
		cancel()
		<-done
		if now := h.now.Load().Certificate.Leaf; now.Equal(first) || now.NotAfter.Before(first.NotAfter) {
			t.Error("the certificate is still the first one")
		}
		secret, err := secrets.Get(t.Context(), "serving", metav1.GetOptions{})
		if err != nil || string(secret.Data[caCert]) != string(h.Bundle()) {
			t.Errorf("the Secret has another authority (%v)", err)
		}
	})
}

func TestWhatCannotBeWrittenIsToldAndWhatIsInUseStays(t *testing.T) {
	clients := fake.NewClientset()
	m := SelfMade{Secrets: clients.CoreV1().Secrets("system"), Name: "serving", Names: names, Clock: time.Now}
	var h Holder
	if err := m.Load(t.Context(), &h); err != nil {
		t.Fatal(err)
	}
	inUse := h.now.Load()
	forbidden := errors.New("forbidden")
	clients.PrependReactor("update", "secrets", func(k8stesting.Action) (bool, runtime.Object, error) { return true, nil, forbidden })
	m.Clock = func() time.Time { return time.Now().Add(LeafLife) }
	if err := m.Load(t.Context(), &h); !errors.Is(err, forbidden) || h.now.Load() != inUse {
		t.Errorf("%v; still in use: %t", err, h.now.Load() == inUse)
	}
}

func TestTheBundleIsPublishedInEachNamespaceAndAgainWhenItChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		clients := fake.NewClientset()
		var listed atomic.Pointer[[]string]
		listed.Store(&[]string{"system"})
		var writes atomic.Int64
		clients.PrependReactor("patch", "configmaps", func(k8stesting.Action) (bool, runtime.Object, error) {
			writes.Add(1)
			return false, nil, nil
		})
		p := Publisher{ConfigMaps: clients.CoreV1(), Name: "ca", Manager: "berthmaster", Clock: time.Now,
			Namespaces: func(context.Context) ([]string, error) { return *listed.Load(), nil }}
		var h Holder
		h.Use(material(t))
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() {
			defer close(done)
			p.Follow(ctx, &h, time.Second, func(err error) { t.Error(err) })
		}()
		defer func() { cancel(); <-done }()
		expect := func(namespaces ...string) {
			t.Helper()
			list, err := clients.CoreV1().ConfigMaps("").List(t.Context(), metav1.ListOptions{})
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for i := range list.Items {
				got = append(got, list.Items[i].Namespace)
				if list.Items[i].Data[caCert] != string(h.Bundle()) {
					t.Errorf("%s has another bundle", list.Items[i].Namespace)
				}
			}
			if diff := cmp.Diff(namespaces, got); diff != "" {
				t.Errorf("namespaces (-want +got):\n%s", diff)
			}
		}
		pass(time.Second / 2)
		expect("system")
		listed.Store(&[]string{"rl", "system"})
		pass(time.Second)
		expect("rl", "system")
		if n := writes.Load(); n != 2 {
			t.Errorf("%d writes, want one for each namespace", n)
		}
		h.Use(material(t))
		pass(time.Second)
		expect("rl", "system")
		if err := clients.CoreV1().ConfigMaps("rl").Delete(t.Context(), "ca", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		pass(again + time.Second)
		expect("rl", "system")
	})
}

// pass lets that much of a bubble's time go by.
func pass(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

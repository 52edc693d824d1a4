package certs

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

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

// pass lets that much of a bubble's time go by.
func pass(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

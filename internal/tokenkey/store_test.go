package tokenkey_test

import (
	"bytes"
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/berthmaster/berthmaster/internal/tokenkey"
)

func TestTheSecondReplicaUsesTheKeyThatTheFirstHasMade(t *testing.T) {
	secrets := fake.NewClientset().CoreV1().Secrets("system")
	one, err := tokenkey.Store{Secrets: secrets, Name: "key"}.Open(t.Context())
	if err != nil || len(one.Current) < 32 {
		t.Fatalf("first: %d bytes, %v", len(one.Current), err)
	}
	other, err := tokenkey.Store{Secrets: secrets, Name: "key"}.Open(t.Context())
	if err != nil || !bytes.Equal(one.Current, other.Current) {
		t.Errorf("the second has another key (%v)", err)
	}
}

func TestKeysThatCannotBeUsedLeaveTheOldOnesInUse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		secrets := fake.NewClientset().CoreV1().Secrets("system")
		store := tokenkey.Store{Secrets: secrets, Name: "key"}
		first, err := store.Open(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		used, complaints := make(chan tokenkey.Pair, 9), make(chan error, 9)
		tooShort := errors.New("too short")
		go store.Follow(ctx, time.Minute, first, func(p tokenkey.Pair) error {
			if len(p.Current) < 32 {
				return tooShort
			}
			used <- p
			return nil
		}, func(err error) { complaints <- err })
		for _, key := range [][]byte{[]byte("short"), bytes.Repeat([]byte("n"), 32)} {
			secret, err := secrets.Get(t.Context(), "key", metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			secret.Data = map[string][]byte{"current": key, "previous": first.Current}
			if _, err := secrets.Update(t.Context(), secret, metav1.UpdateOptions{}); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Minute + time.Second) //nolint:forbidigo // virtual time
			synctest.Wait()
		}
		cancel()
		if err := <-complaints; !errors.Is(err, tooShort) {
			t.Errorf("complained %v, want %v", err, tooShort)
		}
		if p := <-used; !bytes.Equal(p.Previous, first.Current) {
			t.Error("the overlap is missing")
		}
	})
}

package controller

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/berthmaster/berthmaster/api/v1alpha1"
	"github.com/berthmaster/berthmaster/internal/router"
	"github.com/berthmaster/berthmaster/internal/sglang"
)

// vault is an API server that has one secret, if any, and counts how often it is asked.
type vault struct {
	client.Reader
	data  map[string]string // nil: there is no secret
	err   error
	asked int
	// from is the namespace that was asked about last.
	from string
}

func (v *vault) Get(_ context.Context, key client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	v.asked++
	v.from = key.Namespace
	switch {
	case v.err != nil:
		return v.err
	case v.data == nil:
		return apierrors.NewNotFound(schema.GroupResource{Resource: "secrets"}, key.Name)
	}
	secret := into.(*corev1.Secret)
	secret.Data = map[string][]byte{}
	for entry, value := range v.data {
		secret.Data[entry] = []byte(value)
	}
	return nil
}

func TestReadSecretReadsThePoolsNamespaceAndKeepsWhatItKnewOfTheSameSecretOnly(t *testing.T) {
	known := credentials{secret: "keys", keys: sglang.Keys{API: "old"}}
	for name, c := range map[string]struct {
		vault vault
		last  credentials
		want  sglang.Keys
		fault string
	}{
		"both keys":                     {vault{data: map[string]string{"api-key": "a", "admin-api-key": "b"}}, known, sglang.Keys{API: "a", Admin: "b"}, ""},
		"an admin key that went":        {vault{data: map[string]string{"api-key": "a"}}, credentials{secret: "keys", keys: sglang.Keys{API: "a", Admin: "b"}}, sglang.Keys{API: "a"}, ""},
		"a line's end after the key":    {vault{data: map[string]string{"api-key": "a\n"}}, known, sglang.Keys{API: "a"}, ""},
		"neither key":                   {vault{data: map[string]string{"apikey": "a"}}, known, sglang.Keys{}, "has neither api-key nor admin-api-key"},
		"missing for a moment":          {vault{}, known, sglang.Keys{API: "old"}, "NotFound"},
		"missing, another known":        {vault{}, credentials{secret: "other", keys: sglang.Keys{API: "old"}}, sglang.Keys{}, "NotFound"},
		"an API server that is away":    {vault{err: errors.New("dial tcp")}, known, sglang.Keys{API: "old"}, "the API server did not answer"},
		"a right that was not granted":  {vault{err: apierrors.NewForbidden(schema.GroupResource{}, "keys", nil)}, known, sglang.Keys{API: "old"}, "Forbidden"},
		"missing, and nothing is known": {vault{}, credentials{}, sglang.Keys{}, "NotFound"},
	} {
		t.Run(name, func(t *testing.T) {
			got := readSecret(t.Context(), &c.vault, "rl", &v1alpha1.CredentialsReference{Name: "keys"}, c.last)
			if diff := cmp.Diff(c.want, got.keys); diff != "" {
				t.Errorf("keys (-want +got):\n%s", diff)
			}
			if c.vault.from != "rl" {
				t.Errorf("a Secret of namespace %q was read, want one of the pool's own", c.vault.from)
			}
			if (c.fault == "") != (got.fault == "") || !strings.Contains(got.fault, c.fault) {
				t.Errorf("fault %q, want one that says %q", got.fault, c.fault)
			}
		})
	}
}

func TestCredentialsAreReadAgainOnlyWhenItIsTime(t *testing.T) {
	v := &vault{data: map[string]string{"api-key": "first"}}
	r := &Reconciler{live: v, keyring: newKeyring()}
	look := func(at time.Time, name string) world {
		w := worldWith()
		if name != "" {
			w.pool.Spec.Backends.CredentialsSecretRef = &v1alpha1.CredentialsReference{Name: name}
		}
		r.readCredentials(t.Context(), &w, w.pool, at)
		return w
	}
	keys := look(noon, "keys").keys
	if got := keys().API; got != "first" {
		t.Fatalf("key %q, want first", got)
	}
	v.data["api-key"] = "second"
	if w := look(noon.Add(credentialsFresh-time.Millisecond), "keys"); v.asked != 1 || !w.rereadAt.Equal(noon.Add(credentialsPeriod)) {
		t.Errorf("asked %d times, to be asked again at %v; want once, and a period after noon", v.asked, w.rereadAt)
	}
	look(noon.Add(credentialsFresh), "keys")
	if got := keys().API; got != "second" {
		t.Errorf("key %q after the rotation, want second: a source must not keep what it was made with", got)
	}
	look(noon.Add(credentialsFresh), "others")
	if v.asked != 3 {
		t.Errorf("asked %d times, want another name to be read at once", v.asked)
	}
	if w := look(noon.Add(credentialsFresh), ""); w.keys().API != "" || !w.rereadAt.IsZero() {
		t.Errorf("key %q and a next look at %v, want neither without a reference", w.keys().API, w.rereadAt)
	}
}

func TestDecideLooksAgainForCredentialsOrADeadlineWhicheverIsFirst(t *testing.T) {
	for name, c := range map[string]struct{ reread, want time.Duration }{
		"credentials first": {10 * time.Second, 10 * time.Second}, "the deadline first": {2 * time.Minute, time.Minute},
	} {
		w := worldWith(running("a"))
		w.pool.Spec.Drain = []v1alpha1.DrainSpec{{Backend: "a", DeadlineSeconds: 60}}
		w.rereadAt = noon.Add(c.reread)
		if got := decide(w, noon).deadline; !got.Equal(noon.Add(c.want)) {
			t.Errorf("%s: looks again at %v, want %v after noon", name, got, c.want)
		}
	}
}

func TestKeysGoToProbesAndTheirFaultToPeople(t *testing.T) {
	w := worldWith(running("a"))
	w.keys = func() sglang.Keys { return sglang.Keys{API: "k"} }
	if got := decide(w, noon).targets[0].Keys; got == nil || got().API != "k" {
		t.Error("the probe has no key")
	}
	w.keysFault = "no secret"
	for name, c := range map[string]struct {
		seen router.BackendSnapshot
		want string
	}{
		"an engine that does not say its capacity": {router.BackendSnapshot{Health: router.Healthy}, "no secret"},
		"an engine that refuses the probe":         {router.BackendSnapshot{Health: router.Unhealthy}, "no secret"},
		"an engine that asks for no key":           {router.BackendSnapshot{Health: router.Healthy, Admissible: true}, ""},
	} {
		c.seen.Incarnation = running("a").incarnation
		a := accountOf(w, router.Snapshot{Backends: []router.BackendSnapshot{c.seen}}, noon)
		a.keysFault = w.keysFault
		if got := a.backends(noon)[0].Message; got != c.want {
			t.Errorf("%s: message %q, want %q", name, got, c.want)
		}
	}
}

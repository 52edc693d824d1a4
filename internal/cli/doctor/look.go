package doctor

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/berthmaster/berthmaster/api/v1alpha1"
	"github.com/berthmaster/berthmaster/internal/cli/connect"
	"github.com/berthmaster/berthmaster/internal/cli/live"
	"github.com/berthmaster/berthmaster/internal/sglang"
)

// Kinds knows what the cluster has.
type Kinds interface {
	// ServerGroupsAndResources lists every resource; with an error the list may be a part of it.
	ServerGroupsAndResources() ([]*metav1.APIGroup, []*metav1.APIResourceList, error)
}

// Sources are what a pool is looked at through.
type Sources struct {
	// Reader reads the API server, uncached.
	Reader client.Reader
	Kinds  Kinds
	// ManagerNamespace is where the manager runs.
	ManagerNamespace string
	// Way is how the router is reached, Router asks it for the pool.
	Way    RouterWay
	Router func(ctx context.Context) (*live.Pool, error)
	// Engine is the way to a backend's engine.
	Engine func(b *v1alpha1.BackendStatus) http.RoundTripper
	// You is what is known of the user.
	You Identity
}

// Look gathers what can be seen of a pool. It always returns a world: what it could not look at is in
// there.
func Look(ctx context.Context, s Sources, pool *v1alpha1.InferencePool) *World {
	w := &World{Pool: pool, You: s.You, Router: s.Way}
	w.lookAtPods(ctx, s)
	w.lookAtManagers(ctx, s)
	w.lookAtKinds(s)
	keys := w.lookAtSecret(ctx, s)
	w.lookAtEngines(ctx, s, keys)
	w.LiveErr = errNotAsked
	if s.Way == ByURL || slices.ContainsFunc(w.Managers, ready) || unlooked(w, lookManagers) {
		w.Live, w.LiveErr = s.Router(ctx)
	}
	return w
}

// skip takes note of what could not be looked at.
func (w *World) skip(what string, err error) {
	w.Unlooked = append(w.Unlooked, Unlooked{What: what, Err: err})
}

func (w *World) lookAtPods(ctx context.Context, s Sources) {
	var pods corev1.PodList
	if err := s.Reader.List(ctx, &pods, client.InNamespace(w.Pool.Namespace)); err != nil {
		w.skip(lookPods, err)
		return
	}
	w.Pods = pods.Items
}

// leaseName is the Lease that the manager's replicas hold in turn.
const leaseName = "berthmaster-manager"

func (w *World) lookAtManagers(ctx context.Context, s Sources) {
	label, value, _ := strings.Cut(connect.ManagerLabels, "=")
	var pods corev1.PodList
	if err := s.Reader.List(ctx, &pods, client.MatchingLabels{label: value}); err != nil {
		// Those who may not look at all namespaces may know the one.
		err = s.Reader.List(ctx, &pods, client.MatchingLabels{label: value}, client.InNamespace(s.ManagerNamespace))
		if err != nil {
			w.skip(lookManagers, err)
			return
		}
	}
	w.Managers = slices.DeleteFunc(pods.Items, func(p corev1.Pod) bool { return p.Status.Phase == corev1.PodSucceeded })
	lease := &coordinationv1.Lease{}
	if s.Reader.Get(ctx, client.ObjectKey{Namespace: s.ManagerNamespace, Name: leaseName}, lease) == nil {
		w.Lease = lease
	}
}

// lookAtKinds finds resources that are called as ours are.
func (w *World) lookAtKinds(s Sources) {
	_, lists, err := s.Kinds.ServerGroupsAndResources()
	if err != nil && len(lists) == 0 {
		w.skip(lookKinds, err)
		return
	}
	for _, list := range lists {
		group, _, _ := strings.Cut(list.GroupVersion, "/")
		for _, r := range list.APIResources {
			shadow := r.Name + "." + group
			if r.Name == "inferencepools" && group != v1alpha1.GroupVersion.Group && !slices.Contains(w.Shadows, shadow) {
				w.Shadows = append(w.Shadows, shadow)
			}
		}
	}
}

// lookAtSecret reads the engines' keys, to ask as the operator asks.
func (w *World) lookAtSecret(ctx context.Context, s Sources) sglang.Keys {
	reference := w.Pool.Spec.Backends.CredentialsSecretRef
	if reference == nil {
		return sglang.Keys{}
	}
	secret := &corev1.Secret{}
	err := s.Reader.Get(ctx, client.ObjectKey{Namespace: w.Pool.Namespace, Name: reference.Name}, secret)
	w.Secret = Secret{Name: reference.Name, State: SecretRead}
	key := strings.TrimSpace(string(secret.Data[v1alpha1.CredentialsAPIKey]))
	switch {
	case apierrors.IsNotFound(err):
		w.Secret.State = SecretMissing
	case err != nil:
		w.Secret.State = SecretUnread
		w.skip(lookSecret, err)
	case key == "":
		w.Secret.State = SecretEmpty
	}
	return sglang.Keys{API: key}
}

const (
	// enginesAtOnce bounds the engines that are asked at once, engineTime how long one may take.
	enginesAtOnce = 16
	engineTime    = 5 * time.Second
)

// lookAtEngines asks every engine about itself, except those at which nobody listens.
func (w *World) lookAtEngines(ctx context.Context, s Sources, keys sglang.Keys) {
	w.Engines = map[string]Engine{}
	if w.Secret.State == SecretUnread {
		return
	}
	var mu sync.Mutex
	var asked sync.WaitGroup
	places := make(chan struct{}, enginesAtOnce)
	for i := range w.Pool.Status.Backends {
		b := &w.Pool.Status.Backends[i]
		if b.URL == "" || b.State == v1alpha1.BackendRetired || b.Reason == v1alpha1.ReasonConnectionRefused {
			continue
		}
		asked.Go(func() {
			places <- struct{}{}
			defer func() { <-places }()
			e := askEngine(ctx, b, s.Engine(b), keys)
			mu.Lock()
			defer mu.Unlock()
			w.Engines[b.Name] = e
		})
	}
	asked.Wait()
	w.unreached()
}

func askEngine(ctx context.Context, b *v1alpha1.BackendStatus, way http.RoundTripper, keys sglang.Keys) Engine {
	base, err := sglang.ParseBaseURL(b.URL)
	if err != nil {
		return Engine{Err: err}
	}
	ctx, cancel := context.WithTimeout(ctx, engineTime)
	defer cancel()
	info, err := sglang.New(base, way, func() sglang.Keys { return keys }).ServerInfo(ctx)
	return Engine{Info: info, Err: err}
}

// unreached tells in one line of all engines that could not be asked from here: the operator may reach
// them where the user's machine does not.
func (w *World) unreached() {
	var names []string
	var last error
	for i := range w.Pool.Status.Backends {
		name := w.Pool.Status.Backends[i].Name
		if e, asked := w.Engines[name]; asked && e.Err != nil && sglang.Code(e.Err) == 0 {
			names = append(names, name)
			last = e.Err
		}
	}
	if len(names) > 0 {
		w.skip(lookEngines, errors.New(strings.Join(names, ", ")+": "+last.Error()))
	}
}

package controller

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/berthmaster/berthmaster/internal/router"
)

// stray is an incarnation that the world does not show as a backend any more.
type stray struct {
	name        string
	incarnation router.Incarnation
	url         string
	fate        fate
	// forgotten: the router counts nothing on it. It is remembered for its pause alone.
	forgotten bool
}

// fate is what became of a stray.
type fate int

const (
	// fateUnselected is still there, but the spec does not select it.
	fateUnselected fate = iota
	// fateMissing has no pod object any more, which proves nothing about its process.
	fateMissing
	// fateEnded is known to have ended.
	fateEnded
)

// readStrays finds out what became of the incarnations that are not among the pods.
func (r *Reconciler) readStrays(ctx context.Context, reader client.Reader, w *world) error {
	shown := map[router.Incarnation]struct{}{}
	for i := range w.pods {
		shown[w.pods[i].incarnation] = struct{}{}
	}
	for _, candidate := range w.remembered() {
		if _, here := shown[candidate.incarnation]; here {
			continue
		}
		shown[candidate.incarnation] = struct{}{}
		if err := r.judge(ctx, reader, w, &candidate); err != nil {
			return err
		}
		w.strays = append(w.strays, candidate)
	}
	return nil
}

// remembered lists the incarnations that the router knows, those that the status names as long as the
// router knows none of an earlier term, and those whose engine the status says is paused.
func (w *world) remembered() []stray {
	var list []stray
	for i := range w.snapshot.Backends {
		b := &w.snapshot.Backends[i]
		list = append(list, stray{name: string(b.Name), incarnation: b.Incarnation, url: b.URL})
	}
	for i := range w.pool.Status.Backends {
		b := &w.pool.Status.Backends[i]
		met := w.standing != standingNew
		if b.Incarnation != "" && (!met || pausedIn(b).asked()) {
			list = append(list, stray{name: b.Name, incarnation: router.Incarnation(b.Incarnation), url: b.URL, forgotten: met})
		}
	}
	return list
}

// judge decides the fate of a stray from its pod, which is read after the stray was heard of: what
// it shows is later.
func (r *Reconciler) judge(ctx context.Context, reader client.Reader, w *world, s *stray) error {
	uid, isPod := podOf(s.incarnation)
	if _, ended := w.ended[s.incarnation]; ended {
		s.fate = fateEnded
		return nil
	}
	if !isPod {
		s.fate = fateUnselected
		return nil
	}
	var pod corev1.Pod
	err := reader.Get(ctx, types.NamespacedName{Namespace: w.key.Namespace, Name: s.name}, &pod)
	switch {
	case apierrors.IsNotFound(err):
		s.fate = fateMissing
	case err != nil:
		return fmt.Errorf("read pod %s: %w", s.name, err)
	default:
		s.fate = fateIn(&pod, uid, s.incarnation)
	}
	return nil
}

// fateIn is the fate of a life of the pod of that UID, as a pod of its name shows it.
func fateIn(pod *corev1.Pod, uid types.UID, life router.Incarnation) fate {
	if pod.UID != uid {
		return fateMissing
	}
	for _, ended := range endedLives(pod) {
		if ended == life {
			return fateEnded
		}
	}
	for _, current := range currentLives(pod) {
		if current == life {
			return fateUnselected
		}
	}
	for i := range pod.Status.ContainerStatuses {
		if pod.Status.ContainerStatuses[i].ContainerID == "" {
			return fateUnselected // it may have been this container's, which shows no life now
		}
	}
	// Every container has another life now, so that whichever it was has a later one.
	return fateEnded
}

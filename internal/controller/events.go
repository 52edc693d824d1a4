package controller

import (
	"context"
	"fmt"
	"log/slog"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/berthmaster/berthmaster/api/v1alpha1"
	"github.com/berthmaster/berthmaster/internal/router"
)

// EventRecorder is where the controller's events go, as client-go's recorder of events.k8s.io.
type EventRecorder interface {
	// Eventf records that something happened to regarding.
	Eventf(regarding, related runtime.Object, eventType, reason, action, note string, args ...any)
}

// change is something that a status write made known, once.
type change struct {
	kind   string // corev1.EventTypeNormal or corev1.EventTypeWarning
	reason string
	action string
	note   string
	// related is what the change is about, besides the pool. Two events of one reason about different
	// things would otherwise count as one that happened twice.
	related *corev1.ObjectReference
	// facts are what a log line has of it besides the note, as keys and values.
	facts []any
}

// chronicle turns changes into events.
type chronicle struct{ recorder EventRecorder }

func (c chronicle) record(pool *v1alpha1.InferencePool, changes []change) {
	// Without a resource version, so that the same news again counts as the same event.
	subject := &v1alpha1.InferencePool{}
	subject.Name, subject.Namespace, subject.UID = pool.Name, pool.Namespace, pool.UID
	for _, ch := range changes {
		var related runtime.Object
		if ch.related != nil {
			related = partOf(pool, ch.related)
		}
		c.recorder.Eventf(subject, related, ch.kind, ch.reason, ch.action, "%s", ch.note)
	}
}

// logChanges writes the same into the log, of which less is lost than of events. Keys are those of lines
// about leases.
func logChanges(l *slog.Logger, changes []change) {
	for _, ch := range changes {
		level := slog.LevelInfo
		if ch.kind == corev1.EventTypeWarning {
			level = slog.LevelWarn
		}
		l.With("reason", ch.reason, "note", ch.note).Log(context.Background(), level, "pool: changed", ch.facts...)
	}
}

// partOf completes a reference to something of the pool's: a pod of its namespace, or a field of its
// own.
func partOf(pool *v1alpha1.InferencePool, part *corev1.ObjectReference) *corev1.ObjectReference {
	reference := *part
	reference.Namespace = pool.Namespace
	if reference.Kind == "" {
		reference.APIVersion, reference.Kind = v1alpha1.GroupVersion.String(), v1alpha1.InferencePoolKind
		reference.Name, reference.UID = pool.Name, pool.UID
	}
	return &reference
}

// backendPart refers to the pod, and the life of its container, or the endpoint that a status entry is about.
func backendPart(entry *v1alpha1.BackendStatus) *corev1.ObjectReference {
	if uid, isPod := podOf(router.Incarnation(entry.Incarnation)); isPod {
		_, container, _ := strings.Cut(entry.Incarnation, "/")
		return &corev1.ObjectReference{
			APIVersion: "v1", Kind: "Pod", Name: entry.Name, UID: uid, FieldPath: "status.containerStatuses{" + container + "}",
		}
	}
	return &corev1.ObjectReference{FieldPath: "status.backends{" + entry.Name + "}"}
}

// changesBetween lists what one status write changed that a person wants to know. Comparing what is
// written, and not what is about to be, gives one event for each change.
func changesBetween(before, after *v1alpha1.InferencePoolStatus) []change {
	var changes []change
	if after.Term != before.Term {
		changes = append(changes, change{corev1.EventTypeNormal, "TermBegan", "Lead", fmt.Sprintf("%s grants leases under term %d", routerOf(after), after.Term),
			&corev1.ObjectReference{FieldPath: fmt.Sprintf("status.term{%d}", after.Term)}, nil})
	}
	if before.Epoch != 0 && after.Epoch != before.Epoch {
		changes = append(changes, change{corev1.EventTypeNormal, "EpochRaised", "Fence",
			fmt.Sprintf("epoch %d: earlier leases and sessions have ended", after.Epoch),
			&corev1.ObjectReference{FieldPath: fmt.Sprintf("status.epoch{%d}", after.Epoch)}, []any{"epoch", after.Epoch}})
	}
	if after.Failure != nil && before.Failure == nil {
		changes = append(changes, change{corev1.EventTypeWarning, "PoolFailed", "StopGrants",
			fmt.Sprintf("request %s on backend %s could not be proven dead", after.Failure.RequestID, after.Failure.Backend), nil,
			[]any{"request", after.Failure.RequestID, "session", after.Failure.SessionID, "backend", after.Failure.Backend, "incarnation", after.Failure.Incarnation}})
	}
	changes = append(changes, holdChanges(before.Conditions, after.Conditions)...)
	changes = append(changes, sightChanges(before.Conditions, after.Conditions)...)
	changes = append(changes, weightChanges(before, after)...)
	changes = append(changes, pauseChanges(before.Conditions, after.Conditions)...)
	changes = append(changes, senderChanges(before.Senders, after.Senders)...)
	return append(changes, backendChanges(before.Backends, after.Backends)...)
}

// routerOf names who leads, for people.
func routerOf(status *v1alpha1.InferencePoolStatus) string {
	if status.Router == nil {
		return "the router"
	}
	return status.Router.Name
}

// holdChanges tells that a hold is complete, and that one which was has ended.
func holdChanges(before, after []metav1.Condition) []change {
	was := meta.IsStatusConditionTrue(before, v1alpha1.ConditionHeld)
	now := meta.FindStatusCondition(after, v1alpha1.ConditionHeld)
	switch {
	case now == nil:
		return nil
	case !was && now.Status == metav1.ConditionTrue:
		return []change{{corev1.EventTypeNormal, "LeasingHeld", "Hold", "no lease is granted and nothing is running", nil, nil}}
	case was && now.Reason == v1alpha1.ReasonLeasingOpen:
		return []change{{corev1.EventTypeNormal, "LeasingOpened", "Hold", "leases are granted again", nil, nil}}
	default:
		return nil
	}
}

// sightChanges tells that cordons are asked for and not seen.
func sightChanges(before, after []metav1.Condition) []change {
	was := meta.FindStatusCondition(before, v1alpha1.ConditionDraining)
	now := meta.FindStatusCondition(after, v1alpha1.ConditionDraining)
	if now == nil || now.Reason != v1alpha1.ReasonNodesNotWatched || was != nil && was.Reason == now.Reason {
		return nil
	}
	return []change{{corev1.EventTypeWarning, v1alpha1.ReasonNodesNotWatched, "Observe", now.Message, nil, nil}}
}

func senderChanges(before, after []v1alpha1.SenderStatus) []change {
	was := map[string]v1alpha1.SenderState{}
	for _, sender := range before {
		was[sender.Name] = sender.Access
	}
	var changes []change
	for _, sender := range after {
		if last, known := was[sender.Name]; last == sender.Access || (!known && sender.Access == v1alpha1.SenderStateOpen) {
			continue
		}
		changes = append(changes, change{corev1.EventTypeNormal, "Sender" + string(sender.Access), "Fence",
			fmt.Sprintf("sender %s is %s", sender.Name, sender.Access),
			&corev1.ObjectReference{FieldPath: "spec.senders{" + sender.Name + "}"}, []any{"sender", sender.Name}})
	}
	return changes
}

func backendChanges(before, after []v1alpha1.BackendStatus) []change {
	was := map[[2]string]v1alpha1.BackendState{}
	for i := range before {
		was[[2]string{before[i].Name, before[i].Incarnation}] = before[i].State
	}
	var changes []change
	for i := range after {
		entry := &after[i]
		if last := was[[2]string{entry.Name, entry.Incarnation}]; last == entry.State || entry.State == v1alpha1.BackendPending {
			continue
		}
		note := fmt.Sprintf("backend %s is %s", entry.Name, entry.State)
		if entry.Reason != "" {
			note += ": " + string(entry.Reason)
		}
		changes = append(changes, change{severity(entry.State), "Backend" + string(entry.State), "Observe", note, backendPart(entry),
			[]any{"backend", entry.Name, "incarnation", entry.Incarnation}})
	}
	return changes
}

// severity is a warning where a person may have to act.
func severity(state v1alpha1.BackendState) string {
	switch state {
	case v1alpha1.BackendUnhealthy, v1alpha1.BackendIsolated, v1alpha1.BackendRetired:
		return corev1.EventTypeWarning
	case v1alpha1.BackendPending, v1alpha1.BackendServing, v1alpha1.BackendSettling,
		v1alpha1.BackendDraining, v1alpha1.BackendDrained,
		v1alpha1.BackendPausing, v1alpha1.BackendPaused, v1alpha1.BackendContinuing,
		v1alpha1.BackendUpdating, v1alpha1.BackendVerifying:
	}
	return corev1.EventTypeNormal
}

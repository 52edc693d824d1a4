package controller

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/berthmaster/berthmaster/api/v1alpha1"
)

// TrimPod is the transform of the manager's pod cache: it keeps what this package reads and drops
// the rest, which is most of a pod. Objects that are no pods pass as they are.
func TrimPod(object any) (any, error) {
	pod, ok := object.(*corev1.Pod)
	if !ok {
		return object, nil
	}
	trimmed := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: pod.Name, Namespace: pod.Namespace, UID: pod.UID, ResourceVersion: pod.ResourceVersion, CreationTimestamp: pod.CreationTimestamp,
			DeletionTimestamp: pod.DeletionTimestamp, Labels: pod.Labels, Annotations: annotationsWeRead(pod.Annotations),
		},
		Spec:   corev1.PodSpec{NodeName: pod.Spec.NodeName},
		Status: corev1.PodStatus{Phase: pod.Status.Phase, PodIP: pod.Status.PodIP},
	}
	for _, container := range pod.Spec.Containers {
		kept := corev1.Container{Name: container.Name}
		for _, port := range container.Ports {
			kept.Ports = append(kept.Ports, corev1.ContainerPort{ContainerPort: port.ContainerPort})
		}
		trimmed.Spec.Containers = append(trimmed.Spec.Containers, kept)
	}
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.PodReady {
			trimmed.Status.Conditions = []corev1.PodCondition{{Type: condition.Type, Status: condition.Status}}
		}
	}
	for _, status := range pod.Status.ContainerStatuses {
		trimmed.Status.ContainerStatuses = append(trimmed.Status.ContainerStatuses, corev1.ContainerStatus{
			Name: status.Name, ContainerID: status.ContainerID,
			State: trimState(status.State), LastTerminationState: trimState(status.LastTerminationState),
		})
	}
	return trimmed, nil
}

func annotationsWeRead(all map[string]string) map[string]string {
	var kept map[string]string
	for _, name := range []string{v1alpha1.AnnotationCapacity, v1alpha1.AnnotationDrain} {
		if value, there := all[name]; there {
			if kept == nil {
				kept = map[string]string{}
			}
			kept[name] = value
		}
	}
	return kept
}

// trimState keeps which process has ended, and why none has started.
func trimState(state corev1.ContainerState) corev1.ContainerState {
	var kept corev1.ContainerState
	if state.Terminated != nil {
		kept.Terminated = &corev1.ContainerStateTerminated{ContainerID: state.Terminated.ContainerID}
	}
	if state.Waiting != nil {
		kept.Waiting = &corev1.ContainerStateWaiting{Reason: state.Waiting.Reason}
	}
	return kept
}

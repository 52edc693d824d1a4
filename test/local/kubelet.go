package local

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
)

const (
	// engineContainer is the container of a pod in which the engine runs.
	engineContainer = "server"
	// nodeName is the node that the kubelet here stands for.
	nodeName = "local"
)

// kubelet reports pods as the kubelet of a node does. It runs nothing: the
// engines are started by whoever starts the system.
type kubelet struct {
	clients   kubernetes.Interface
	namespace string
	labels    map[string]string
	port      int
	clock     clock.PassiveClock
}

// bind makes the pod object, already bound to the node.
func (k *kubelet) bind(ctx context.Context, name string) (*corev1.Pod, error) {
	pod, err := k.clients.CoreV1().Pods(k.namespace).Create(ctx, &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: k.namespace, Labels: k.labels},
		Spec: corev1.PodSpec{
			NodeName: nodeName,
			Containers: []corev1.Container{{
				Name: engineContainer, Image: "sglang-sim",
				Ports: []corev1.ContainerPort{{Name: "http", ContainerPort: int32(k.port)}},
			}},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		return nil, fmt.Errorf("pod %s: %w", name, err)
	}
	return pod, nil
}

// reportRunning says that the pod's engine runs at the address, and is ready.
func (k *kubelet) reportRunning(ctx context.Context, pod *corev1.Pod, address string, life int) error {
	now := metav1.NewTime(k.clock.Now())
	status := corev1.PodStatus{
		Phase: corev1.PodRunning, PodIP: address, PodIPs: []corev1.PodIP{{IP: address}}, StartTime: &now,
		Conditions: readiness(corev1.ConditionTrue, "", now),
		ContainerStatuses: []corev1.ContainerStatus{{
			Name: engineContainer, Image: "sglang-sim", ImageID: "sglang-sim", Ready: true, Started: ptr.To(true),
			ContainerID: containerID(pod, life),
			State:       corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: now}},
		}},
	}
	return k.writeStatus(ctx, pod.Name, func(p *corev1.Pod) { p.Status = status })
}

// reportTerminated says that the pod's engine has ended by a signal.
func (k *kubelet) reportTerminated(ctx context.Context, name string) error {
	now := metav1.NewTime(k.clock.Now())
	return k.writeStatus(ctx, name, func(p *corev1.Pod) {
		p.Status.Conditions = readiness(corev1.ConditionFalse, "ContainersNotReady", now)
		for i := range p.Status.ContainerStatuses {
			c := &p.Status.ContainerStatuses[i]
			c.Ready, c.Started = false, ptr.To(false)
			c.State = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
				ExitCode: 137, Reason: "Error", FinishedAt: now, ContainerID: c.ContainerID,
			}}
		}
	})
}

// remove deletes the pod object at once, as the kubelet does when nothing of
// the pod runs any more.
func (k *kubelet) remove(ctx context.Context, name string) error {
	err := k.clients.CoreV1().Pods(k.namespace).Delete(ctx, name, metav1.DeleteOptions{GracePeriodSeconds: ptr.To[int64](0)})
	if err != nil {
		return fmt.Errorf("pod %s: %w", name, err)
	}
	return nil
}

func (k *kubelet) writeStatus(ctx context.Context, name string, change func(*corev1.Pod)) error {
	pods := k.clients.CoreV1().Pods(k.namespace)
	pod, err := pods.Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("status of pod %s: %w", name, err)
	}
	change(pod)
	if _, err := pods.UpdateStatus(ctx, pod, metav1.UpdateOptions{}); err != nil {
		return fmt.Errorf("status of pod %s: %w", name, err)
	}
	return nil
}

func readiness(status corev1.ConditionStatus, reason string, now metav1.Time) []corev1.PodCondition {
	kinds := []corev1.PodConditionType{corev1.PodReady, corev1.ContainersReady}
	out := []corev1.PodCondition{
		{Type: corev1.PodScheduled, Status: corev1.ConditionTrue, LastTransitionTime: now},
		{Type: corev1.PodInitialized, Status: corev1.ConditionTrue, LastTransitionTime: now},
	}
	for _, kind := range kinds {
		out = append(out, corev1.PodCondition{Type: kind, Status: status, Reason: reason, LastTransitionTime: now})
	}
	return out
}

// containerID names one life of the pod's container in the runtime's form.
func containerID(pod *corev1.Pod, life int) string {
	sum := sha256.Sum256([]byte(string(pod.UID) + "/" + strconv.Itoa(life)))
	return "containerd://" + hex.EncodeToString(sum[:])
}

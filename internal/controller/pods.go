package controller

import (
	"net"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/berthmaster/berthmaster/api/v1alpha1"
	"github.com/berthmaster/berthmaster/internal/router"
)

// incarnationOf names the life of a container: "<pod UID>/<container ID>", the ID as the kubelet
// reports it. It is empty without an ID.
func incarnationOf(pod types.UID, containerID string) router.Incarnation {
	if containerID == "" {
		return ""
	}
	return router.Incarnation(string(pod) + "/" + containerID)
}

// sighting is what the API server says of one backend.
type sighting struct {
	name        string
	incarnation router.Incarnation // empty: no engine process has started
	url         string             // not yet canonical; empty: no address
	// engineKey is what two pools that use the same engine have in common.
	engineKey string
	process   process
	// waiting is why the kubelet has not started the container, in its words; empty: it has, or says
	// nothing.
	waiting string
	// unusable is why the backend may not take leases; empty: nothing speaks against it.
	unusable v1alpha1.BackendReason
	message  string
	capacity int64 // fixed by annotation, in executions; 0: not
	// node is where the pod is; empty: nowhere yet, or no pod. cordoned says that the node takes no new
	// pods, if the pool asks.
	node     string
	cordoned bool
	// drain is a drain that the backend carries itself, not one from the spec.
	drain drainCause
}

// process is what the kubelet says of an engine process.
type process int

const (
	// processAwaited has not started, or its next life has not.
	processAwaited process = iota
	// processLives has started and is not known to have ended.
	processLives
	// processEnded is known to have ended.
	processEnded
)

// sightPod reads a pod as a backend of a pool that wants port and container.
func sightPod(pod *corev1.Pod, spec *v1alpha1.BackendsSpec) sighting {
	s := sighting{name: pod.Name, node: pod.Spec.NodeName, drain: drainOfPod(pod)}
	container, found := engineContainer(pod, spec)
	if !found {
		s.unusable = v1alpha1.ReasonContainerNotFound
		s.message = "the pod has several containers: name the engine's in spec.backends.container, or let it declare the port"
		return s
	}
	if status := statusOfContainer(pod, container); status != nil {
		s.incarnation, s.process = lifeOf(pod.UID, status)
		if status.State.Waiting != nil {
			s.waiting = status.State.Waiting.Reason
		}
	}
	s.engineKey = string(s.incarnation)
	s.url = podURL(pod, spec.Port)
	s.capacity, s.unusable, s.message = capacityOfPod(pod)
	switch {
	case s.unusable != "":
	case s.waiting == crashLoop:
		s.crashLoops()
	case s.process != processLives || s.url == "":
		s.starts()
	case !podReady(pod):
		s.unusable, s.message = v1alpha1.ReasonPodNotReady, "the pod's Ready condition is not true"
	}
	return s
}

// crashLoop is the kubelet's reason to wait before it starts a container again.
const crashLoop = "CrashLoopBackOff"

func (s *sighting) crashLoops() {
	s.unusable = v1alpha1.ReasonCrashLooping
	s.message = "the engine ends again and again, and the kubelet waits before it starts the next; see the container's log"
}

func (s *sighting) starts() {
	s.unusable, s.message = v1alpha1.ReasonStarting, "the engine's container has not started, or the pod has no address"
	if s.waiting != "" {
		s.message += "; the kubelet says " + s.waiting
	}
}

// ends says why a backend is of no use whose process is known to have ended.
func (s *sighting) ends() {
	if s.waiting == crashLoop {
		s.crashLoops()
		return
	}
	s.unusable, s.message = v1alpha1.ReasonProcessEnded, "the engine's process has ended, and no new one has started"
}

// engineContainer is the container whose lives are the backend's: the one that the spec names,
// else the one that declares the port, else the only one.
func engineContainer(pod *corev1.Pod, spec *v1alpha1.BackendsSpec) (name string, found bool) {
	for _, container := range pod.Spec.Containers {
		if container.Name == spec.Container {
			return container.Name, true
		}
		for _, port := range container.Ports {
			if spec.Container == "" && port.ContainerPort == spec.Port {
				return container.Name, true
			}
		}
	}
	if spec.Container == "" && len(pod.Spec.Containers) == 1 {
		return pod.Spec.Containers[0].Name, true
	}
	return "", false
}

func statusOfContainer(pod *corev1.Pod, name string) *corev1.ContainerStatus {
	for i := range pod.Status.ContainerStatuses {
		if pod.Status.ContainerStatuses[i].Name == name {
			return &pod.Status.ContainerStatuses[i]
		}
	}
	return nil
}

// lifeOf is a container's current life and what is known of it. A container ID without a running
// or terminated state (the kubelet has lost sight of it) counts as alive.
func lifeOf(pod types.UID, status *corev1.ContainerStatus) (router.Incarnation, process) {
	incarnation := incarnationOf(pod, status.ContainerID)
	switch {
	case incarnation == "":
		return "", processAwaited
	case endedIn(status, status.ContainerID):
		return incarnation, processEnded
	default:
		return incarnation, processLives
	}
}

// endedIn reports whether a container's status says that the process of that ID has ended.
func endedIn(status *corev1.ContainerStatus, id string) bool {
	for _, state := range []corev1.ContainerState{status.State, status.LastTerminationState} {
		if state.Terminated != nil && state.Terminated.ContainerID == id {
			return true
		}
	}
	return false
}

// endedLives lists the lives of a pod's containers that the kubelet says have ended.
func endedLives(pod *corev1.Pod) []router.Incarnation {
	var ended []router.Incarnation
	for i := range pod.Status.ContainerStatuses {
		status := &pod.Status.ContainerStatuses[i]
		for _, state := range []corev1.ContainerState{status.State, status.LastTerminationState} {
			if state.Terminated != nil && state.Terminated.ContainerID != "" {
				ended = append(ended, incarnationOf(pod.UID, state.Terminated.ContainerID))
			}
		}
	}
	return ended
}

// supersededLives lists the lives that were current in before and are not in after, of the same
// pod at a later time: a later ID for the same container proves that the earlier has ended.
func supersededLives(before, after *corev1.Pod) []router.Incarnation {
	if before.UID != after.UID {
		return nil
	}
	var ended []router.Incarnation
	for _, was := range before.Status.ContainerStatuses {
		is := statusOfContainer(after, was.Name)
		if is != nil && was.ContainerID != "" && is.ContainerID != "" && is.ContainerID != was.ContainerID {
			ended = append(ended, incarnationOf(before.UID, was.ContainerID))
		}
	}
	return ended
}

// currentLives lists the lives that a pod's containers are in.
func currentLives(pod *corev1.Pod) []router.Incarnation {
	var lives []router.Incarnation
	for _, status := range pod.Status.ContainerStatuses {
		if incarnation := incarnationOf(pod.UID, status.ContainerID); incarnation != "" {
			lives = append(lives, incarnation)
		}
	}
	return lives
}

func podURL(pod *corev1.Pod, port int32) string {
	if pod.Status.PodIP == "" {
		return ""
	}
	return "http://" + net.JoinHostPort(pod.Status.PodIP, strconv.Itoa(int(port)))
}

// podOver reports whether no container of the pod will run again. Such a pod is no backend; what may
// still be counted on it is a stray.
func podOver(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}

func podReady(pod *corev1.Pod) bool {
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.PodReady {
			return condition.Status == corev1.ConditionTrue
		}
	}
	return false
}

// maxAnnotatedCapacity is the bound that spec.backends.capacity.value has, too.
const maxAnnotatedCapacity = 1_000_000

// capacityOfPod reads the capacity annotation. One that cannot be read keeps the backend out of
// service: using the engine's own figure instead would override a limit that a person set.
func capacityOfPod(pod *corev1.Pod) (int64, v1alpha1.BackendReason, string) {
	text, annotated := pod.Annotations[v1alpha1.AnnotationCapacity]
	if !annotated {
		return 0, "", ""
	}
	capacity, err := strconv.ParseInt(text, 10, 64)
	if err != nil || capacity < 1 || capacity > maxAnnotatedCapacity {
		return 0, v1alpha1.ReasonInvalidCapacityAnnotation,
			"the annotation " + v1alpha1.AnnotationCapacity + " must be a whole number from 1 to 1000000"
	}
	return capacity, "", ""
}

package controller_test

import (
	"context"
	"fmt"
	"net"
	"strconv"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/berthmaster/berthmaster/api/v1alpha1"
	"github.com/berthmaster/berthmaster/internal/enginesim"
	"github.com/berthmaster/berthmaster/internal/enginesim/model"
)

// engineCapacity is what every engine says it can run at once.
const engineCapacity = 8

// engineConfig is a small engine that answers health requests in no time.
func engineConfig() enginesim.Config {
	return enginesim.Config{
		Speed: 50, HealthPoll: 100 * time.Millisecond, HealthTimeout: 20 * time.Second,
		Model: model.Params{MaxRunning: engineCapacity},
	}
}

// startEngine serves a simulated engine on an address until the spec ends or stop is called.
func startEngine(address string, changes ...func(*enginesim.Config)) (engine *enginesim.Server, stop func()) {
	GinkgoHelper()
	config := engineConfig()
	for _, change := range changes {
		change(&config)
	}
	engine, err := enginesim.New(config)
	Expect(err).NotTo(HaveOccurred())
	var socket *enginesim.Socket
	Eventually(func() (err error) { socket, err = engine.Listen(address); return err }).Should(Succeed())
	served := make(chan error, 1)
	go func() { served <- socket.Serve() }()
	stopped := false
	stop = func() {
		if stopped {
			return
		}
		stopped = true
		engine.Close()
		Eventually(served).Should(Receive())
	}
	DeferCleanup(stop)
	return engine, stop
}

// fleet is a set of engines that share a port on loopback addresses of their own, and their pods.
type fleet struct {
	house *house
	port  int32
	kills map[string]func()
}

// nodeOfFleet is where every pod of a fleet is.
const nodeOfFleet = "node"

// labelsOfFleet is what every pod of a fleet carries.
var labelsOfFleet = map[string]string{"app": "sglang", "role": "rollout"}

// openFleet starts n engines and reports their pods, named sglang-0 and so on, as running and ready.
func openFleet(ctx context.Context, h *house, n int) *fleet {
	GinkgoHelper()
	f := &fleet{house: h, port: freePort(ctx), kills: map[string]func(){}}
	for i := range n {
		f.boot(ctx, fmt.Sprintf("sglang-%d", i), i)
	}
	return f
}

// boot starts the engine of a pod and reports the pod.
func (f *fleet) boot(ctx context.Context, name string, i int) *corev1.Pod {
	GinkgoHelper()
	_, kill := startEngine(net.JoinHostPort(address(i), strconv.Itoa(int(f.port))))
	f.kills[name] = kill
	pod := f.createPod(ctx, name)
	f.reportRunning(ctx, pod, address(i), "containerd://"+string(pod.UID)+"-0")
	return pod
}

// address is a loopback address of this process's own: the last part counts the fleet's engines.
func address(i int) string { return fmt.Sprintf("127.0.77.%d", 11+i) }

// url is another spelling of an engine's base URL.
func (f *fleet) url(i int) v1alpha1.EndpointURL {
	return v1alpha1.EndpointURL("http://" + net.JoinHostPort(address(i), strconv.Itoa(int(f.port))) + "//")
}

// freePort is a port that was free a moment ago on every address of a fleet.
func freePort(ctx context.Context) int32 {
	GinkgoHelper()
	var lc net.ListenConfig
	listener, err := lc.Listen(ctx, "tcp", net.JoinHostPort(address(0), "0"))
	Expect(err).NotTo(HaveOccurred())
	defer listener.Close()
	return int32(listener.Addr().(*net.TCPAddr).Port)
}

func (f *fleet) createPod(ctx context.Context, name string, finalizers ...string) *corev1.Pod {
	GinkgoHelper()
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: f.house.namespace, Labels: labelsOfFleet, Finalizers: finalizers},
		Spec: corev1.PodSpec{NodeName: nodeOfFleet, Containers: []corev1.Container{{
			Name: "server", Image: "sglang", Ports: []corev1.ContainerPort{{ContainerPort: f.port}},
		}}},
	}
	Expect(admin.Create(ctx, pod)).To(Succeed())
	return pod
}

// reportRunning plays the kubelet of a pod whose container runs.
func (f *fleet) reportRunning(ctx context.Context, pod *corev1.Pod, ip, containerID string) {
	GinkgoHelper()
	f.report(ctx, pod.Name, func(status *corev1.PodStatus) {
		status.Phase, status.PodIP, status.PodIPs = corev1.PodRunning, ip, []corev1.PodIP{{IP: ip}}
		status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
		status.ContainerStatuses = []corev1.ContainerStatus{{
			Name: "server", Image: "sglang", ImageID: "sglang", Ready: true, Started: ptr.To(true), ContainerID: containerID,
			State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.Now()}},
		}}
	})
}

// reportTerminated plays the kubelet of a pod whose container has ended.
func (f *fleet) reportTerminated(ctx context.Context, name string) {
	GinkgoHelper()
	f.report(ctx, name, func(status *corev1.PodStatus) {
		for i := range status.ContainerStatuses {
			container := &status.ContainerStatuses[i]
			container.Ready = false
			container.State = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
				ExitCode: 137, ContainerID: container.ContainerID, FinishedAt: metav1.Now(),
			}}
		}
	})
}

// reportCrashLoop plays the kubelet of a pod whose container ends again and again.
func (f *fleet) reportCrashLoop(ctx context.Context, name string) {
	GinkgoHelper()
	f.report(ctx, name, func(status *corev1.PodStatus) {
		container := &status.ContainerStatuses[0]
		container.Ready, container.RestartCount = false, 7
		container.LastTerminationState = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
			ExitCode: 1, ContainerID: container.ContainerID, FinishedAt: metav1.Now(),
		}}
		container.State = corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}}
		status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionFalse}}
	})
}

// reportReady plays the kubelet of a pod whose readiness changes.
func (f *fleet) reportReady(ctx context.Context, name string, ready corev1.ConditionStatus) {
	GinkgoHelper()
	f.report(ctx, name, func(status *corev1.PodStatus) {
		status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: ready}}
	})
}

func (f *fleet) report(ctx context.Context, name string, change func(*corev1.PodStatus)) {
	GinkgoHelper()
	Eventually(func() error {
		pod := f.pod(ctx, name)
		change(&pod.Status)
		return admin.Status().Update(ctx, pod)
	}).Should(Succeed())
}

// beginToDelete deletes a pod, which stays there, as one does whose containers still end, until the spec is over.
func (f *fleet) beginToDelete(ctx context.Context, name string) {
	GinkgoHelper()
	finalizers := func(ctx context.Context, to ...string) *corev1.Pod {
		pod := f.pod(ctx, name)
		before := pod.DeepCopy()
		pod.Finalizers = to
		Expect(admin.Patch(ctx, pod, client.MergeFrom(before))).To(Succeed())
		return pod
	}
	pod := finalizers(ctx, "example.com/slow")
	DeferCleanup(func(ctx context.Context) { finalizers(ctx) })
	Expect(admin.Delete(ctx, pod)).To(Succeed())
}

func (f *fleet) pod(ctx context.Context, name string) *corev1.Pod {
	GinkgoHelper()
	pod := &corev1.Pod{}
	Expect(admin.Get(ctx, client.ObjectKey{Namespace: f.house.namespace, Name: name}, pod)).To(Succeed())
	return pod
}

// annotate sets an annotation of a pod; an empty value takes it away.
func (f *fleet) annotate(ctx context.Context, name, key, value string) {
	GinkgoHelper()
	pod := f.pod(ctx, name)
	before := pod.DeepCopy()
	if value == "" {
		delete(pod.Annotations, key)
	} else {
		metav1.SetMetaDataAnnotation(&pod.ObjectMeta, key, value)
	}
	Expect(admin.Patch(ctx, pod, client.MergeFrom(before))).To(Succeed())
}

// destroy removes the pod object at once and without a word about its container, as when somebody
// forces the deletion of a pod on a lost node.
func (f *fleet) destroy(ctx context.Context, name string) {
	GinkgoHelper()
	Expect(admin.Delete(ctx, f.pod(ctx, name), client.GracePeriodSeconds(0))).To(Succeed())
}

// relabel sets a label of a pod.
func (f *fleet) relabel(ctx context.Context, name, key, value string) {
	GinkgoHelper()
	pod := f.pod(ctx, name)
	before := pod.DeepCopy()
	pod.Labels[key] = value
	Expect(admin.Patch(ctx, pod, client.MergeFrom(before))).To(Succeed())
}

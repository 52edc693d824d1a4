package main

import (
	"context"
	"fmt"
	"hash/fnv"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/berthmaster/berthmaster/api/v1alpha1"
)

const (
	// hands is how many objects are made at once.
	hands = 8
	// patience bounds every wait.
	patience = 15 * time.Minute
)

func poolName(i int) string { return fmt.Sprintf("pool-%d", i) }

// populate makes the pods of all engines, ready, and the pools over them.
func (s *site) populate(ctx context.Context) error {
	if err := inParallel(ctx, s.layout.pools*s.layout.backends, s.makePod); err != nil {
		return fmt.Errorf("make the pods: %w", err)
	}
	if err := inParallel(ctx, s.layout.pools, s.makePool); err != nil {
		return fmt.Errorf("make the pools: %w", err)
	}
	return nil
}

// inParallel does n things, a few at once, and stops at the first that fails.
func inParallel(ctx context.Context, n int, do func(context.Context, int) error) error {
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	workqueue.ParallelizeUntil(ctx, hands, n, func(i int) {
		if err := do(ctx, i); err != nil {
			fail(err)
		}
	})
	return context.Cause(ctx)
}

func (s *site) makePool(ctx context.Context, i int) error {
	return s.api.Create(ctx, &v1alpha1.InferencePool{
		ObjectMeta: metav1.ObjectMeta{Name: poolName(i), Namespace: namespace},
		Spec: v1alpha1.InferencePoolSpec{
			Backends: v1alpha1.BackendsSpec{
				Selector: &v1alpha1.PodSelector{MatchLabels: map[string]v1alpha1.LabelValue{"pool": v1alpha1.LabelValue(poolName(i))}},
				Port:     port,
			},
			Senders: []v1alpha1.SenderSpec{{Name: "train"}},
		},
	})
}

// makePod makes the pod of engine i, in the size that pods have: the cache has to trim it.
func (s *site) makePod(ctx context.Context, i int) error {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: nameOf(i), Namespace: namespace, Labels: map[string]string{"pool": poolName(i / s.layout.backends)},
		},
		Spec: corev1.PodSpec{
			NodeName: fmt.Sprintf("node-%d", i/8),
			Containers: []corev1.Container{{
				Name: "server", Image: "sglang", Ports: []corev1.ContainerPort{{ContainerPort: port}},
				Args: []string{"--model-path", "/models/policy", "--tp-size", "4", "--enable-metrics"},
				Env:  []corev1.EnvVar{{Name: "NCCL_DEBUG", Value: "WARN"}, {Name: "HF_HUB_OFFLINE", Value: "1"}},
			}},
		},
	}
	if err := s.api.Create(ctx, pod); err != nil {
		return err
	}
	return s.report(ctx, i, 0, corev1.ConditionTrue)
}

// report plays the kubelet of the pod of engine i, in that life of its container.
func (s *site) report(ctx context.Context, i, life int, ready corev1.ConditionStatus) error {
	pod := &corev1.Pod{}
	if err := s.api.Get(ctx, client.ObjectKey{Namespace: namespace, Name: nameOf(i)}, pod); err != nil {
		return err
	}
	status := &pod.Status
	status.Phase, status.PodIP, status.PodIPs = corev1.PodRunning, addressOf(i), []corev1.PodIP{{IP: addressOf(i)}}
	status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: ready}}
	status.ContainerStatuses = []corev1.ContainerStatus{{
		Name: "server", Image: "sglang", ImageID: "sglang", Ready: ready == corev1.ConditionTrue, Started: ptr.To(true),
		ContainerID: fmt.Sprintf("containerd://%s-%d", pod.UID, life),
		State:       corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.Now()}},
	}}
	return s.api.Status().Update(ctx, pod)
}

// settle waits until every backend of every pool serves, and the manager has nothing more to write.
func (s *site) settle(ctx context.Context) error {
	var last uint64
	still := 0
	return wait.PollUntilContextTimeout(ctx, 2*time.Second, patience, false, func(ctx context.Context) (bool, error) {
		select {
		case <-s.manager.ended:
			return false, errEnded
		default:
		}
		var list v1alpha1.InferencePoolList
		if err := s.api.List(ctx, &list); err != nil {
			return false, err
		}
		if now := versions(&list); now != last {
			last, still = now, 0
		}
		still++
		return serving(&list) == s.layout.pools*s.layout.backends && still > 2, nil
	})
}

// versions is a number that changes when a pool does.
func versions(list *v1alpha1.InferencePoolList) uint64 {
	sum := fnv.New64()
	for i := range list.Items {
		fmt.Fprintln(sum, list.Items[i].ResourceVersion)
	}
	return sum.Sum64()
}

func serving(list *v1alpha1.InferencePoolList) int {
	n := 0
	for i := range list.Items {
		if summary := list.Items[i].Status.Summary; summary != nil {
			n += int(summary.Serving)
		}
	}
	return n
}

package cluster

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/berthmaster/berthmaster/api/v1alpha1"
)

const (
	operatorNamespace = "berthmaster-system"
	poolNamespace     = "rl"
	poolName          = "policy"
	poolResource      = "inferencepools.inference.berthmaster.io"
	engines           = 4
	speed             = 20
)

// house is the cluster and what is installed in it.
type house struct {
	root, state, bin string
	home             string // the operator's namespace
	defined          string // the resource definition of now; empty: not installed yet
	pooled           bool   // a pool and its engines were made
	kube             client.WithWatch
	began            time.Time // so that sessions of two runs on one cluster are told apart
	stories          int
}

// open finds the cluster that runs around this process.
func (h *house) open(_ context.Context, root, state, bin string) {
	var err error
	h.root, err = filepath.Abs(root)
	Expect(err).NotTo(HaveOccurred())
	h.state, h.bin, h.began, h.home = state, bin, time.Now(), operatorNamespace
	config, err := clientcmd.BuildConfigFromFlags("", os.Getenv("KUBECONFIG"))
	Expect(err).NotTo(HaveOccurred())
	config.QPS = -1
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		v1alpha1.AddToScheme, corev1.AddToScheme, appsv1.AddToScheme, coordinationv1.AddToScheme, eventsv1.AddToScheme,
	} {
		Expect(add(scheme)).To(Succeed())
	}
	h.kube, err = client.NewWithWatch(config, client.Options{Scheme: scheme})
	Expect(err).NotTo(HaveOccurred())
	for _, folder := range []string{h.executions(), h.clients()} {
		// The engines run as nobody in particular.
		Expect(os.MkdirAll(folder, 0o755)).To(Succeed())
		Expect(os.Chmod(folder, 0o777)).To(Succeed())
	}
}

func (h *house) executions() string { return filepath.Join(h.state, "executions") }
func (h *house) clients() string    { return filepath.Join(h.state, "clients") }

// run runs a program of the cluster and returns what it printed.
func (h *house) run(ctx context.Context, stdin, program string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, filepath.Join(h.bin, program), args...)
	cmd.Stdin = strings.NewReader(stdin)
	cmd.Dir = h.root
	var out, complaint bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &complaint
	if err := cmd.Run(); err != nil {
		return out.String(), fmt.Errorf("%s %s: %w: %s", program, strings.Join(args, " "), err, strings.TrimSpace(complaint.String()))
	}
	return out.String(), nil
}

// kubectl is what a person would type, as the cluster's administrator.
func (h *house) kubectl(ctx context.Context, args ...string) (string, error) {
	return h.run(ctx, "", "kubectl", args...)
}

// must is kubectl where nothing may go wrong.
func (h *house) must(ctx context.Context, line string) string {
	out, err := h.kubectl(ctx, strings.Fields(line)...)
	ExpectWithOffset(1, err).NotTo(HaveOccurred())
	return out
}

// apply gives kubectl a manifest.
func (h *house) apply(ctx context.Context, manifest string, args ...string) {
	_, err := h.run(ctx, manifest, "kubectl", append([]string{"apply", "-f", "-"}, args...)...)
	ExpectWithOffset(1, err).NotTo(HaveOccurred())
}

// sandbox changes the cluster from below: its network, its programs.
func (h *house) sandbox(ctx context.Context, args ...string) {
	_, err := h.run(ctx, "", "sandbox", args...)
	ExpectWithOffset(1, err).NotTo(HaveOccurred())
}

// pool reads the pool.
func (h *house) pool(ctx context.Context) (*v1alpha1.InferencePool, error) {
	pool := &v1alpha1.InferencePool{}
	err := h.kube.Get(ctx, client.ObjectKey{Namespace: poolNamespace, Name: poolName}, pool)
	return pool, err
}

// pods are those with a label, by name.
func (h *house) pods(ctx context.Context, namespace, label, value string) map[string]corev1.Pod {
	var list corev1.PodList
	ExpectWithOffset(1, h.kube.List(ctx, &list, client.InNamespace(namespace), client.MatchingLabels{label: value})).To(Succeed())
	found := map[string]corev1.Pod{}
	for _, pod := range list.Items {
		found[pod.Name] = pod
	}
	return found
}

// enginePods are the backends' pods.
func (h *house) enginePods(ctx context.Context) map[string]corev1.Pod {
	return h.pods(ctx, poolNamespace, "app", "sglang")
}

// managers are the operator's pods.
func (h *house) managers(ctx context.Context) map[string]corev1.Pod {
	return h.pods(ctx, h.home, "app.kubernetes.io/name", "berthmaster")
}

// holder is the identity that holds the operator's Lease: pod, address and life.
func (h *house) holder(ctx context.Context) (string, error) {
	var lease coordinationv1.Lease
	if err := h.kube.Get(ctx, client.ObjectKey{Namespace: h.home, Name: "berthmaster-manager"}, &lease); err != nil {
		return "", err
	}
	if lease.Spec.HolderIdentity == nil || *lease.Spec.HolderIdentity == "" {
		return "", errors.New("nobody leads")
	}
	return *lease.Spec.HolderIdentity, nil
}

// leader is the pod that leads.
func (h *house) leader(ctx context.Context) (string, error) {
	holder, err := h.holder(ctx)
	pod, _, _ := strings.Cut(holder, "_")
	return pod, err
}

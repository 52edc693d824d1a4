package connect

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

const (
	// ManagerNamespace is where config/default puts the manager.
	ManagerNamespace = "berthmaster-system"
	// ManagerLabels is what the manager's pods carry.
	ManagerLabels = "app.kubernetes.io/name=berthmaster"
	// leasePort is the port of the lease API where the pod names none "leases".
	leasePort = 8085
)

// manager is a pod of the manager and how its lease API is spoken to.
type manager struct {
	pod    string
	port   int
	scheme string
}

func (m manager) base() string { return fmt.Sprintf("%s://%s", m.scheme, m.pod) }

// findManager chooses a ready pod of the manager; any will do, since one that does not lead passes calls
// on to the one that does.
func findManager(ctx context.Context, clients kubernetes.Interface, namespace string) (manager, error) {
	pods, err := clients.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{LabelSelector: ManagerLabels})
	if err != nil {
		return manager{}, fmt.Errorf("look for the manager: %w", err)
	}
	i := slices.IndexFunc(pods.Items, func(p corev1.Pod) bool { return PodReady(&p) })
	if i < 0 {
		return manager{}, fmt.Errorf("no pod of the manager is ready in namespace %s (%d carry %s): "+
			"if it runs elsewhere, say where with --router-namespace or --router-url", namespace, len(pods.Items), ManagerLabels)
	}
	return managerIn(&pods.Items[i]), nil
}

func managerIn(pod *corev1.Pod) manager {
	m := manager{pod: pod.Name, port: leasePort, scheme: "http"}
	for _, c := range pod.Spec.Containers {
		for _, p := range c.Ports {
			if p.Name == "leases" {
				m.port = int(p.ContainerPort)
			}
		}
		if arguments := slices.Concat(c.Command, c.Args); !servesPlain(arguments) {
			m.scheme = "https"
		}
	}
	return m
}

// servesPlain: the lease API is served without TLS while it is on loopback and the flags do not ask for
// TLS everywhere.
func servesPlain(arguments []string) bool {
	for _, a := range arguments {
		name, value, _ := strings.Cut(strings.TrimLeft(a, "-"), "=")
		if host, _, _ := net.SplitHostPort(value); name == "lease-bind-address" && !loopback(host) {
			return false
		}
		if name == "tls" && value == "Everywhere" {
			return false
		}
	}
	return true
}

// PodReady reports whether a pod runs, is ready and is not being deleted.
func PodReady(pod *corev1.Pod) bool {
	if pod.DeletionTimestamp != nil || pod.Status.Phase != corev1.PodRunning {
		return false
	}
	return slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}

package cluster

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/berthmaster/berthmaster/api/v1alpha1"
)

// installs is the administrator's part.
func installs(h *house) {
	It("installs the operator from its manifests: two replicas on two nodes, one of which leads", func(ctx SpecContext) {
		h.install(ctx)
		pods := h.managers(ctx)
		Expect(pods).To(HaveLen(2))
		nodes := map[string]bool{}
		for _, pod := range pods {
			nodes[pod.Spec.NodeName] = true
		}
		Expect(nodes).To(HaveLen(2))
		Eventually(ctx, h.leader).Should(BeElementOf(names(pods)))
	}, SpecTimeout(12*time.Minute))

	It("finds nothing to change when the same manifests are applied again, kustomized or as one file", func(ctx SpecContext) {
		generation := h.must(ctx, "get deployment berthmaster-manager -n "+operatorNamespace+" -o jsonpath={.metadata.generation}")
		h.must(ctx, "apply --server-side -k config/default")
		h.must(ctx, "apply --server-side -f dist/install.yaml")
		Expect(h.must(ctx, "get deployment berthmaster-manager -n "+operatorNamespace+" -o jsonpath={.metadata.generation}")).
			To(Equal(generation))
	})

	It("runs under the restricted profile of pod security, which refuses anything laxer there", func(ctx SpecContext) {
		_, err := h.run(ctx, `{apiVersion: v1, kind: Pod, metadata: {name: lax, namespace: `+operatorNamespace+`},
			spec: {containers: [{name: c, image: registry.local/pause:1, securityContext: {privileged: true}}]}}`,
			"kubectl", "apply", "-f", "-")
		Expect(err).To(MatchError(ContainSubstring("violates PodSecurity")))
	})

	It("finds network policy, disruption budget and Service accepted, and the Service to have both replicas", func(ctx SpecContext) {
		for _, object := range []string{"networkpolicy/berthmaster-manager", "poddisruptionbudget/berthmaster-manager", "service/berthmaster-leases"} {
			h.must(ctx, "get -n "+operatorNamespace+" "+object)
		}
		Eventually(ctx, func() []string {
			return strings.Fields(h.must(ctx, "get endpointslices -n "+operatorNamespace+
				" -l kubernetes.io/service-name=berthmaster-leases -o jsonpath={.items[*].endpoints[?(@.conditions.ready)].addresses[0]}"))
		}).Should(HaveLen(2))
	})

	It("applies a pool over a StatefulSet of engines, and sees it ready", func(ctx SpecContext) {
		h.applyPool(ctx)
		h.untilAllServe(ctx, engines)
		Expect(h.must(ctx, "get -n rl "+poolResource+" "+poolName)).To(ContainSubstring("4/4"))
	}, SpecTimeout(12*time.Minute))
}

// install applies the manifests as a user does, and waits.
func (h *house) install(ctx context.Context) {
	GinkgoHelper()
	h.must(ctx, "apply --server-side -k config/default")
	h.must(ctx, "rollout status deployment/berthmaster-manager -n "+operatorNamespace+" --timeout=300s")
	h.defined = h.definition(ctx)
}

// settle makes what earlier stories would have, where somebody has chosen only later ones.
func (h *house) settle(ctx context.Context) {
	GinkgoHelper()
	if h.defined == "" {
		h.install(ctx)
	}
	if !h.pooled {
		h.applyPool(ctx)
	}
}

// applyPool makes the pool's namespace, the accounts of its workers, the engines and the pool.
func (h *house) applyPool(ctx context.Context) {
	GinkgoHelper()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: poolNamespace}}
	Expect(client.IgnoreAlreadyExists(h.kube.Create(ctx, namespace))).To(Succeed())
	h.allowWorkers(ctx)
	rendered := h.must(ctx, "kustomize test/e2e/cluster/testdata/pool")
	// Where the engines keep their records is this run's.
	h.apply(ctx, strings.ReplaceAll(rendered, "EXECUTIONS", h.executions()), "--server-side")
	h.must(ctx, "rollout status statefulset/sglang -n rl --timeout=300s")
	h.pooled = true
}

// uninstalls is the administrator's last part.
func uninstalls(h *house) {
	It("uninstalls: the pool goes, the operator goes, engines are left alone and nothing else is left", func(ctx SpecContext) {
		engine := h.enginePods(ctx)
		h.deletePool(ctx)
		h.must(ctx, "delete --timeout=300s -k config/default")
		Eventually(ctx, h.left).Should(BeEmpty())
		for name, pod := range h.enginePods(ctx) {
			Expect(pod.UID).To(Equal(engine[name].UID))
			Expect(ready(pod)).To(BeTrue())
		}
		Expect(h.enginePods(ctx)).To(HaveLen(len(engine)))
	}, SpecTimeout(12*time.Minute))
}

// deletePool deletes the pool, with which the authorities that its workers trust go.
func (h *house) deletePool(ctx context.Context) {
	GinkgoHelper()
	h.must(ctx, "delete -n rl --timeout=300s "+poolResource+" "+poolName)
	Eventually(ctx, func(ctx context.Context) []string {
		return ours(h.must(ctx, "get configmaps -n rl -o name"))
	}).Should(BeEmpty())
}

// left are all objects of the cluster that are the operator's. Its ConfigMaps go with the pools, by the
// cluster's own doing and in its own time.
func (h *house) left(ctx context.Context) []string {
	GinkgoHelper()
	found := strings.Fields(h.must(ctx, "api-resources --api-group="+v1alpha1.GroupVersion.Group+" -o name"))
	for _, kinds := range []string{
		"clusterroles,clusterrolebindings,customresourcedefinitions,namespaces,validatingwebhookconfigurations,mutatingwebhookconfigurations",
		"roles,rolebindings,serviceaccounts,configmaps,secrets,leases.coordination.k8s.io,services,deployments,pods,poddisruptionbudgets,networkpolicies -A",
	} {
		found = append(found, ours(h.must(ctx, "get -o name "+kinds))...)
	}
	return found
}

// ours are the names that the operator's objects have.
func ours(list string) []string {
	return slices.DeleteFunc(strings.Fields(list), func(name string) bool { return !strings.Contains(name, "berthmaster") })
}

// read reads a file of the project.
func (h *house) read(elements ...string) string {
	text, err := os.ReadFile(filepath.Join(append([]string{h.root}, elements...)...))
	ExpectWithOffset(1, err).NotTo(HaveOccurred())
	return string(text)
}

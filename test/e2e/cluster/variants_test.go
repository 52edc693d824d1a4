package cluster

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// variants are the other ways to install, on the cluster that the first one has left.
func variants(h *house) {
	It("is installed, upgraded and uninstalled by Helm, whose chart keeps the definition and upgrades it", func(ctx SpecContext) {
		h.home = "helm-system"
		h.helm(ctx, "-chart="+h.earlierChart(), "install", "image.tag=dev")
		Expect(h.definition(ctx)).NotTo(Equal(h.defined), "the chart's definition is not the earlier one")
		h.helm(ctx, "install", "image.tag=dev", "podAnnotations.touched=yes")
		Expect(h.definition(ctx)).To(Equal(h.defined), "an upgrade left the definition behind")
		h.serves(ctx)
		h.deletePool(ctx)
		h.helm(ctx, "uninstall")
		Expect(h.left(ctx)).To(ContainElement("customresourcedefinition.apiextensions.k8s.io/"+poolResource), "pools would go with it")
		h.must(ctx, "delete crd "+poolResource)
		h.deleteMade(ctx)
		h.must(ctx, "delete namespace helm-system --timeout=120s")
	}, SpecTimeout(12*time.Minute))

	It("is installed for one namespace only, and has no right in another", func(ctx SpecContext) {
		h.home = poolNamespace
		h.must(ctx, "apply --server-side -k config/crd")
		h.must(ctx, "apply --server-side -k test/e2e/cluster/testdata/namespaced")
		h.must(ctx, "rollout status deployment/berthmaster-manager -n rl --timeout=300s")
		h.serves(ctx)
		manager := "--as=system:serviceaccount:rl:berthmaster-manager"
		Expect(h.must(ctx, "auth can-i list pods -n rl "+manager)).To(ContainSubstring("yes"))
		for _, right := range []string{"list pods", "get secrets", "list " + poolResource, "patch configmaps"} {
			said, err := h.kubectl(ctx, append(strings.Fields("auth can-i "+right+" -n default"), manager)...)
			Expect(err).To(HaveOccurred())
			Expect(said).To(ContainSubstring("no"))
		}
		h.must(ctx, "delete -n rl --timeout=300s "+poolResource+" "+poolName)
		h.must(ctx, "delete --timeout=300s -k test/e2e/cluster/testdata/namespaced")
		h.must(ctx, "delete --timeout=300s -k config/crd")
		h.deleteMade(ctx)
	}, SpecTimeout(12*time.Minute))
}

// helm runs the chart's release in the operator's namespace.
func (h *house) helm(ctx context.Context, args ...string) {
	GinkgoHelper()
	_, err := h.run(ctx, "", "release", append([]string{"-namespace", h.home}, args...)...)
	Expect(err).NotTo(HaveOccurred())
}

// earlierChart is the chart of now with an earlier version's resource definition.
func (h *house) earlierChart() string {
	GinkgoHelper()
	folder := filepath.Join(GinkgoT().TempDir(), "berthmaster")
	Expect(os.CopyFS(folder, os.DirFS(filepath.Join(h.root, "charts", "berthmaster")))).To(Succeed())
	definition, err := os.ReadFile(filepath.Join(os.Getenv("EARLIER_DEFINITION"), "crd.yaml"))
	Expect(err).NotTo(HaveOccurred())
	Expect(os.WriteFile(filepath.Join(folder, "files", "crd.yaml"), definition, 0o644)).To(Succeed())
	return folder
}

// serves has sessions run through the pool, which is made if it is not there.
func (h *house) serves(ctx SpecContext) {
	GinkgoHelper()
	h.applyPool(ctx)
	h.begin(ctx).end(ctx)
}

// deleteMade deletes what the manager made in its own namespace, as docs/install.md says, after which
// nothing is left.
func (h *house) deleteMade(ctx context.Context) {
	GinkgoHelper()
	h.must(ctx, "delete -n "+h.home+" secret/berthmaster-token-key secret/berthmaster-serving-cert"+
		" configmap/berthmaster-ca lease.coordination.k8s.io/berthmaster-manager")
	Eventually(ctx, h.left).Should(BeEmpty())
}

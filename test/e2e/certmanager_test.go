package e2e

import (
	"context"
	"encoding/json"
	"os/exec"
	"path/filepath"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/berthmaster/berthmaster/test/local"
)

// certManager is whose resource definitions config/cert-manager is held to.
const certManager = "github.com/cert-manager/cert-manager@v1.21.2"

// definitions is the folder with the definitions of cert-manager, from its module.
func definitions(ctx context.Context) string {
	GinkgoHelper()
	out, err := exec.CommandContext(ctx, "go", "mod", "download", "-json", certManager).Output()
	Expect(err).NotTo(HaveOccurred(), "%s", out)
	var module struct{ Dir string }
	Expect(json.Unmarshal(out, &module)).To(Succeed())
	return filepath.Join(module.Dir, "deploy", "crds")
}

var _ = Describe("the administrator who has cert-manager", Ordered, func() {
	var system *local.System

	BeforeAll(func() { system = start("cert-manager") })

	It("finds config/cert-manager accepted by the API server, with every field known", func(ctx SpecContext) {
		for _, file := range []string{"cert-manager.io_certificates.yaml", "cert-manager.io_issuers.yaml"} {
			_, err := system.Kubectl().Run(ctx, "apply", "--server-side", "-f", filepath.Join(definitions(ctx), file))
			Expect(err).NotTo(HaveOccurred())
		}
		_, err := system.Kubectl().Run(ctx, "wait", "--for=condition=Established", "--timeout=60s",
			"crd/certificates.cert-manager.io", "crd/issuers.cert-manager.io")
		Expect(err).NotTo(HaveOccurred())
		apply := []string{"apply", "--server-side", "--force-conflicts", "--dry-run=server", "--validate=strict", "-k", filepath.Join("..", "..", "config", "cert-manager")}
		out, err := system.Kubectl().Run(ctx, apply...)
		Expect(err).NotTo(HaveOccurred())
		Expect(out).To(ContainSubstring("certificate.cert-manager.io/berthmaster-tls"))
		Expect(out).To(ContainSubstring("deployment.apps/berthmaster-manager"))
		_, err = system.Kubectl().Apply(ctx, `{"apiVersion":"cert-manager.io/v1","kind":"Certificate","metadata":{"name":"x","namespace":"default"},"spec":{"secretName":"x","issuerRef":{"name":"x"},"noSuchField":1}}`,
			"--server-side", "--dry-run=server", "--validate=strict")
		Expect(err).To(MatchError(ContainSubstring("noSuchField")), "the check would pass anything")
	})
})

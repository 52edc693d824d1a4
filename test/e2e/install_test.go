package e2e

import (
	"path/filepath"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/berthmaster/berthmaster/test/local"
)

var _ = Describe("the administrator who installs the operator", Ordered, func() {
	const manager = "system:serviceaccount:berthmaster-system:berthmaster-manager"
	var system *local.System

	BeforeAll(func() { system = start("install") })

	It("finds every manifest of config/default accepted by the API server", func(ctx SpecContext) {
		out, err := system.Kubectl().Run(ctx, "apply", "--server-side", "--force-conflicts", "--dry-run=server",
			"-k", filepath.Join("..", "..", "config", "default"))
		Expect(err).NotTo(HaveOccurred())
		for _, made := range []string{
			"customresourcedefinition.apiextensions.k8s.io/inferencepools.inference.berthmaster.io",
			"clusterrole.rbac.authorization.k8s.io/berthmaster-manager-role",
			"deployment.apps/berthmaster-manager",
		} {
			Expect(out).To(ContainSubstring(made))
		}
	})

	DescribeTable("finds that the manager may do what it needs and nothing else",
		func(ctx SpecContext, question, answer string) {
			// kubectl answers no with exit status 1 as well.
			out, _ := system.Kubectl().Run(ctx, append([]string{"auth", "can-i", "--as", manager, "-A"}, strings.Fields(question)...)...)
			Expect(strings.TrimSpace(out)).To(HavePrefix(answer))
		},
		Entry("it reads pods", "list pods", "yes"),
		Entry("it reads pools", "watch inferencepools.inference.berthmaster.io", "yes"),
		Entry("it writes the status of pools", "patch inferencepools.inference.berthmaster.io --subresource=status", "yes"),
		Entry("it patches pools, for their finalizers", "patch inferencepools.inference.berthmaster.io", "yes"),
		Entry("it does not replace pools", "update inferencepools.inference.berthmaster.io", "no"),
		Entry("it does not delete pools", "delete inferencepools.inference.berthmaster.io", "no"),
		Entry("it does not change pods", "patch pods", "no"),
		Entry("it does not delete pods", "delete pods", "no"),
		Entry("it does not run commands in pods", "create pods --subresource=exec", "no"),
		Entry("it asks whose a token is", "create tokenreviews.authentication.k8s.io", "yes"),
		Entry("it asks what a caller may do", "create subjectaccessreviews.authorization.k8s.io", "yes"),
		Entry("it publishes its authorities", "patch configmaps/berthmaster-ca", "yes"),
		Entry("it does not write other config maps", "patch configmaps/other", "no"),
		Entry("it does not read config maps", "get configmaps", "no"),
		Entry("it takes no leases itself", "create inferencepools.inference.berthmaster.io --subresource=leases", "no"),
		Entry("it does not list secrets", "list secrets", "no"),
		Entry("it does not change rights", "update clusterroles.rbac.authorization.k8s.io", "no"),
		Entry("it has not every right", "* *", "no"),
	)
})

package controller_test

import (
	"context"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	extensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/berthmaster/berthmaster/api/v1alpha1"
)

// otherPools is a kind of the same name in another group, as the Gateway API has one.
var otherPools = schema.GroupVersionKind{Group: "inference.networking.k8s.io", Version: "v1", Kind: "InferencePool"}

// otherDefinition is the least that makes that kind.
func otherDefinition() *extensions.CustomResourceDefinition {
	anything := true
	return &extensions.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: "inferencepools." + otherPools.Group, Annotations: map[string]string{
			// The group is a protected one, in which every definition says who approved it.
			"api-approved.kubernetes.io": "unapproved, for a test",
		}},
		Spec: extensions.CustomResourceDefinitionSpec{
			Group: otherPools.Group, Scope: extensions.NamespaceScoped,
			Names: extensions.CustomResourceDefinitionNames{
				Kind: otherPools.Kind, ListKind: otherPools.Kind + "List", Plural: "inferencepools", Singular: "inferencepool", ShortNames: []string{"infpool"},
			},
			Versions: []extensions.CustomResourceDefinitionVersion{{
				Name: otherPools.Version, Served: true, Storage: true,
				Schema: &extensions.CustomResourceValidation{OpenAPIV3Schema: &extensions.JSONSchemaProps{
					Type: "object", Properties: map[string]extensions.JSONSchemaProps{
						"spec":   {Type: "object", XPreserveUnknownFields: &anything},
						"status": {Type: "object", XPreserveUnknownFields: &anything},
					},
				}},
				Subresources: &extensions.CustomResourceSubresources{Status: &extensions.CustomResourceSubresourceStatus{}},
			}},
		},
	}
}

// kubectl runs the command line that people use, as an administrator of the suite's cluster.
func kubectl(ctx context.Context, arguments ...string) string {
	GinkgoHelper()
	user, err := cluster.AddUser(envtest.User{Name: "somebody", Groups: []string{"system:masters"}}, nil)
	Expect(err).NotTo(HaveOccurred())
	command, err := user.Kubectl()
	Expect(err).NotTo(HaveOccurred())
	arguments = append(append([]string(nil), command.Opts...), arguments...)
	output, err := exec.CommandContext(ctx, filepath.Join(cluster.BinaryAssetsDirectory, "kubectl"), arguments...).CombinedOutput()
	Expect(err).NotTo(HaveOccurred(), string(output))
	return string(output)
}

var _ = It("is not disturbed by another project's kind of the same name", func(ctx context.Context) {
	_, err := envtest.InstallCRDs(cluster.Config, envtest.CRDInstallOptions{CRDs: []*extensions.CustomResourceDefinition{otherDefinition()}})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func() {
		Expect(envtest.UninstallCRDs(cluster.Config, envtest.CRDInstallOptions{CRDs: []*extensions.CustomResourceDefinition{otherDefinition()}})).To(Succeed())
	})
	h := openHouse(ctx)
	f := openFleet(ctx, h, 1)
	other := &unstructured.Unstructured{}
	other.SetGroupVersionKind(otherPools)
	other.SetNamespace(h.namespace)
	other.SetName(theName)
	Expect(unstructured.SetNestedField(other.Object, "epp", "spec", "extensionRef", "name")).To(Succeed())
	Expect(admin.Create(ctx, other)).To(Succeed())
	before := other.GetResourceVersion()

	By("serving the pool of the same name and namespace")
	f.createPool(ctx)
	h.untilServing(ctx, 1)
	h.acquire(request("s", 1))

	By("leaving the other's object alone")
	Consistently(func(g Gomega) {
		g.Expect(admin.Get(ctx, client.ObjectKeyFromObject(other), other)).To(Succeed())
		g.Expect(other.GetResourceVersion()).To(Equal(before))
		g.Expect(other.Object).NotTo(HaveKey("status"))
		g.Expect(other.GetFinalizers()).To(BeEmpty())
	}).WithTimeout(2 * time.Second).Should(Succeed())

	By("being found under its full name and its short one")
	for _, name := range []string{"inferencepools." + v1alpha1.GroupVersion.Group, "rlpool"} {
		table := strings.Fields(kubectl(ctx, "get", name, "-n", h.namespace))
		Expect(table[:4]).To(Equal([]string{"NAME", "READY", "BACKENDS", table[3]}))
		Expect(table).To(ContainElements(theName, "True", "1/1"))
	}
	Expect(kubectl(ctx, "get", "inferencepools."+otherPools.Group, "-n", h.namespace)).NotTo(ContainSubstring("1/1"))

	By("being untouched by the end of the other")
	Expect(admin.Delete(ctx, other)).To(Succeed())
	Consistently(func() int32 { return h.pool(ctx).Status.Summary.Serving }).WithTimeout(2 * time.Second).Should(BeEquivalentTo(1))
})

package v1alpha1_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	extensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/yaml"
)

// refusals is what the API server said to every pool of the suite that it did not take.
var refusals = &journal{}

type journal struct {
	mu   sync.Mutex
	said strings.Builder // guarded by mu
}

func (j *journal) note(err error) error {
	if err != nil {
		j.mu.Lock()
		defer j.mu.Unlock()
		j.said.WriteString(err.Error() + "\n")
	}
	return err
}

func (j *journal) String() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.said.String()
}

// listening notes what the API server refuses.
func (j *journal) listening(config *rest.Config, options client.Options) (client.WithWatch, error) {
	plain, err := client.NewWithWatch(config, options)
	if err != nil {
		return nil, err
	}
	return interceptor.NewClient(plain, interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, object client.Object, o ...client.CreateOption) error {
			return j.note(c.Create(ctx, object, o...))
		},
		Update: func(ctx context.Context, c client.WithWatch, object client.Object, o ...client.UpdateOption) error {
			return j.note(c.Update(ctx, object, o...))
		},
		Patch: func(ctx context.Context, c client.WithWatch, object client.Object, patch client.Patch, o ...client.PatchOption) error {
			return j.note(c.Patch(ctx, object, patch, o...))
		},
	}), nil
}

// A rule that refuses nothing in any spec might as well not be there.
var _ = ReportAfterSuite("every rule of the resource definition has refused a pool", func(report Report) {
	selected := report.SuiteConfig
	if !report.SuiteSucceeded || len(selected.FocusStrings)+len(selected.SkipStrings) > 0 {
		return // specs that did not run have tried nothing
	}
	manifest, err := os.ReadFile(filepath.Join("..", "..", "config", "crd", "bases", "inference.berthmaster.io_inferencepools.yaml"))
	Expect(err).NotTo(HaveOccurred())
	var crd extensions.CustomResourceDefinition
	Expect(yaml.UnmarshalStrict(manifest, &crd)).To(Succeed())
	rules := rulesIn(crd.Spec.Versions[0].Schema.OpenAPIV3Schema)
	Expect(rules).NotTo(BeEmpty())
	said := refusals.String()
	for _, rule := range rules {
		Expect(said).To(ContainSubstring(rule.Message), "no spec has a pool refused by the rule %s", rule.Rule)
	}
})

// rulesIn lists the rules of a schema and of all that is below it.
func rulesIn(schema *extensions.JSONSchemaProps) []extensions.ValidationRule {
	rules := schema.XValidations
	for _, property := range schema.Properties {
		rules = append(rules, rulesIn(&property)...)
	}
	if schema.Items != nil {
		rules = append(rules, rulesIn(schema.Items.Schema)...)
	}
	if schema.AdditionalProperties != nil {
		rules = append(rules, rulesIn(schema.AdditionalProperties.Schema)...)
	}
	return rules
}

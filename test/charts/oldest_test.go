package charts

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	extensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel/model"
	"k8s.io/apimachinery/pkg/util/version"
	config "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/apiserver/pkg/cel/environment"
	"sigs.k8s.io/yaml"
)

// oldest is the oldest minor version of Kubernetes 1 that the definition is promised to work on.
const oldest = 32

func TestTheOldestKubernetesAdmitsEveryRule(t *testing.T) {
	// A server admits what its predecessor knew as well, to be able to go back.
	for _, fault := range ruleFaults(t, oldest-1) {
		t.Error(fault)
	}
	if len(ruleFaults(t, oldest-2)) == 0 {
		t.Errorf("a server of version 1.%d would admit every rule, too: promise that", oldest-1)
	}
}

func TestTheOldestKubernetesIsTheSameEverywhere(t *testing.T) {
	for file, says := range map[string]string{
		"docs/install.md":               fmt.Sprintf("Kubernetes 1.%d or later", oldest),
		"charts/berthmaster/Chart.yaml": fmt.Sprintf("kubeVersion: \">=1.%d.0-0\"", oldest),
	} {
		text, err := os.ReadFile(filepath.Join("..", "..", file))
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(text), says) {
			t.Errorf("%s does not say %q", file, says)
		}
	}
}

// ruleFaults are the rules of the definition that are refused with the functions of Kubernetes 1.minor.
func ruleFaults(t *testing.T, minor uint) []string {
	t.Helper()
	text, err := os.ReadFile(definition)
	if err != nil {
		t.Fatal(err)
	}
	var crd extensions.CustomResourceDefinition
	if err := yaml.UnmarshalStrict(text, &crd); err != nil {
		t.Fatal(err)
	}
	var internal apiextensions.JSONSchemaProps
	if err := extensions.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(crd.Spec.Versions[0].Schema.OpenAPIV3Schema, &internal, nil); err != nil {
		t.Fatal(err)
	}
	root, err := schema.NewStructural(&internal)
	if err != nil {
		t.Fatal(err)
	}
	known := environment.MustBaseEnvSet(version.MajorMinor(1, minor))
	var faults []string
	var visit func(path string, node *schema.Structural)
	visit = func(path string, node *schema.Structural) {
		results, err := cel.Compile(node, model.SchemaDeclType(node, path == ""), config.PerCallLimit, known, cel.NewExpressionsEnvLoader())
		if err != nil {
			faults = append(faults, fmt.Sprintf("%s: %v", path, err))
		}
		for i, result := range results {
			if result.Error != nil {
				faults = append(faults, fmt.Sprintf("%s: %s: %v", path, node.XValidations[i].Rule, result.Error))
			}
		}
		for name, child := range node.Properties {
			visit(path+"."+name, &child)
		}
		if node.Items != nil {
			visit(path+"[]", node.Items)
		}
		if node.AdditionalProperties != nil && node.AdditionalProperties.Structural != nil {
			visit(path+"{}", node.AdditionalProperties.Structural)
		}
	}
	visit("", root)
	return faults
}

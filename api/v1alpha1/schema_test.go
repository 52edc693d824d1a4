package v1alpha1_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	extensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"
)

// clientSideLimit is what kubectl apply can keep in its annotation, in bytes.
const clientSideLimit = 256 << 10

func definition(t *testing.T) *extensions.CustomResourceDefinition {
	t.Helper()
	manifest, err := os.ReadFile(filepath.Join("..", "..", "config", "crd", "bases", "inference.berthmaster.io_inferencepools.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var crd extensions.CustomResourceDefinition
	if err := yaml.UnmarshalStrict(manifest, &crd); err != nil {
		t.Fatal(err)
	}
	return &crd
}

func TestDefinitionIsSmallEnoughForClientSideApply(t *testing.T) {
	manifest, err := json.Marshal(definition(t))
	if err != nil {
		t.Fatal(err)
	}
	if size := len(bytes.TrimSpace(manifest)); size >= clientSideLimit {
		t.Errorf("the definition has %d bytes as JSON; kubectl apply keeps at most %d", size, clientSideLimit)
	}
}

func TestDefinitionHasItsNamesAndColumns(t *testing.T) {
	crd := definition(t)
	if got := crd.Spec.Names; strings.Join(got.ShortNames, ",") != "rlpool" || strings.Join(got.Categories, ",") != "rl" {
		t.Errorf("short names %v and categories %v, want rlpool and rl", got.ShortNames, got.Categories)
	}
	var narrow, wide []string
	for _, column := range crd.Spec.Versions[0].AdditionalPrinterColumns {
		if column.Priority == 0 {
			narrow = append(narrow, column.Name)
		} else {
			wide = append(wide, column.Name)
		}
	}
	if got, want := strings.Join(narrow, " "), "Ready Backends Version Converged Age"; got != want {
		t.Errorf("columns %q, want %q", got, want)
	}
	if got, want := strings.Join(wide, " "), "Policy Term Router Epoch"; got != want {
		t.Errorf("wide columns %q, want %q", got, want)
	}
}

func TestEveryPartOfTheSchemaIsBoundedAndDescribed(t *testing.T) {
	root := definition(t).Spec.Versions[0].Schema.OpenAPIV3Schema
	for _, part := range []string{"spec", "status"} {
		walk(part, root.Properties[part], func(path string, schema extensions.JSONSchemaProps) {
			for _, fault := range faults(path, schema) {
				t.Errorf("%s: %s", path, fault)
			}
		})
	}
}

// walk visits a schema and all that it is made of.
func walk(path string, schema extensions.JSONSchemaProps, visit func(string, extensions.JSONSchemaProps)) {
	visit(path, schema)
	for name, property := range schema.Properties {
		walk(path+"."+name, property, visit)
	}
	if schema.Items != nil {
		walk(path+"[]", *schema.Items.Schema, visit)
	}
	if schema.AdditionalProperties != nil {
		walk(path+"{}", *schema.AdditionalProperties.Schema, visit)
	}
}

func faults(path string, schema extensions.JSONSchemaProps) []string {
	var out []string
	if name := path[strings.LastIndex(path, ".")+1:]; !strings.ContainsAny(name, "[]{}") && !strings.HasPrefix(schema.Description, name) {
		out = append(out, "the description does not start with the field's name")
	}
	if schema.Default != nil {
		out = append(out, "has a default")
	}
	switch schema.Type {
	case "string":
		if schema.MaxLength == nil && len(schema.Enum) == 0 && schema.Format != "date-time" {
			out = append(out, "string without bound")
		}
	case "array":
		if schema.MaxItems == nil {
			out = append(out, "list without bound")
		}
		if schema.XListType == nil {
			out = append(out, "list without list type")
		}
	case "integer":
		// Numbers in the status are ours; a lower bound documents their sign.
		if schema.Minimum == nil || (schema.Maximum == nil && strings.HasPrefix(path, "spec")) {
			out = append(out, "number without bound")
		}
	case "object":
		if schema.AdditionalProperties != nil && schema.MaxProperties == nil {
			out = append(out, "map without bound")
		}
	case "": // a number or a percentage: both bounds are one rule
		if !schema.XIntOrString || len(schema.XValidations) == 0 {
			out = append(out, "neither a type nor a number or percentage with a rule")
		}
	default:
		out = append(out, "type "+schema.Type+" has no place here")
	}
	return out
}

func TestDurationsSayTheirUnit(t *testing.T) {
	root := definition(t).Spec.Versions[0].Schema.OpenAPIV3Schema
	walk("spec", root.Properties["spec"], func(path string, schema extensions.JSONSchemaProps) {
		name := path[strings.LastIndex(path, ".")+1:]
		if strings.HasSuffix(name, "Seconds") && (schema.Type != "integer" || !strings.Contains(schema.Description, "in seconds")) {
			t.Errorf("%s: %s %q, want an integer described in seconds", path, schema.Type, schema.Description)
		}
	})
}

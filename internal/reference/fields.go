package main

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"
)

const definition = "config/crd/bases/inference.berthmaster.io_inferencepools.yaml"

func fieldsPage(_ context.Context, root string) (string, error) {
	raw, err := os.ReadFile(filepath.Join(root, definition))
	if err != nil {
		return "", err
	}
	var crd apiextensionsv1.CustomResourceDefinition
	if err := yaml.UnmarshalStrict(raw, &crd); err != nil {
		return "", err
	}
	var d document
	d.heading(1, "Fields of inferencepools.inference.berthmaster.io")
	d.paragraph("Every field of version " + crd.Spec.Versions[0].Name + ". A field in brackets may be left out; its text says what that means. " +
		"What holds for fields together is listed as rules below the object that has them.")
	schema := crd.Spec.Versions[0].Schema.OpenAPIV3Schema
	for _, part := range []string{"spec", "status"} {
		sub := schema.Properties[part]
		writeObject(&d, 2, part, &sub)
	}
	return d.String(), nil
}

// writeObject writes an object's fields, its rules, and then the objects within it.
func writeObject(d *document, level int, path string, schema *apiextensionsv1.JSONSchemaProps) {
	d.heading(level, code(path))
	rows := make([][]string, 0, len(schema.Properties))
	inner := map[string]*apiextensionsv1.JSONSchemaProps{}
	for _, name := range slices.Sorted(maps.Keys(schema.Properties)) {
		field := schema.Properties[name]
		shown := code(name)
		if !slices.Contains(schema.Required, name) {
			shown = "[" + shown + "]"
		}
		rows = append(rows, []string{shown, typeOf(&field), field.Description})
		if object, below := objectIn(&field); object != nil {
			inner[path+"."+name+below] = object
		}
	}
	d.table([]string{"field", "type", "meaning"}, rows)
	writeRules(d, schema)
	for _, name := range slices.Sorted(maps.Keys(inner)) {
		writeObject(d, min(level+1, 4), name, inner[name])
	}
}

func writeRules(d *document, schema *apiextensionsv1.JSONSchemaProps) {
	if len(schema.XValidations) == 0 {
		return
	}
	d.paragraph("\nRules:\n")
	for _, rule := range schema.XValidations {
		d.paragraph("- " + inCell(rule.Message))
	}
}

// objectIn is the object with fields of its own that a field is, or is a list of.
func objectIn(field *apiextensionsv1.JSONSchemaProps) (object *apiextensionsv1.JSONSchemaProps, below string) {
	switch {
	case len(field.Properties) > 0:
		return field, ""
	case field.Items != nil && field.Items.Schema != nil && len(field.Items.Schema.Properties) > 0:
		return field.Items.Schema, "[]"
	}
	return nil, ""
}

// typeOf is a field's type with its bounds.
func typeOf(field *apiextensionsv1.JSONSchemaProps) string {
	switch {
	case field.XIntOrString:
		return "number or string"
	case len(field.Enum) > 0:
		words := make([]string, 0, len(field.Enum))
		for _, e := range field.Enum {
			words = append(words, code(strings.Trim(string(e.Raw), `"`)))
		}
		return strings.Join(words, ", ")
	case field.Type == "array":
		return listType(field)
	case field.Type == "integer":
		return "integer" + numberBounds(field)
	case field.Type == "string":
		return stringType(field)
	case field.AdditionalProperties != nil:
		return "map" + atMost(field.MaxProperties)
	}
	return field.Type
}

func listType(field *apiextensionsv1.JSONSchemaProps) string {
	text := "list"
	if keys := field.XListMapKeys; len(keys) > 0 {
		text += " by " + code(strings.Join(keys, ", "))
	}
	if items := field.Items; items != nil && items.Schema != nil && len(items.Schema.Properties) == 0 {
		text += " of " + typeOf(items.Schema)
	}
	return text + atMost(field.MaxItems)
}

func stringType(field *apiextensionsv1.JSONSchemaProps) string {
	if field.Format == "date-time" {
		return "time"
	}
	return "string" + atMost(field.MaxLength)
}

func atMost(n *int64) string {
	if n == nil {
		return ""
	}
	return ", at most " + strconv.FormatInt(*n, 10)
}

func numberBounds(field *apiextensionsv1.JSONSchemaProps) string {
	switch {
	case field.Minimum != nil && field.Maximum != nil:
		return fmt.Sprintf(", %.0f to %.0f", *field.Minimum, *field.Maximum)
	case field.Minimum != nil:
		return fmt.Sprintf(", %.0f or more", *field.Minimum)
	}
	return ""
}

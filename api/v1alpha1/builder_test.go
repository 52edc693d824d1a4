package v1alpha1_test

import (
	"maps"
	"strings"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/berthmaster/berthmaster/api/v1alpha1"
)

// edit changes one part of a manifest. Manifests are edited as JSON and not as Go types, since the
// types leave out the very zero values that a person may write.
type edit func(manifest map[string]any)

// set puts value at a dotted path.
func set(path string, value any) edit {
	return func(manifest map[string]any) {
		Expect(unstructured.SetNestedField(manifest, value, strings.Split(path, ".")...)).To(Succeed())
	}
}

// unset takes the field at a dotted path away.
func unset(path string) edit {
	return func(manifest map[string]any) {
		unstructured.RemoveNestedField(manifest, strings.Split(path, ".")...)
	}
}

// endpoints replaces the selector by one endpoint for each URL, named a, b, ...
func endpoints(urls ...string) edit {
	list := make([]any, 0, len(urls))
	for i, url := range urls {
		list = append(list, object("name", string(rune('a'+i)), "url", url))
	}
	return set("spec.backends", object("endpoints", list))
}

// object builds a JSON object from pairs of key and value.
func object(pairs ...any) map[string]any {
	out := map[string]any{}
	for i := 0; i < len(pairs); i += 2 {
		out[pairs[i].(string)] = pairs[i+1]
	}
	return out
}

// list builds a JSON list.
func list(values ...any) []any { return values }

// sender is an entry of spec.senders.
func sender(name string, more ...any) map[string]any {
	out := object("name", name)
	maps.Copy(out, object(more...))
	return out
}

// repeated is a list of n entries.
func repeated(n int, entry func(i int) any) []any {
	out := make([]any, 0, n)
	for i := range n {
		out = append(out, entry(i))
	}
	return out
}

// pool is a minimal valid manifest over pods, edited.
func pool(edits ...edit) *unstructured.Unstructured {
	manifest := object(
		"apiVersion", v1alpha1.GroupVersion.String(),
		"kind", v1alpha1.InferencePoolKind,
		"metadata", object("generateName", "pool-", "namespace", "default"),
		"spec", object(
			"backends", object(
				"selector", object("matchLabels", object("app", "sglang")),
				"port", int64(30000),
			),
			"senders", list(sender("train")),
		),
	)
	for _, change := range edits {
		change(manifest)
	}
	return &unstructured.Unstructured{Object: manifest}
}

// weights is spec.weights of these fields.
func weights(pairs ...any) edit { return set("spec.weights", object(pairs...)) }

// rolling is spec.weights of a valid rolling change, with further fields.
func rolling(pairs ...any) edit {
	return weights(append([]any{"version", "1", "source", "Disk", "path", "/w", "strategy", "Rolling"}, pairs...)...)
}

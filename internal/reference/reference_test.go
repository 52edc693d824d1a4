package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/utils/ptr"
)

const root = "../.."

func TestEveryPageThatNeedsNoProgramIsWhatIsCheckedIn(t *testing.T) {
	for _, p := range pages() {
		if p.name == "flags.md" {
			continue // it runs the programs, as make verify does
		}
		text, err := p.make(t.Context(), root)
		if err != nil {
			t.Errorf("%s: %v", p.name, err)
			continue
		}
		checkedIn, err := os.ReadFile(filepath.Join(root, "docs/reference", p.name))
		if err != nil {
			t.Error(err)
			continue
		}
		if diff := cmp.Diff(string(checkedIn), generated+text); diff != "" {
			t.Errorf("docs/reference/%s is not what the code says; make reference writes it anew:\n%s", p.name, diff)
		}
	}
}

func TestEventsAreFoundWhereTheyAreMade(t *testing.T) {
	path := filepath.Join(t.TempDir(), "made.go")
	if err := os.WriteFile(path, []byte(`package controller
func f() []change {
	note := fmt.Sprintf("backend %s is %s", entry.Name, entry.State)
	if x {
		return []change{{corev1.EventTypeWarning, v1alpha1.ReasonGone, "Observe", now.Message, nil}}
	}
	return append(nil,
		change{severity(s), "Backend" + string(entry.State), "Observe", note, nil},
		change{corev1.EventTypeNormal, "Held", "Hold", "nothing runs", nil},
		other{corev1.EventTypeNormal, "Not", "An", "event", nil})
}`), 0o600); err != nil {
		t.Fatal(err)
	}
	got, err := eventsIn(path, []constant{
		{name: "ReasonGone", value: "PodGone"},
		{name: "BackendServing", kind: "BackendState", value: "Serving"}, {name: "BackendPending", kind: "BackendState", value: "Pending"},
	})
	if err != nil {
		t.Fatal(err)
	}
	want := []event{
		{"PodGone", "Warning", "Observe", "the condition's message"},
		{"BackendServing", "Normal or Warning", "Observe", "backend {name} is {state}"},
		{"Held", "Normal", "Hold", "nothing runs"},
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(event{})); diff != "" {
		t.Error(diff)
	}
}

func TestTypesAreToldWithTheirBounds(t *testing.T) {
	for want, field := range map[string]apiextensionsv1.JSONSchemaProps{
		"integer, 1 to 300":                       {Type: "integer", Minimum: ptr.To(1.0), Maximum: ptr.To(300.0)},
		"integer, 0 or more":                      {Type: "integer", Minimum: ptr.To(0.0)},
		"string, at most 63":                      {Type: "string", MaxLength: ptr.To[int64](63)},
		"time":                                    {Type: "string", Format: "date-time"},
		"`Open`, `Held`":                          {Type: "string", Enum: []apiextensionsv1.JSON{{Raw: []byte(`"Open"`)}, {Raw: []byte(`"Held"`)}}},
		"list by `name`, at most 32":              {Type: "array", XListMapKeys: []string{"name"}, MaxItems: ptr.To[int64](32)},
		"list of string, at most 300, at most 16": {Type: "array", MaxItems: ptr.To[int64](16), Items: &apiextensionsv1.JSONSchemaPropsOrArray{Schema: &apiextensionsv1.JSONSchemaProps{Type: "string", MaxLength: ptr.To[int64](300)}}},
		"number or string":                        {XIntOrString: true},
	} {
		got := typeOf(&field)
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestATextThatWouldEndACellDoesNot(t *testing.T) {
	if got := inCell("a | b\n  c"); got != `a \| b c` {
		t.Errorf("%q", got)
	}
}

package charts

import (
	"bytes"
	"errors"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/yaml"
)

const (
	chartFolder = "../../charts/berthmaster"
	installed   = "../../dist/install.yaml"
	definition  = "../../config/crd/bases/inference.berthmaster.io_inferencepools.yaml"
	keep        = "helm.sh/resource-policy"
)

// render is what "helm template" with these values prints, without the notes.
func render(t *testing.T, namespace, values string) ([]*unstructured.Unstructured, error) {
	t.Helper()
	chart, err := loader.Load(chartFolder)
	if err != nil {
		t.Fatal(err)
	}
	var given map[string]any
	if err := yaml.Unmarshal([]byte(values), &given); err != nil {
		t.Fatal(err)
	}
	all, err := chartutil.ToRenderValues(chart, given,
		chartutil.ReleaseOptions{Name: "rl", Namespace: namespace, IsInstall: true, Revision: 1}, chartutil.DefaultCapabilities)
	if err != nil {
		return nil, err
	}
	files, err := engine.Engine{Strict: true}.Render(chart, all)
	if err != nil {
		return nil, err
	}
	var objects []*unstructured.Unstructured
	for name, text := range files {
		if !strings.HasSuffix(name, "NOTES.txt") {
			objects = append(objects, split(t, text)...)
		}
	}
	return objects, nil
}

func mustRender(t *testing.T, namespace, values string) map[string]*unstructured.Unstructured {
	t.Helper()
	objects, err := render(t, namespace, values)
	if err != nil {
		t.Fatal(err)
	}
	return byName(t, objects)
}

// split reads the documents of a manifest.
func split(t *testing.T, text string) []*unstructured.Unstructured {
	t.Helper()
	var objects []*unstructured.Unstructured
	documents := utilyaml.NewYAMLOrJSONDecoder(bytes.NewBufferString(text), 4096)
	for {
		var fields map[string]any
		err := documents.Decode(&fields)
		if errors.Is(err, io.EOF) {
			return objects
		}
		if err != nil {
			t.Fatalf("%v in\n%s", err, text)
		}
		if len(fields) > 0 {
			objects = append(objects, &unstructured.Unstructured{Object: fields})
		}
	}
}

func byName(t *testing.T, objects []*unstructured.Unstructured) map[string]*unstructured.Unstructured {
	t.Helper()
	named := map[string]*unstructured.Unstructured{}
	for _, o := range objects {
		name := o.GetKind() + " " + o.GetName()
		if named[name] != nil {
			t.Errorf("%s is there twice", name)
		}
		named[name] = o
	}
	return named
}

// strict reads objects as the API's types have them and knows of no other field.
func strict(t *testing.T) runtime.Decoder {
	t.Helper()
	types := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{scheme.AddToScheme, apiextensionsv1.AddToScheme} {
		if err := add(types); err != nil {
			t.Fatal(err)
		}
	}
	return serializer.NewCodecFactory(types, serializer.EnableStrict).UniversalDeserializer()
}

func TestDefaultsRenderWhatTheManifestsInstall(t *testing.T) {
	text, err := os.ReadFile(installed)
	if err != nil {
		t.Fatal(err)
	}
	want := byName(t, split(t, string(text)))
	// Helm makes the namespace itself, when it is told to.
	delete(want, "Namespace berthmaster-system")
	got := mustRender(t, "berthmaster-system", "")
	crd := got["CustomResourceDefinition inferencepools.inference.berthmaster.io"]
	annotations := crd.GetAnnotations()
	if annotations[keep] != "keep" {
		t.Errorf("an uninstall would take every pool with it: %v", annotations)
	}
	delete(annotations, keep)
	crd.SetAnnotations(annotations)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("dist/install.yaml has -, the chart +:\n%s", diff)
	}
}

func TestWhatIsRenderedHasNoFieldThatTheAPIDoesNotKnow(t *testing.T) {
	decoder := strict(t)
	for name, values := range map[string]string{
		"the defaults":     "",
		"one namespace":    "scope: Namespace",
		"one replica":      "replicas: 1",
		"everything else":  "{crd: {manage: Skip}, networkPolicy: Disabled}",
		"a load balancer":  "service: {type: LoadBalancer, port: 443, annotations: {a: b}}",
		"a private image":  "{image: {repository: r.test/b, tag: v1, pullPolicy: Always}, imagePullSecrets: [{name: s}]}",
		"a certain place":  "{nodeSelector: {a: b}, priorityClassName: high, affinity: {nodeAffinity: {}}, podAnnotations: {c: d}}",
		"other quantities": "resources: {requests: {cpu: 1, memory: 1Gi}}",
	} {
		t.Run(name, func(t *testing.T) {
			for what, object := range mustRender(t, "rl", values) {
				text, err := object.MarshalJSON()
				if err != nil {
					t.Fatal(err)
				}
				if _, _, err := decoder.Decode(text, nil, nil); err != nil {
					t.Errorf("%s: %v", what, err)
				}
			}
		})
	}
}

func TestTheDefinitionIsUpgradedWithTheRelease(t *testing.T) {
	text, err := os.ReadFile(definition)
	if err != nil {
		t.Fatal(err)
	}
	want := split(t, string(text))[0]
	const name = "CustomResourceDefinition inferencepools.inference.berthmaster.io"
	// Deleted with the release, it is the one of config/crd to the last word. Objects that are rendered
	// are upgraded; what stands in a chart's crds/ is not.
	if diff := cmp.Diff(want, mustRender(t, "rl", "crd: {onUninstall: Delete}")[name]); diff != "" {
		t.Errorf("config/crd has -, the chart +:\n%s", diff)
	}
	if mustRender(t, "rl", "crd: {manage: Skip}")[name] != nil {
		t.Error("the definition is rendered although somebody else has it")
	}
	if _, err := os.Stat(chartFolder + "/crds"); !errors.Is(err, os.ErrNotExist) {
		t.Error("the chart has a folder crds/")
	}
}

func TestAManagerOfOneNamespaceHasNoRightsElsewhere(t *testing.T) {
	objects := mustRender(t, "rl", "scope: Namespace")
	for name, object := range objects {
		text, err := object.MarshalJSON()
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(text), "berthmaster-system") {
			t.Errorf("%s speaks of another namespace", name)
		}
		if object.GetKind() == "ClusterRole" {
			for _, resource := range []string{"pods", "secrets", "inferencepools/status"} {
				if strings.Contains(string(text), `"`+resource+`"`) {
					t.Errorf("%s gives rights to %s everywhere", name, resource)
				}
			}
		}
	}
	if !argued(t, objects, "--namespace=$(POD_NAMESPACE)") {
		t.Error("the manager looks at every namespace")
	}
	if argued(t, mustRender(t, "rl", ""), "--namespace=$(POD_NAMESPACE)") {
		t.Error("the manager looks at one namespace only")
	}
}

func TestReplicasAgreeOnWhoGrants(t *testing.T) {
	// One alone, too: there are two of it while it is upgraded, or while its node is lost.
	for _, values := range []string{"replicas: 1", "replicas: 2"} {
		if !argued(t, mustRender(t, "rl", values), "--leader-elect") {
			t.Errorf("%s: the manager takes part in no election", values)
		}
	}
	if mustRender(t, "rl", "replicas: 1")["PodDisruptionBudget berthmaster-manager"] != nil {
		t.Error("the node of a single replica cannot be drained")
	}
}

func TestFurtherFlagsReachTheManager(t *testing.T) {
	if !argued(t, mustRender(t, "rl", `extraArgs: ["--leader-lease-duration=20s"]`), "--leader-lease-duration=20s") {
		t.Error("the flag is not passed on")
	}
}

func TestValuesThatMeanNothingAreRefused(t *testing.T) {
	for name, values := range map[string]string{
		"an unknown value":           "replica: 3",
		"an unknown scope":           "scope: Everything",
		"no replica":                 "replicas: 0",
		"an image without a name":    `image: {repository: ""}`,
		"a flag that is none":        "extraArgs: [leader-elect]",
		"a port that is none":        "service: {port: 70000}",
		"an unknown end of the CRD":  "crd: {onUninstall: Maybe}",
		"a limit that is none":       "goMemoryLimit: 90%",
		"an annotation that is none": "podAnnotations: {a: 1}",
	} {
		if _, err := render(t, "rl", values); err == nil {
			t.Errorf("%s (%s) was accepted", name, values)
		}
	}
}

// argued says whether the manager is started with an argument.
func argued(t *testing.T, objects map[string]*unstructured.Unstructured, argument string) bool {
	t.Helper()
	containers, _, err := unstructured.NestedSlice(objects["Deployment berthmaster-manager"].Object, "spec", "template", "spec", "containers")
	if err != nil {
		t.Fatal(err)
	}
	args, _, err := unstructured.NestedStringSlice(containers[0].(map[string]any), "args")
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range args {
		if a == argument {
			return true
		}
	}
	return false
}

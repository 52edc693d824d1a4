// Package layout checks that what the project says about itself is so: the
// PROJECT file names what there is, and links between documents resolve.
package layout

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"
)

// root is the project's folder, seen from this one.
const root = "../.."

// project is the PROJECT file in kubebuilder's form, version 3.
type project struct {
	Domain      string            `json:"domain"`
	Layout      []string          `json:"layout"`
	ProjectName string            `json:"projectName"`
	Repo        string            `json:"repo"`
	Resources   []projectResource `json:"resources"`
	Version     string            `json:"version"`
}

type projectResource struct {
	API struct {
		CRDVersion string `json:"crdVersion"`
		Namespaced bool   `json:"namespaced"`
	} `json:"api"`
	Controller bool   `json:"controller"`
	Domain     string `json:"domain"`
	Group      string `json:"group"`
	Kind       string `json:"kind"`
	Path       string `json:"path"`
	Version    string `json:"version"`
}

func readProject(t *testing.T) project {
	t.Helper()
	var p project
	if err := yaml.UnmarshalStrict(read(t, "PROJECT"), &p); err != nil {
		t.Fatalf("PROJECT: %v", err)
	}
	return p
}

func TestProjectFileNamesThisModule(t *testing.T) {
	p := readProject(t)
	if p.Version != "3" {
		t.Errorf("version is %q, want kubebuilder's 3", p.Version)
	}
	if want := "module " + p.Repo + "\n"; !strings.HasPrefix(string(read(t, "go.mod")), want) {
		t.Errorf("go.mod does not begin with %q", want)
	}
	if len(p.Layout) != 1 || p.Layout[0] != "go.kubebuilder.io/v4" {
		t.Errorf("layout is %v, which is not the one with cmd/ and internal/controller/", p.Layout)
	}
	if len(p.Resources) == 0 {
		t.Error("no resource is named")
	}
}

func TestProjectFileNamesTheResourcesThatExist(t *testing.T) {
	p := readProject(t)
	for _, r := range p.Resources {
		t.Run(r.Kind, func(t *testing.T) {
			if r.Domain != p.Domain {
				t.Errorf("domain %q is not the project's %q", r.Domain, p.Domain)
			}
			folder, ours := strings.CutPrefix(r.Path, p.Repo+"/")
			if !ours {
				t.Fatalf("path %q is outside of %s", r.Path, p.Repo)
			}
			for _, name := range []string{r.Kind, r.Kind + "List", r.Kind + "Spec", r.Kind + "Status"} {
				if !declares(t, folder, name) {
					t.Errorf("%s declares no type %s", folder, name)
				}
			}
			checkDefinition(t, r)
			if r.Controller && !declares(t, "internal/controller", "Reconciler", r.Kind+"Reconciler") {
				t.Error("internal/controller declares no reconciler")
			}
		})
	}
}

// checkDefinition finds the resource definition that was generated.
func checkDefinition(t *testing.T, r projectResource) {
	t.Helper()
	group := r.Group + "." + r.Domain
	plural := strings.ToLower(r.Kind) + "s"
	var crd apiextensionsv1.CustomResourceDefinition
	if err := yaml.UnmarshalStrict(read(t, "config/crd/bases/"+group+"_"+plural+".yaml"), &crd); err != nil {
		t.Fatal(err)
	}
	if got := crd.APIVersion; got != "apiextensions.k8s.io/"+r.API.CRDVersion {
		t.Errorf("definition has apiVersion %s, want %s", got, r.API.CRDVersion)
	}
	if got, want := crd.Name, plural+"."+group; got != want {
		t.Errorf("definition is named %s, want %s", got, want)
	}
	if got := crd.Spec.Names.Kind; got != r.Kind {
		t.Errorf("definition has kind %s, want %s", got, r.Kind)
	}
	if got := crd.Spec.Scope == apiextensionsv1.NamespaceScoped; got != r.API.Namespaced {
		t.Errorf("definition is namespaced: %t, want %t", got, r.API.Namespaced)
	}
	for _, v := range crd.Spec.Versions {
		if v.Name == r.Version {
			return
		}
	}
	t.Errorf("definition has no version %s", r.Version)
}

// declares reports whether a Go file in the folder declares a type of one of
// the names.
func declares(t *testing.T, folder string, names ...string) bool {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(root, folder, "*.go"))
	if err != nil || len(files) == 0 {
		t.Fatalf("%s has no Go files (%v)", folder, err)
	}
	for _, file := range files {
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range names {
			if declaresType(parsed, name) {
				return true
			}
		}
	}
	return false
}

func declaresType(file *ast.File, name string) bool {
	for _, decl := range file.Decls {
		types, ok := decl.(*ast.GenDecl)
		if !ok || types.Tok != token.TYPE {
			continue
		}
		for _, spec := range types.Specs {
			if spec.(*ast.TypeSpec).Name.Name == name {
				return true
			}
		}
	}
	return false
}

func read(t *testing.T, path string) []byte {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, path))
	if err != nil {
		t.Fatal(err)
	}
	return text
}

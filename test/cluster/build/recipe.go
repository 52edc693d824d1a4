package main

import (
	"fmt"
	"regexp"
	"strings"
)

// binary is one program of the control plane.
type binary struct {
	name string // file name, as envtest looks for it
	pkg  string // import path of its main package
}

// recipe is everything that decides what the compiler produces, besides the
// module's pins and the toolchain.
type recipe struct {
	ldflags  string
	binaries []binary
}

var kubernetesVersion = regexp.MustCompile(`^v(\d+)\.(\d+)\.\d+$`)

// recipeFor returns how to build the control plane at the given version of
// k8s.io/kubernetes. etcd comes first because it is done soonest.
func recipeFor(version string) (recipe, error) {
	parts := kubernetesVersion.FindStringSubmatch(version)
	if parts == nil {
		return recipe{}, fmt.Errorf("k8s.io/kubernetes is pinned at %q, which is not a release like v1.37.2", version)
	}
	flags := []string{"-s", "-w"}
	// The programs announce the version that the linker writes into these two
	// packages; without it they call themselves v0.0.0-master.
	for _, pkg := range []string{"k8s.io/component-base/version", "k8s.io/client-go/pkg/version"} {
		flags = append(flags,
			"-X "+pkg+".gitVersion="+version,
			"-X "+pkg+".gitMajor="+parts[1],
			"-X "+pkg+".gitMinor="+parts[2],
			"-X "+pkg+".gitTreeState=clean")
	}
	return recipe{
		ldflags: strings.Join(flags, " "),
		binaries: []binary{
			{name: "etcd", pkg: "go.etcd.io/etcd/server/v3"},
			{name: "kube-apiserver", pkg: "k8s.io/kubernetes/cmd/kube-apiserver"},
			{name: "kubectl", pkg: "k8s.io/kubernetes/cmd/kubectl"},
		},
	}, nil
}

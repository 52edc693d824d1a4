package main

import (
	"context"
	"fmt"
	"regexp"
	"strings"
)

// set is one of the groups of binaries that are built together.
type set string

const (
	// setControlPlane is what envtest and the local system need.
	setControlPlane set = "control-plane"
	// setNodes is what a cluster with real nodes needs beyond it.
	setNodes set = "nodes"
)

// linking says how a binary treats C code.
type linking string

const (
	static linking = "0" // as CGO_ENABLED has it
	withC  linking = "1"
)

// runtimeModule is the folder, below this module's, of the module that pins what runs containers.
const runtimeModule = "runtime"

// binary is one program of the cluster.
type binary struct {
	name    string // file name, as envtest looks for it
	pkg     string // import path of its main package
	module  string // folder of the module that pins it, relative to this one's
	tags    string
	linking linking
	flags   string // for the linker
}

// recipe is everything that decides what the compiler produces, besides the
// modules' pins and the toolchain.
type recipe struct {
	what     string // is built, and how long it takes
	binaries []binary
}

// modules are the folders of all modules that pin a binary.
func (r recipe) modules() []string {
	var found []string
	for _, b := range r.binaries {
		if len(found) == 0 || found[len(found)-1] != b.module {
			found = append(found, b.module)
		}
	}
	return found
}

var kubernetesVersion = regexp.MustCompile(`^v(\d+)\.(\d+)\.\d+$`)

// strip leaves symbols and debugging information out.
const strip = "-s -w"

// recipeFor returns how to build a set of binaries with the pins of the module in dir.
func recipeFor(ctx context.Context, dir string, s set) (recipe, error) {
	kubernetes, err := goTool{dir: dir}.moduleVersion(ctx, "k8s.io/kubernetes")
	if err != nil {
		return recipe{}, err
	}
	flags, err := kubernetesFlags(kubernetes)
	if err != nil {
		return recipe{}, err
	}
	switch s {
	case setControlPlane:
		return controlPlaneRecipe(kubernetes, flags), nil
	case setNodes:
		return nodesRecipe(kubernetes, flags), nil
	}
	return recipe{}, fmt.Errorf("there is no set %q: %s and %s are", s, setControlPlane, setNodes)
}

// kubernetesFlags makes the programs announce their release. It is written by the linker into these
// two packages; without it they call themselves v0.0.0-master.
func kubernetesFlags(version string) (string, error) {
	parts := kubernetesVersion.FindStringSubmatch(version)
	if parts == nil {
		return "", fmt.Errorf("k8s.io/kubernetes is pinned at %q, which is not a release like v1.37.2", version)
	}
	flags := []string{strip}
	for _, pkg := range []string{"k8s.io/component-base/version", "k8s.io/client-go/pkg/version"} {
		flags = append(flags,
			"-X "+pkg+".gitVersion="+version,
			"-X "+pkg+".gitMajor="+parts[1],
			"-X "+pkg+".gitMinor="+parts[2],
			"-X "+pkg+".gitTreeState=clean")
	}
	return strings.Join(flags, " "), nil
}

// controlPlaneRecipe has etcd first because it is done soonest.
func controlPlaneRecipe(version, flags string) recipe {
	return recipe{
		what: "Kubernetes " + version + " from its modules, once: about five minutes on two cores",
		binaries: []binary{
			{name: "etcd", pkg: "go.etcd.io/etcd/server/v3", linking: static, flags: flags},
			{name: "kube-apiserver", pkg: "k8s.io/kubernetes/cmd/kube-apiserver", linking: static, flags: flags},
			{name: "kubectl", pkg: "k8s.io/kubernetes/cmd/kubectl", linking: static, flags: flags},
		},
	}
}

// nodesRecipe is the rest of a cluster. runc needs seccomp, which is C: without it no pod with the
// RuntimeDefault profile starts. containerd goes without file systems that no node here has.
func nodesRecipe(version, flags string) recipe {
	r := recipe{what: "the nodes of Kubernetes " + version + ", once: about four minutes on two cores"}
	for _, name := range []string{"kube-controller-manager", "kube-scheduler", "kubelet", "kube-proxy"} {
		r.binaries = append(r.binaries, binary{name: name, pkg: "k8s.io/kubernetes/cmd/" + name, linking: static, flags: flags})
	}
	for _, pkg := range []string{
		"github.com/containerd/containerd/v2/cmd/containerd",
		"github.com/containerd/containerd/v2/cmd/containerd-shim-runc-v2",
		"github.com/containerd/containerd/v2/cmd/ctr",
		"github.com/containernetworking/plugins/plugins/ipam/host-local",
		"github.com/containernetworking/plugins/plugins/main/bridge",
		"github.com/containernetworking/plugins/plugins/main/loopback",
		"github.com/containernetworking/plugins/plugins/meta/portmap",
	} {
		r.binaries = append(r.binaries, binary{
			name: pkg[strings.LastIndex(pkg, "/")+1:], pkg: pkg, module: runtimeModule,
			tags: "no_btrfs,no_zfs,no_devmapper", linking: static, flags: strip,
		})
	}
	return recipe{what: r.what, binaries: append(r.binaries,
		binary{name: "runc", pkg: "github.com/opencontainers/runc", module: runtimeModule, tags: "seccomp", linking: withC, flags: strip},
		binary{name: "coredns", pkg: "./coredns", module: runtimeModule, linking: static, flags: strip})}
}

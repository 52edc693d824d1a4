package local

import (
	"cmp"
	"flag"
	"os"
	"path/filepath"
)

// Flags adds the flags that say where a program finds the system's parts: -root, -bin, -assets
// (without it KUBEBUILDER_ASSETS, as for controller-runtime's envtest) and -work, which is
// .cache/name unless told otherwise.
func (c *Config) Flags(f *flag.FlagSet, name string) {
	assets := cmp.Or(os.Getenv("KUBEBUILDER_ASSETS"), filepath.Join("bin", "k8s"))
	f.StringVar(&c.Root, "root", ".", "folder of the project")
	f.StringVar(&c.Bin, "bin", "bin", "folder with manager and sglang-sim")
	f.StringVar(&c.Assets, "assets", assets, "folder with etcd, kube-apiserver and kubectl")
	f.StringVar(&c.Work, "work", filepath.Join(".cache", name), "folder for logs and state; what is in it is removed")
}

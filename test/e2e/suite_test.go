package e2e

import (
	"context"
	"flag"
	"net/netip"
	"os"
	"path/filepath"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/berthmaster/berthmaster/test/local"
	"github.com/berthmaster/berthmaster/test/story"
)

const (
	engines = 6
	speed   = 20
)

var bin = flag.String("bin", "../../bin", "folder with manager and sglang-sim")

func TestStories(t *testing.T) {
	log.SetLogger(GinkgoLogr)
	RegisterFailHandler(Fail)
	RunSpecs(t, "stories")
}

// start brings a local system up with its pool serving, and takes it down after
// the container of specs that asked for it; its logs stay under that name. The manager
// gets these flags besides its usual ones. The engines' addresses differ from the demo's, so that both can run at once.
func start(name string, flags ...string) *local.System {
	GinkgoHelper()
	return startWith(name, nil, flags...)
}

// startWith is start with engines that have these flags besides their usual ones.
func startWith(name string, engineFlags []string, flags ...string) *local.System {
	GinkgoHelper()
	root, err := filepath.Abs("../..")
	Expect(err).NotTo(HaveOccurred())
	programs, err := filepath.Abs(*bin)
	Expect(err).NotTo(HaveOccurred())
	assets := os.Getenv("KUBEBUILDER_ASSETS")
	if assets == "" {
		assets = filepath.Join(root, "bin", "k8s")
	}
	system, err := local.Start(context.Background(), local.Config{
		Root: root, Bin: programs, Assets: assets, Work: filepath.Join(root, ".cache", "e2e", name),
		Engines: engines, FirstAddress: netip.MustParseAddr("127.0.0.31"), Speed: speed, ManagerFlags: flags, EngineFlags: engineFlags,
		Say: func(line string) { GinkgoWriter.Println(line) },
	})
	Expect(err).NotTo(HaveOccurred(), "\"make build bin/k8s\" makes what is missing")
	DeferCleanup(system.Close)
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	Expect(system.ApplySample(ctx)).To(Succeed())
	Expect(system.Until(ctx, "every engine to serve", story.AllServe(engines))).To(Succeed())
	return system
}

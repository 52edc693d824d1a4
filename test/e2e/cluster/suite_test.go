package cluster

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	"github.com/onsi/ginkgo/v2/types"
	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

var root = flag.String("root", "../../..", "folder of the project")

func TestCluster(t *testing.T) {
	if os.Getenv("SANDBOX_STATE") == "" {
		t.Skip("this runs inside of a sandbox: make e2e")
	}
	log.SetLogger(GinkgoLogr)
	RegisterFailHandler(Fail)
	SetDefaultEventuallyTimeout(5 * time.Minute)
	SetDefaultEventuallyPollingInterval(200 * time.Millisecond)
	suite, reporter := GinkgoConfiguration()
	// A story that hangs is ended, with the others' results kept.
	suite.Timeout = 40 * time.Minute
	RunSpecs(t, "stories on a cluster", suite, reporter)
}

// Nothing may be left out silently: a story that did not run fails the suite, unless somebody has
// asked for certain ones.
var _ = ReportAfterSuite("how many stories ran", func(report Report) {
	ran, left := 0, []string{}
	for _, spec := range report.SpecReports.WithLeafNodeType(types.NodeTypeIt) {
		if spec.State.Is(types.SpecStateSkipped | types.SpecStatePending) {
			left = append(left, spec.FullText())
			continue
		}
		ran++
	}
	fmt.Printf("e2e: %d stories ran, %d did not\n", ran, len(left))
	chosen := len(report.SuiteConfig.FocusStrings)+len(report.SuiteConfig.FocusFiles) > 0 || report.SuiteConfig.LabelFilter != ""
	if len(left) > 0 && !chosen {
		Fail("not every story ran:\n" + strings.Join(left, "\n"))
	}
})

// The stories build on each other: one cluster, one installation, one pool. What one breaks, the next
// would find, so each begins by waiting for all engines to serve.
var _ = Describe("a user with a cluster", Ordered, ContinueOnFailure, func() {
	h := &house{}

	BeforeAll(func(ctx SpecContext) {
		h.open(ctx, *root, os.Getenv("SANDBOX_STATE"), os.Getenv("SANDBOX_BIN"))
	})
	AfterEach(func(ctx SpecContext) {
		if CurrentSpecReport().Failed() {
			h.tellAll(ctx)
		}
	})

	installs(h)
	leases(h)
	changesEngines(h)
	pauses(h)
	losesEngines(h)
	losesTheOperator(h)
	updatesWeights(h)
	upgrades(h)
	uninstalls(h)
	variants(h)
})

// tellAll prints what somebody who looks into a failure would ask for first.
func (h *house) tellAll(ctx context.Context) {
	for _, question := range []string{
		"get pods -A -o wide", "get nodes", "get -n rl inferencepools.inference.berthmaster.io policy -o yaml",
		"get events -A --sort-by=.lastTimestamp", "get -n berthmaster-system leases.coordination.k8s.io -o yaml",
		"logs -n berthmaster-system -l app.kubernetes.io/name=berthmaster --tail=60 --prefix",
	} {
		out, err := h.kubectl(ctx, strings.Fields(question)...)
		GinkgoWriter.Printf("--- kubectl %s\n%s\n", question, out)
		if err != nil {
			GinkgoWriter.Println(err)
		}
	}
	GinkgoWriter.Println("logs of the cluster's programs are in", filepath.Join(h.state, "log"))
}

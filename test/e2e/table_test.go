package e2e

import (
	"net/netip"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/berthmaster/berthmaster/clients/conformance"
	"github.com/berthmaster/berthmaster/clients/conformance/player"
)

// scenarioPatience bounds one scenario: two waits of the stage's, and what it takes to begin and to judge.
const scenarioPatience = 6 * time.Minute

var _ = Describe("the Go client and a real pool", Ordered, ContinueOnFailure, func() {
	table, err := conformance.LoadMain()
	if err != nil {
		panic(err) // the table is part of this program
	}
	var real *stage

	BeforeAll(func(ctx SpecContext) { real = openStage(ctx, "table-go", netip.MustParseAddr("127.0.0.51")) })

	for _, s := range table {
		It(s.Name+": "+s.Says, func(ctx SpecContext) {
			run, err := real.begin(ctx, s)
			Expect(err).NotTo(HaveOccurred())
			defer run.Close()
			reports, err := player.Play(ctx, run, s)
			Expect(err).NotTo(HaveOccurred())
			Expect(run.Judge(reports)).To(BeEmpty())
		}, SpecTimeout(scenarioPatience))
	}
})

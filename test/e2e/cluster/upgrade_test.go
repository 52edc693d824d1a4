package cluster

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// upgrades goes back to earlier versions and forward again. Their manifests and images were made of the
// commits that the Makefile pins.
func upgrades(h *house) {
	h.tell("goes back to an earlier version of the operator and forward again while leases go on", func(ctx context.Context, s *scene) {
		s.leaves(names(s.enginePods(ctx))...) // that version places sessions before it has looked at every engine
		s.rollOutEarlier(ctx, "EARLIER_SERVING")
		s.goesOn(ctx, 40)
		s.rollOutNow(ctx)
		s.goesOn(ctx, 40)
		s.untilAllServe(ctx, engines)
	})

	// It serves leases on its own loopback only, so that sessions stand still while it is there: what ran
	// is reported to the version of now, by the tokens of its leases.
	h.tell("goes back to an earlier version with another resource definition and forward again, and keeps the pool", func(ctx context.Context, s *scene) {
		before := s.must(ctx, "get -n rl "+poolResource+" "+poolName+" -o jsonpath={.metadata.uid}")
		now := s.definition(ctx)
		s.rollOutEarlier(ctx, "EARLIER_DEFINITION")
		Expect(s.definition(ctx)).NotTo(Equal(now), "the earlier version has the same resource definition")
		s.untilAllServe(ctx, engines)
		s.rollOutNow(ctx)
		Expect(s.definition(ctx)).To(Equal(now))
		s.goesOn(ctx, 40)
		Expect(s.must(ctx, "get -n rl "+poolResource+" "+poolName+" -o jsonpath={.metadata.uid}")).To(Equal(before))
		s.untilAllServe(ctx, engines)
	})
}

// rollOutEarlier rolls out the version whose folder a variable names, and waits until it leads.
func (s *scene) rollOutEarlier(ctx context.Context, variable string) {
	GinkgoHelper()
	folder := os.Getenv(variable)
	Expect(folder).NotTo(BeEmpty(), variable+" names the folder with an earlier version's manifests")
	s.sandbox(ctx, "load", filepath.Join(folder, "manager.tar"))
	s.rollOut(ctx, filepath.Join(folder, "install.yaml"))
}

func (s *scene) rollOutNow(ctx context.Context) {
	GinkgoHelper()
	s.rollOut(ctx, filepath.Join(s.root, "dist", "install.yaml"))
}

// rollOut applies a version's manifests and waits until both replicas are of it, and one of them leads.
func (s *scene) rollOut(ctx context.Context, manifests string) {
	GinkgoHelper()
	before, err := s.pool(ctx)
	Expect(err).NotTo(HaveOccurred())
	s.must(ctx, "apply --server-side --force-conflicts -f "+manifests)
	s.must(ctx, "rollout status deployment/berthmaster-manager -n "+operatorNamespace+" --timeout=300s")
	s.must(ctx, fmt.Sprintf("wait --for=condition=Established crd/%s --timeout=30s", poolResource))
	Eventually(ctx, s.termAbove(before.Status.Term)).Should(Succeed())
	after, err := s.pool(ctx)
	Expect(err).NotTo(HaveOccurred())
	s.tells(ctx, "TermBegan", fmt.Sprint(after.Status.Term))
}

// termAbove wants the pool to have been taken over.
func (s *scene) termAbove(term int64) func(context.Context) error {
	return func(ctx context.Context) error {
		pool, err := s.pool(ctx)
		if err == nil && pool.Status.Term <= term {
			err = fmt.Errorf("the term is still %d", pool.Status.Term)
		}
		return err
	}
}

// definition is the resource definition's schema.
func (h *house) definition(ctx context.Context) string {
	return h.must(ctx, "get crd "+poolResource+" -o jsonpath={.spec.versions}")
}

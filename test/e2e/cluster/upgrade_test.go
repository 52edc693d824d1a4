package cluster

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	. "github.com/onsi/gomega"
)

// upgrades goes back to an earlier version, with its resource definition, and forward again. The earlier
// version's manifests and image were made of the commit that the Makefile pins. It serves leases on its
// own loopback only, so that sessions stand still while it is there: what ran is reported to the version
// of now, by the tokens of its leases.
func upgrades(h *house) {
	h.tell("goes back to an earlier version of the operator and forward again, and keeps the pool", func(ctx context.Context, s *scene) {
		earlier := os.Getenv("EARLIER")
		Expect(earlier).NotTo(BeEmpty(), "EARLIER names the folder with the earlier version's manifests")
		s.leavesAny(ctx)
		before := s.must(ctx, "get -n rl "+poolResource+" "+poolName+" -o jsonpath={.metadata.uid}")
		now := s.definition(ctx)
		pool, err := s.pool(ctx)
		Expect(err).NotTo(HaveOccurred())
		term := pool.Status.Term
		s.sandbox(ctx, "load", filepath.Join(earlier, "manager.tar"))
		s.rollOut(ctx, filepath.Join(earlier, "install.yaml"))
		Expect(s.definition(ctx)).NotTo(Equal(now), "the earlier version has the same resource definition")
		Eventually(ctx, s.termAbove(term)).Should(Succeed())
		s.untilAllServe(ctx, engines)
		s.rollOut(ctx, filepath.Join(s.root, "dist", "install.yaml"))
		Expect(s.definition(ctx)).To(Equal(now))
		s.goesOn(ctx, 40)
		Expect(s.must(ctx, "get -n rl "+poolResource+" "+poolName+" -o jsonpath={.metadata.uid}")).To(Equal(before))
		s.untilAllServe(ctx, engines)
	})
}

// rollOut applies a version's manifests and waits until both replicas are of it.
func (s *scene) rollOut(ctx context.Context, manifests string) {
	s.must(ctx, "apply --server-side --force-conflicts -f "+manifests)
	s.must(ctx, "rollout status deployment/berthmaster-manager -n "+operatorNamespace+" --timeout=300s")
	s.must(ctx, fmt.Sprintf("wait --for=condition=Established crd/%s --timeout=30s", poolResource))
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

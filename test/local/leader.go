package local

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// leaderLease is the Lease that replicas hold in turn.
const leaderLease = "berthmaster-manager"

// leaderPatience bounds how long a Lease may name a replica that does not run.
const leaderPatience = time.Minute

// Leader is the replica that the Lease names. It waits while that one has ended.
func (s *System) Leader(ctx context.Context) (*Replica, error) {
	var leader *Replica
	err := until(ctx, leaderPatience, "a replica to lead", func(ctx context.Context) error {
		lease, err := s.clients.CoordinationV1().Leases(managerNamespace).Get(ctx, leaderLease, metav1.GetOptions{})
		if err != nil {
			return fmt.Errorf("the Lease of the replicas: %w", err)
		}
		if lease.Spec.HolderIdentity == nil {
			return errors.New("the Lease names nobody")
		}
		for _, r := range s.Replicas() {
			if strings.Contains(*lease.Spec.HolderIdentity, "_"+r.Leases+"_") {
				leader = r
				return nil
			}
		}
		return fmt.Errorf("the Lease names %s, which does not run", *lease.Spec.HolderIdentity)
	})
	return leader, err
}

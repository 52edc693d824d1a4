package election_test

import (
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/client-go/tools/leaderelection/resourcelock"

	"github.com/berthmaster/berthmaster/internal/election"
)

// A person who deletes the Lease, or edits its holder, makes room for another before our authority has
// run out: what is left of it must not be used once that is seen.
func TestALeaderThatFindsAnotherInTheLockGrantsNothingAnyMore(t *testing.T) {
	for name, holder := range map[string]string{"another": "other_127.0.0.1:1_x", "nobody": ""} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var s store
				one := stand(t, &s, "one")
				pass(t, 5*time.Second, one)
				reign := one.Standing().Reign
				s.mu.Lock()
				s.record, s.version = &resourcelock.LeaderElectionRecord{
					HolderIdentity: holder, LeaseDurationSeconds: int(leaseDuration / time.Second),
				}, s.version+1
				s.mu.Unlock()
				pass(t, 3*retryPeriod, one)
				if reign.Err() == nil {
					t.Errorf("it goes on with the reign that it had: %+v", one.Standing())
				}
				if holder != "" && (one.authority.holds() || one.Standing().Role == election.RoleLeads) {
					t.Errorf("it leads beside another: %+v", one.Standing())
				}
				one.quit()
			})
		})
	}
}

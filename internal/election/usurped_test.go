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
				one.lock.change(func() { one.lock.delay = retryPeriod }) // it sees that, and has not written again
				pass(t, 2*retryPeriod+500*time.Millisecond, one)
				if one.authority.holds() || one.Standing().Role == election.RoleLeads || reign.Err() == nil {
					t.Errorf("it goes on with what it had: %+v", one.Standing())
				}
				one.quit()
			})
		})
	}
}

package election_test

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
	"unsafe"

	"github.com/berthmaster/berthmaster/internal/election"
)

// jumped is a moment as a machine tells it whose wall clock was set: the wall says another time, and
// the monotonic reading, which no setting changes, is the same. The time package has no way to make
// one; its layout is the one that it documents for wall.
func jumped(t time.Time, by time.Duration) time.Time {
	const seconds = 30 // the bits of wall below the seconds
	wall := (*uint64)(unsafe.Pointer(&t))
	*wall += uint64(int64(by/time.Second)) << seconds
	return t
}

func TestAJumpedMomentIsWhatItClaimsToBe(t *testing.T) {
	now := time.Now()
	for _, by := range []time.Duration{time.Hour, -time.Hour} {
		then := jumped(now, by)
		if then.Sub(now) != 0 || then.Unix()-now.Unix() != int64(by/time.Second) {
			t.Errorf("by %s: %s monotonic, %d s on the wall", by, then.Sub(now), then.Unix()-now.Unix())
		}
	}
}

func TestAWallClockThatJumpsChangesNothing(t *testing.T) {
	for name, by := range map[string]time.Duration{"forward": time.Hour, "back": -time.Hour} {
		t.Run(name, func(t *testing.T) {
			real := time.Now()
			synctest.Test(t, func(t *testing.T) {
				var s store
				var off atomic.Int64 // by how much the first one's clock was set
				begun := time.Now()
				// Virtual time has no monotonic reading: it is added to that of a real moment.
				clock := func() time.Time { return jumped(real.Add(time.Since(begun)), time.Duration(off.Load())) }
				one := standBy(t, &s, "one", clock)
				pass(t, 5*time.Second, one)
				other := stand(t, &s, "other")
				pass(t, 5*time.Second, one, other)
				reign, _ := one.authority.told()
				off.Store(int64(by))
				pass(t, time.Minute, one, other)
				if now, _ := one.authority.told(); now != reign || !one.authority.holds() || one.Standing().Role != election.RoleLeads {
					t.Errorf("reign %d became %d, holds %t: a clock that was set has cost leadership", reign, now, one.authority.holds())
				}
				if got := other.Standing().Role; got != election.RoleFollows {
					t.Errorf("the other: role %d, want to follow", got)
				}
				one.lock.change(func() { one.lock.away = true })
				pass(t, leaseDuration+renewDeadline, one, other)
				if one.authority.holds() || !other.authority.holds() {
					t.Errorf("cut off for longer than the lease: the first holds %t, the second %t", one.authority.holds(), other.authority.holds())
				}
				one.quit()
				other.quit()
			})
		})
	}
}

package router

import (
	"testing"
	"time"
)

// R12: pools share no router lock.
func TestATableThatIsStuckDelaysNoOtherPool(t *testing.T) {
	pools := NewPools()
	stuck, other := small(t), small(t)
	pools.Put(PoolKey{"ns", "stuck"}, stuck)
	pools.Put(PoolKey{"ns", "other"}, other)
	stuck.mu.Lock()
	defer stuck.mu.Unlock()
	done := make(chan error, 1)
	go func() {
		tab, _ := pools.Get(PoolKey{"ns", "other"})
		g, err := tab.Acquire(Request{ID: "r", Session: "s", Sender: "train", Epoch: 1, Executions: 1}, worldEpoch)
		if err == nil {
			_, err = tab.Release(g.Claim, Succeeded, Reply{}, worldEpoch)
		}
		pools.Put(PoolKey{"ns", "third"}, NewTable("3", nil, worldEpoch))
		tab.Tick(worldEpoch)
		done <- err
	}()
	select {
	case err := <-done:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(time.Minute):
		t.Fatal("it waits for a pool that is stuck")
	}
}

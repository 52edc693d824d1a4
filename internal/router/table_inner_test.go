package router

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"
)

// TestInvariantsHoldUnderConcurrentCallers gives every caller its own clock, read before it asks
// for the lock as the server does, and checks the state at the end and between.
func TestInvariantsHoldUnderConcurrentCallers(t *testing.T) {
	tab := NewTable("pool", nil, worldEpoch)
	tab.Lead(1, Takeover{}, worldEpoch)
	f := Fleet{Epoch: 1, Leasing: LeasingOpen, Config: DefaultConfig(), Senders: []Sender{{Name: "train", Access: AccessOpen}}}
	f.Config.Retention = 200 * time.Millisecond
	for _, n := range []BackendName{"a", "b", "c"} {
		f.Members = append(f.Members, Member{Name: n, Incarnation: Incarnation(n + "/1"), Capacity: 8})
	}
	if err := tab.Apply(f, worldEpoch); err != nil {
		t.Fatal(err)
	}
	for _, m := range f.Members {
		tab.Observe(Observation{Incarnation: m.Incarnation, Seq: 1, Health: Healthy}, worldEpoch)
	}
	var all sync.WaitGroup
	for client := range 8 {
		all.Go(func() { hammer(t, tab, client, rand.New(rand.NewPCG(7, uint64(client)))) })
	}
	all.Wait()
}

func hammer(t *testing.T, tab *Table, client int, chance *rand.Rand) {
	now := worldEpoch
	for i := range 200 {
		now = now.Add(time.Duration(chance.IntN(5)) * time.Millisecond)
		id := fmt.Sprint(client, "-", i)
		g, err := tab.Acquire(Request{ID: RequestID(id), Session: SessionID(fmt.Sprint("s", i%5)), Sender: "train", Epoch: 1, Executions: 1}, now)
		if err != nil {
			t.Errorf("acquire: %v", err)
			continue
		}
		if _, err := tab.Release(g.Claim, []Outcome{Succeeded, Cancelled}[chance.IntN(2)], Reply{}, now); err != nil {
			t.Errorf("release: %v", err)
		}
		tab.mu.Lock()
		err = tab.state.check()
		tab.mu.Unlock()
		if err != nil {
			t.Error(err)
			return
		}
	}
}

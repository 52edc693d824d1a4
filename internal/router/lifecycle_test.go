package router

import (
	"errors"
	"testing"
	"time"
)

func TestAmbiguousExecutionIsDeadOnceItsEngineIsProvenQuiet(t *testing.T) {
	t0 := time.Unix(0, 0)
	tab := NewTable("u", nil, t0)
	f := Fleet{Epoch: 1, Leasing: LeasingOpen, Config: DefaultConfig(), Senders: []Sender{{Name: "train", Access: AccessOpen}},
		Members: []Member{{Name: "a", Incarnation: "a/1", URL: "http://a", Capacity: 4}, {Name: "b", Incarnation: "b/1", URL: "http://b", Capacity: 4}}}
	if err := tab.Apply(f, t0); err != nil {
		t.Fatal(err)
	}
	r := Request{ID: "r1", Session: "s1", Sender: "train", Epoch: 1, Executions: 1}
	if _, err := tab.Acquire(r, t0); !errors.Is(err, ErrNoLeader) {
		t.Fatal(err)
	}
	tab.Lead(1, Takeover{}, t0)
	if _, err := tab.Acquire(r, t0); !errors.Is(err, ErrNoBackend) {
		t.Fatal(err)
	}
	for _, i := range []Incarnation{"a/1", "b/1"} {
		tab.Observe(Observation{Incarnation: i, Seq: 1, Health: Healthy}, t0)
	}
	g, err := tab.Acquire(r, t0)
	if err != nil {
		t.Fatal(err)
	}
	e, err := tab.Release(g.Claim, Ambiguous, Reply{}, t0)
	if err != nil || e.Settled {
		t.Fatal(e, err)
	}
	ch := tab.Chores(t0)
	if err := tab.state.check(); err != nil {
		t.Fatal(err)
	}
	tab.AbortAnswered(g.Claim.Incarnation, ch[0].Abort, t0)
	for i := 1; i < 4; i++ {
		now := t0.Add(time.Duration(i) * time.Second)
		for _, c := range tab.Chores(now) {
			tab.AbortAnswered(c.Incarnation, c.Abort, now)
			if c.ReadLoads {
				tab.LoadsRead(c.Incarnation, c.Stamp, []RankLoad{{0, float64(i), 0}}, now)
			}
		}
	}
	e, err = tab.Release(g.Claim, Ambiguous, Reply{}, t0.Add(5*time.Second))
	if err != nil || e.Fate != FateDead {
		t.Fatal(e, err)
	}
	if err := tab.state.check(); err != nil {
		t.Fatal(err)
	}
}

package router

import (
	"errors"
	"testing"
	"time"
)

// twoBackends is a table at epoch 3 with two healthy backends and one sender of generation 7.
func twoBackends(t *testing.T, change func(*Fleet)) *Table {
	t.Helper()
	t0 := time.Unix(0, 0)
	tab := NewTable("u", nil, t0)
	f := Fleet{Epoch: 3, Leasing: LeasingOpen, Config: DefaultConfig(), Senders: []Sender{{Name: "train", Access: AccessOpen, MinGeneration: 7}},
		Members: []Member{{Name: "a", Incarnation: "a/1", URL: "http://a", Capacity: 4}, {Name: "b", Incarnation: "b/1", URL: "http://b", Capacity: 4}}}
	if change != nil {
		change(&f)
	}
	if err := tab.Apply(f, t0); err != nil {
		t.Fatal(err)
	}
	tab.Lead(1, Takeover{}, t0)
	for _, i := range []Incarnation{"a/1", "b/1"} {
		tab.Observe(Observation{Incarnation: i, Seq: 1, Health: Healthy, Version: "v1"}, t0)
	}
	return tab
}

func TestStandingIsWhatARequestNeedsToBeGranted(t *testing.T) {
	tab := twoBackends(t, nil)
	st := tab.Standing("train")
	r := Request{ID: "r", Session: "s", Sender: "train", SenderGeneration: st.Generation, Epoch: st.Epoch, Executions: 1}
	if _, err := tab.Acquire(r, time.Unix(0, 0)); err != nil {
		t.Error(err)
	}
	if st := tab.Standing("nobody"); st.Generation != 0 {
		t.Errorf("got generation %d for an unknown sender", st.Generation)
	}
}

func TestARefusedConnectionKeepsLeasesAwayUntilTheNextObservation(t *testing.T) {
	t0 := time.Unix(0, 0)
	tab := twoBackends(t, func(f *Fleet) { f.Published = "v1" })
	acquire := func(id RequestID) Grant {
		g, err := tab.Acquire(Request{ID: id, Session: "s", Sender: "train", SenderGeneration: 7, Epoch: 3, Executions: 1}, t0)
		if err != nil {
			t.Fatal(err)
		}
		return g
	}
	home := acquire("r1").Claim.Incarnation
	tab.ConnectionRefused(home, t0)
	if got := acquire("r2").Claim.Incarnation; got == home {
		t.Error("the session stays where nobody listens")
	}
	snap := tab.Snapshot(t0)
	for _, b := range snap.Backends {
		if b.Incarnation == home && (b.Outstanding != 1 || b.Admissible || b.Version != "") {
			t.Errorf("got %+v", b)
		}
	}
	tab.Observe(Observation{Incarnation: home, Seq: 2, Health: Healthy}, t0)
	if name, _, err := tab.Anyone(1); err != nil || name == BackendName(home[:1]) {
		t.Errorf("got %s, %v: it serves before its version was read anew", name, err)
	}
	tab.ConnectionRefused("unknown", t0)
	if err := tab.state.check(); err != nil {
		t.Error(err)
	}
}

func TestAnyoneGoesRoundTheAdmissible(t *testing.T) {
	tab := twoBackends(t, nil)
	met := map[string]int{}
	for turn := range uint64(10) {
		_, url, err := tab.Anyone(turn)
		if err != nil {
			t.Fatal(err)
		}
		met[url]++
	}
	if met["http://a"] != 5 || met["http://b"] != 5 {
		t.Errorf("got %v", met)
	}
	empty := twoBackends(t, func(f *Fleet) { f.Members = nil })
	if _, _, err := empty.Anyone(0); !errors.Is(err, ErrNoBackend) {
		t.Errorf("got %v", err)
	}
}

// unknownLoads has a fence wait for what earlier terms may have left on the backends.
func unknownLoads(f *Fleet) {
	for i := range f.Members {
		f.Members[i].Load = LoadUnknown
	}
	f.Senders = append(f.Senders, Sender{Name: "fenced", Access: AccessFenced})
}

func TestProspectTellsWhatPassesFromWhatNeedsARepair(t *testing.T) {
	cases := map[string]struct {
		change  func(*Fleet)
		observe Observation
		want    Prospect
	}{
		"all serve":                       {want: ProspectPassing},
		"engines are paused":              {change: func(f *Fleet) { f.Members[0].Engine, f.Members[1].Engine = EnginePaused, EnginePaused }, want: ProspectPassing},
		"engines are paused by another":   {observe: Observation{Health: SuspectedPaused}, want: ProspectPassing},
		"versions are not yet confirmed":  {change: func(f *Fleet) { f.Published = "v2" }, want: ProspectPassing},
		"all drain":                       {change: func(f *Fleet) { f.Members[0].Drain, f.Members[1].Drain = DrainMove, DrainMove }, want: ProspectPassing},
		"all are unhealthy":               {observe: Observation{Health: Unhealthy}, want: ProspectNone},
		"all refuse":                      {observe: Observation{Health: Refused}, want: ProspectNone},
		"all are unhealthy and settle":    {change: unknownLoads, observe: Observation{Health: Unhealthy}, want: ProspectNone},
		"all settle":                      {change: unknownLoads, want: ProspectPassing},
		"the controller excludes all":     {change: func(f *Fleet) { f.Members[0].Excluded, f.Members[1].Excluded = "PodNotReady", "PodNotReady" }, want: ProspectNone},
		"leasing is held":                 {change: func(f *Fleet) { f.Leasing, f.Members = LeasingHeld, nil }, want: ProspectPassing},
		"the sender is fenced":            {change: func(f *Fleet) { f.Senders[0].Access, f.Members = AccessFenced, nil }, want: ProspectPassing},
		"there are none":                  {change: func(f *Fleet) { f.Members = nil }, want: ProspectNone},
		"nobody says what they can carry": {change: func(f *Fleet) { f.Members[0].Capacity, f.Members[1].Capacity = 0, 0 }, want: ProspectNone},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			tab := twoBackends(t, c.change)
			for _, i := range []Incarnation{"a/1", "b/1"} {
				if c.observe.Health != "" {
					c.observe.Incarnation, c.observe.Seq = i, 2
					tab.Observe(c.observe, time.Unix(0, 0))
				}
			}
			if got := tab.Prospect("train", time.Unix(0, 0)); got != c.want {
				t.Errorf("got %d, want %d", got, c.want)
			}
		})
	}
}

func TestARouterThatMayNotGrantOffersNoProspect(t *testing.T) {
	tab := twoBackends(t, nil)
	tab.LeadUntil(time.Unix(1, 0), time.Unix(0, 0))
	if got := tab.Prospect("train", time.Unix(1, 0)); got != ProspectNone {
		t.Errorf("got %d", got)
	}
}

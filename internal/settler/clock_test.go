package settler

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/berthmaster/berthmaster/internal/router"
)

// full is a pool of two backends of 16 executions under an admission limit, the first of which is full: of
// a long lease of 15, and of one of the session busy. The session s is at home there.
type full struct {
	t     *testing.T
	table *router.Table
	long  router.Grant
}

func newFull(t *testing.T, busy router.SessionID, change func(*router.Config)) *full {
	t.Helper()
	fleet := router.Fleet{
		Epoch: 1, Leasing: router.LeasingOpen, Config: router.DefaultConfig(), Published: "v1",
		Senders: []router.Sender{{Name: "train", Access: router.AccessOpen}},
	}
	fleet.Config.AdmissionPercent, fleet.Config.TTL = 100, time.Hour
	change(&fleet.Config)
	for _, name := range []router.BackendName{"a", "b"} {
		fleet.Members = append(fleet.Members, router.Member{Name: name, Incarnation: router.Incarnation(name) + "/1", URL: "http://" + string(name) + ":1", Capacity: 16})
	}
	f := &full{t: t, table: router.NewTable("uid", nil, time.Now())}
	f.table.Lead(1, router.Takeover{}, time.Now())
	f.publish(fleet, 1)
	f.turn("earlier", 50_000)
	f.turn("s", 100)
	f.long = f.acquire("long", "long", 15)
	f.acquire("first", busy, 1)
	f.publish(fleet, 2)
	return f
}

// publish makes a version anew that every backend is confirmed on.
func (f *full) publish(fleet router.Fleet, seq uint64) {
	f.t.Helper()
	known := make([]router.Observation, 0, len(fleet.Members))
	for _, m := range fleet.Members {
		known = append(known, router.Observation{Incarnation: m.Incarnation, Seq: seq, Health: router.Healthy, Version: "v1", EngineTotal: -1})
	}
	unpublished := fleet
	unpublished.Published = ""
	for _, step := range []router.Fleet{unpublished, fleet} {
		if err := f.table.Apply(step, time.Now(), known...); err != nil {
			f.t.Fatal(err)
		}
	}
}

func (f *full) request(id router.RequestID, session router.SessionID, executions int64) router.Request {
	return router.Request{
		ID: id, Session: session, Sender: "train", Epoch: 1, Executions: executions, LastName: "a", LastIncarnation: "a/1",
	}
}

func (f *full) acquire(id router.RequestID, session router.SessionID, executions int64) router.Grant {
	f.t.Helper()
	g, err := f.table.Acquire(f.request(id, session, executions), time.Now())
	if err != nil || g.Claim.Backend != "a" {
		f.t.Fatalf("%s was given %+v, %v", id, g, err)
	}
	return g
}

// turn is a turn of a session on the first backend, with an output of so many tokens.
func (f *full) turn(session router.SessionID, output int64) {
	f.t.Helper()
	g := f.acquire(router.RequestID("turn-"+session), session, 1)
	if _, err := f.table.Release(g.Claim, router.Succeeded, router.Reply{OutputTokens: output}, time.Now()); err != nil {
		f.t.Fatal(err)
	}
}

// renew keeps the long lease, and helps nobody who waits.
func (f *full) renew() {
	if _, err := f.table.Renew(f.long.Claim, router.Started, time.Now()); err != nil {
		f.t.Error(err)
	}
}

// TestWhoeverWaitsForTimeAloneIsServed has nothing but a settler tell the real router of the time.
func TestWhoeverWaitsForTimeAloneIsServed(t *testing.T) {
	const minute = time.Minute
	for name, c := range map[string]struct {
		busy   router.SessionID
		change func(*router.Config)
	}{
		"until its cool-down is over": {"another", func(c *router.Config) {
			c.Mode, c.Moving.CoolDown, c.Moving.GapTurns = router.Rebalance, minute, 1
		}},
		"until its session's other lease is lost": {"s", func(c *router.Config) {
			c.AfterPublish, c.TTL = router.ResetHomes, minute
		}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFull(t, c.busy, c.change)
				time.AfterFunc(minute/2, f.renew)
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				go Run(ctx, f.table, Config{Transport: newNetwork(map[string]engine{"a:1": hung})})
				began := time.Now()
				patience, stop := context.WithTimeout(ctx, 10*time.Minute)
				defer stop()
				g, err := f.table.AcquireWait(patience, f.request("next", "s", 1), time.Now)
				if err != nil || g.Claim.Backend != "b" {
					t.Fatalf("given %+v, %v", g, err)
				}
				if took := time.Since(began); took < minute || took > minute+round {
					t.Errorf("served after %v, want %v", took, minute)
				}
			})
		})
	}
}

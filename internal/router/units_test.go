package router

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestEveryFieldOfTheConfigIsValidatedByName(t *testing.T) {
	for field, spoil := range map[string]func(*Config){
		"IdleTimeout":             func(c *Config) { c.IdleTimeout = 0 },
		"MaxSessions":             func(c *Config) { c.MaxSessions = 0 },
		"MaxRequests":             func(c *Config) { c.MaxRequests = -1 },
		"StartWindow":             func(c *Config) { c.StartWindow = 0 },
		"TTL":                     func(c *Config) { c.TTL = c.StartWindow - 1 },
		"Retention":               func(c *Config) { c.Retention = 0 },
		"Certainty":               func(c *Config) { c.Certainty = c.StartWindow },
		"GroupSlackPercent":       func(c *Config) { c.GroupSlackPercent = -1 },
		"AdmissionPercent":        func(c *Config) { c.AdmissionPercent = -1 },
		"Moving: gap of -1 turns": func(c *Config) { c.Mode, c.Moving.GapTurns = Rebalance, -1 },
		"Moving: gap of 20 turns": func(c *Config) { c.Mode, c.Moving.CoolDown = Rebalance, -time.Second },
	} {
		t.Run(field, func(t *testing.T) {
			c := DefaultConfig()
			if err := c.Validate(); err != nil {
				t.Fatalf("the defaults: %v", err)
			}
			spoil(&c)
			if err := c.Validate(); err == nil || !strings.HasPrefix(err.Error(), field) {
				t.Errorf("got %v, want an error that names %s", err, field)
			}
		})
	}
}

func TestALifeEndsOnceAndTakesNoIllegalTurn(t *testing.T) {
	legal := map[phase]map[event]phase{
		phaseActive:    {eventTerminal: phaseEnded, eventAmbiguous: phaseUncertain, eventCancelled: phaseCancelled, eventExpired: phaseLost, eventOrphaned: phaseOrphaned, eventGone: phaseEnded},
		phaseUncertain: {eventTerminal: phaseEnded, eventOrphaned: phaseOrphaned, eventGone: phaseEnded},
		phaseCancelled: {eventTerminal: phaseEnded, eventOrphaned: phaseOrphaned, eventGone: phaseEnded},
		phaseLost:      {eventTerminal: phaseEnded, eventAmbiguous: phaseLost, eventCancelled: phaseLost, eventOrphaned: phaseOrphaned, eventGone: phaseEnded},
		phaseOrphaned:  {eventTerminal: phaseEnded, eventAmbiguous: phaseOrphaned, eventCancelled: phaseOrphaned, eventOrphaned: phaseOrphaned, eventGone: phaseEnded},
		phaseEnded:     {},
	}
	for from, moves := range legal {
		for e := eventTerminal; e <= eventGone; e++ {
			to, ok := from.next(e)
			if want, legal := moves[e]; ok != legal || ok && to != want {
				t.Errorf("%v after event %d: %v, %v; want %v, %v", from, e, to, ok, want, legal)
			}
		}
	}
}

func TestARefusalIsKnownByItsReasonAndSaysWhenToComeBack(t *testing.T) {
	for reason, wait := range map[Reason]bool{
		ReasonSenderFenced: true, ReasonLeasingHeld: true, ReasonContended: true, ReasonNoBackend: true, ReasonNoLeader: true,
		ReasonInvalid: false, ReasonRequestConflict: false, ReasonLeaseEnded: false, ReasonExecutionLost: false, ReasonLeaseUnknown: false,
		ReasonStaleGeneration: false, ReasonStaleEpoch: false, ReasonPoolFailed: false, ReasonSenderUnknown: false,
	} {
		if r := refuse(reason, "", ""); (r.RetryAfter > 0) != wait || r.Error() != string(reason) {
			t.Errorf("%s: come back after %v, said as %q", reason, r.RetryAfter, r.Error())
		}
	}
}

func TestAStopwatchRunsOnlyWhileItIsOn(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var s stopwatch
		var now, want instant
		running := false
		t.Repeat(map[string]func(*rapid.T){
			"pass": func(t *rapid.T) {
				d := instant(rapid.IntRange(0, 1000).Draw(t, "for"))
				now += d
				if running {
					want += d
				}
			},
			"set": func(t *rapid.T) {
				running = rapid.Bool().Draw(t, "running")
				s.set(running, now)
			},
			"": func(t *rapid.T) {
				if got := s.read(now); got != want {
					t.Fatalf("it reads %d, has run %d", got, want)
				}
			},
		})
	})
}

func TestDeadlinesComeInOrderWhateverIsMovedOrDropped(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var d deadlines
		all := map[*lease]struct{}{}
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			l := &lease{place: -1}
			switch rapid.IntRange(0, 2).Draw(t, "step") {
			case 0:
				all[l] = struct{}{}
			default:
				if len(d) == 0 {
					continue
				}
				l = d[rapid.IntRange(0, len(d)-1).Draw(t, "which")]
			}
			if rapid.IntRange(0, 3).Draw(t, "drop") == 0 {
				d.drop(l)
				d.drop(l)
				delete(all, l)
				continue
			}
			l.expires = instant(rapid.IntRange(0, 20).Draw(t, "expires"))
			d.set(l)
		}
		var last instant
		for len(d) > 0 {
			first := d[0]
			if first.expires < last || first.place != 0 {
				t.Fatalf("%d comes after %d, from place %d", first.expires, last, first.place)
			}
			last = first.expires
			d.drop(first)
			delete(all, first)
		}
		if len(all) != 0 {
			t.Fatalf("%d are lost", len(all))
		}
	})
}

func TestAListIsTheSliceThatItStandsFor(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := list[waiter]{link: waiterLinks}
		var want []*waiter
		before := func(a, b *waiter) bool { return a.ticket < b.ticket }
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			switch {
			case len(want) > 0 && rapid.Bool().Draw(t, "remove"):
				i := rapid.IntRange(0, len(want)-1).Draw(t, "which")
				l.remove(want[i])
				l.remove(want[i])
				want = slices.Delete(want, i, i+1)
			default:
				w := &waiter{ticket: int64(rapid.IntRange(0, 9).Draw(t, "ticket"))}
				l.addOrdered(w, before)
				i := len(want)
				for i > 0 && before(w, want[i-1]) {
					i--
				}
				want = slices.Insert(want, i, w)
			}
			if got := slices.Collect(l.all); !slices.Equal(got, want) || l.n != len(want) {
				t.Fatalf("the list has %d elements in another order than the %d of the slice", l.n, len(want))
			}
		}
	})
}

func TestRidsAreOfOneLengthAndNeverTheSame(t *testing.T) {
	next := ridsFrom(rand.NewChaCha8([32]byte{1}))
	seen := map[RID]struct{}{}
	for range 10_000 {
		rid := next()
		if _, twice := seen[rid]; twice || len(rid) != 32 {
			t.Fatalf("rid %q", rid)
		}
		seen[rid] = struct{}{}
	}
}

func TestPoolsAreFoundByNameAndRemovedOnlyByTheirOwnTable(t *testing.T) {
	p, key := NewPools(), PoolKey{"ns", "pool"}
	if _, ok := p.Get(key); ok {
		t.Error("an empty registry has a pool")
	}
	old, recreated := NewTable("1", nil, worldEpoch), NewTable("2", nil, worldEpoch)
	p.Put(key, old)
	p.Put(key, recreated)
	p.Remove(key, old)
	if got, ok := p.Get(key); !ok || got != recreated {
		t.Error("removing an older table removed its successor")
	}
	if all := p.All(); len(all) != 1 || all[key] != recreated {
		t.Errorf("all: %v", all)
	}
	p.Remove(key, recreated)
	if len(p.All()) != 0 {
		t.Error("a removed pool is listed")
	}
}

func TestANoticeIsDeliveredAfterAChangeAndNoticesMerge(t *testing.T) {
	tab := small(t)
	drain := func() int {
		n := 0
		for {
			select {
			case <-tab.Changes():
				n++
			default:
				return n
			}
		}
	}
	drain()
	for range 3 {
		tab.Observe(Observation{Incarnation: "a/1", Seq: uint64(5 + drain()), Health: Unhealthy}, worldEpoch)
	}
	tab.Observe(Observation{Incarnation: "a/1", Seq: 20, Health: Healthy}, worldEpoch)
	tab.Observe(Observation{Incarnation: "a/1", Seq: 21, Health: Unhealthy}, worldEpoch)
	if n := drain(); n != 1 {
		t.Errorf("%d notices of two changes that nobody read, want 1", n)
	}
	tab.Tick(worldEpoch.Add(time.Second))
	if n := drain(); n != 0 {
		t.Errorf("%d notices when nothing changed", n)
	}
}

// What one client reports is bounded, but not what a million of them do.
func TestSumsOfReportedTokensDoNotOverflow(t *testing.T) {
	b := newBackend(Member{Name: "b", Capacity: 1}, 0)
	for range 1 << 24 {
		b.serve(1 << 40)
	}
	if b.served != servedMost {
		t.Errorf("served %d, want %d", b.served, int64(servedMost))
	}
	if perCapacity(servedMost, 1, servedMost-1, 1) <= 0 || perCapacity(servedMost, 2, servedMost, 1_000_000) <= 0 {
		t.Error("the most tokens do not compare exactly")
	}
	if got := share(servedMost, 3, 1_000_000); got != servedMost/1_000_000*3+servedMost%1_000_000*3/1_000_000 {
		t.Errorf("a share of the most tokens is %d", got)
	}
}

package access

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/berthmaster/berthmaster/internal/router"
)

func TestOneAddressLeavesPlacesToWaitForOthers(t *testing.T) {
	fill := func(r *room, who netip.Prefix) (n int) {
		for r.enter(who) {
			n++
		}
		return n
	}
	r := newRoom(8192)
	if n := fill(r, home("10.0.0.1")); n != 2731 {
		t.Errorf("one address alone has %d places, want a third of 8192", n)
	}
	r = newRoom(8192)
	for i := range 100 {
		if !r.enter(home(fmt.Sprint("10.0.1.", i))) {
			t.Fatalf("address %d has no place", i)
		}
	}
	if n := fill(r, home("2001:db8::1")); r.enter(home("2001:db8::2")) || !r.enter(home("2001:db8:0:1::1")) {
		t.Errorf("after %d of one address: another of its network has a place, or one of another network has none", n)
	}
}

func TestPlacesToWaitAreNeitherLostNorMadeUp(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		places := rapid.IntRange(1, 20).Draw(t, "places")
		r, held := newRoom(places), map[netip.Prefix]int{}
		address := func(t *rapid.T) netip.Prefix {
			return home(fmt.Sprint("10.0.0.", rapid.IntRange(0, 30).Draw(t, "address")))
		}
		t.Repeat(map[string]func(*rapid.T){
			"enter": func(t *rapid.T) {
				who := address(t)
				if r.enter(who) {
					held[who]++
				} else if r.free > 0 && held[who] == 0 {
					t.Fatal("there is no place for the first of an address, while one is free")
				}
			},
			"leave": func(t *rapid.T) {
				who := address(t)
				if held[who] == 0 {
					t.Skip("it has none")
				}
				r.leave(who)
				if held[who]--; held[who] == 0 {
					delete(held, who)
				}
			},
			"": func(t *rapid.T) {
				total := 0
				for who, n := range held {
					if total += n; r.waiting[who] != n {
						t.Fatalf("%s has %d places, want %d", who, r.waiting[who], n)
					}
				}
				if r.free != places-total || len(r.waiting) != len(held) {
					t.Fatalf("%d of %d are free while %d are taken", r.free, places, total)
				}
			},
		})
	})
}

// hung is an API server that answers nothing until it is let go.
type hung struct {
	authority
	mu    sync.Mutex
	let   chan struct{}
	asked int
}

func (h *hung) Identify(ctx context.Context, token string) (Identity, bool, error) {
	h.mu.Lock()
	h.asked++
	h.mu.Unlock()
	select {
	case <-h.let:
		who, ok := h.tokens[token]
		return who, ok, nil
	case <-ctx.Done():
		return Identity{}, false, ctx.Err()
	}
}

// behindHung is a gate before such a server, which asks two questions at once and has places for that many callers.
func behindHung(t *testing.T, places int) (*Gate, *hung) {
	t.Helper()
	_, a := newHouse(t)
	h := &hung{authority: authority{tokens: a.tokens, may: a.may}, let: make(chan struct{})}
	return New(Config{Reviewer: h, Pools: router.NewPools(), Limits: Limits{AtOnce: 2, Waiting: places}}), h
}

// from is a call with that token from that address.
func from(ctx context.Context, t *testing.T, address, token string) *http.Request {
	t.Helper()
	r := call(t, http.MethodPost, "Bearer "+token).WithContext(ctx)
	r.RemoteAddr = netip.AddrPortFrom(netip.MustParseAddr(address), 4321).String()
	return r
}

func TestCallersBeyondThePlacesOfTheirAddressAreRefusedAtOnceAndOthersWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, h := behindHung(t, 30)
		var all sync.WaitGroup
		began := time.Now()
		for i := range 50 { // of one network, each with a token and an address of its own
			all.Go(func() {
				address := netip.AddrFrom16([16]byte{0x20, 1, 0xd, 0xb8, 15: byte(i)}).String()
				_ = g.Authenticate(from(t.Context(), t, address, fmt.Sprint("made up ", i)))
			})
		}
		synctest.Wait()
		if free := g.tokens.room.free; free != 20 {
			t.Errorf("%d of 30 places are free, want 20", free)
		}
		err := g.Authenticate(from(t.Context(), t, "2001:db8::ffff", "made up too"))
		refusal, _ := errors.AsType[*router.Refusal](err)
		if refusal == nil || refusal.Reason != ReasonUnavailable || refusal.RetryAfter == 0 || !time.Now().Equal(began) {
			t.Errorf("one more of that network, after %v: %v", time.Since(began), err)
		}
		all.Go(func() {
			if err := g.Authenticate(from(t.Context(), t, "10.0.0.9", "t-judge")); err != nil {
				t.Errorf("a caller from elsewhere: %v", err)
			}
		})
		synctest.Wait()
		close(h.let)
		all.Wait()
		if free := g.tokens.room.free; free != 30 || len(g.tokens.turns.lines) != 0 {
			t.Errorf("in the end %d of 30 places are free, and %d lines are kept", free, len(g.tokens.turns.lines))
		}
	})
}

func TestWhoeverHangsUpLeavesNothingBehind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, h := behindHung(t, 300)
		ctx, hangUp := context.WithCancel(t.Context())
		var all sync.WaitGroup
		for i := range 50 {
			all.Go(func() { _ = g.Authenticate(from(ctx, t, "10.0.0.1", fmt.Sprint("made up ", i))) })
		}
		synctest.Wait()
		began := time.Now()
		hangUp()
		all.Wait()
		synctest.Wait()
		if n := len(g.tokens.known); n != 2 || g.tokens.room.free != 300 || len(g.tokens.turns.lines) != 0 || !time.Now().Equal(began) {
			t.Errorf("%v later %d questions, %d places and %d lines are left, want the 2 that are being asked", time.Since(began), n, 300-g.tokens.room.free, len(g.tokens.turns.lines))
		}
		close(h.let)
		synctest.Wait()
		if h.asked != 2 || len(g.tokens.known) != 2 {
			t.Errorf("asked %d times, %d answers are kept, want those of the 2", h.asked, len(g.tokens.known))
		}
		if err := g.Authenticate(from(t.Context(), t, "10.0.0.1", "t-judge")); err != nil {
			t.Errorf("the next caller: %v", err)
		}
	})
}

func TestAQuestionThatOneGaveUpIsAskedForTheNext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, h := behindHung(t, 300)
		var all sync.WaitGroup
		for i := range 2 { // who are asked about
			all.Go(func() { _ = g.Authenticate(from(t.Context(), t, "10.0.0.1", fmt.Sprint("made up ", i))) })
		}
		synctest.Wait()
		ctx, hangUp := context.WithCancel(t.Context())
		all.Go(func() { _ = g.Authenticate(from(ctx, t, "10.0.0.2", "t-judge")) })
		synctest.Wait()
		hangUp() // and somebody asks the same, perhaps before the question has left the line
		all.Go(func() {
			if err := g.Authenticate(from(t.Context(), t, "10.0.0.3", "t-judge")); err != nil {
				t.Errorf("the next: %v", err)
			}
		})
		synctest.Wait()
		close(h.let)
		all.Wait()
	})
}

// While a crowd keeps the API server from being asked, a right that has to be looked at again is not taken for
// granted; while it cannot be asked anyway, it is.
func TestACrowdProlongsNoRight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := &oracle{}
		m := newMemo[string](memory[string]{answers: 10}, newTurns(1), newRoom(1), time.Now, o.ask)
		ask := func(q string) error { _, err := m.get(t.Context(), somewhere, q, q); return err }
		if err := ask("q"); err != nil {
			t.Fatal(err)
		}
		pass(time.Minute)
		crowd := func(of string) {
			o.slow = time.Second
			go func() { _ = ask(of) }()
			synctest.Wait()
		}
		crowd("crowd")
		if err := ask("q"); !errors.Is(err, errCrowded) {
			t.Errorf("while there is no place: %v", err)
		}
		pass(time.Second)
		o.away.Store(true)
		if err := ask("q"); err != nil {
			t.Errorf("while the API server is away: %v", err)
		}
		crowd("another crowd")
		if err := ask("q"); err != nil {
			t.Errorf("while it is away and there is no place: %v", err)
		}
		if err := ask("another"); !errors.Is(err, errCrowded) {
			t.Errorf("what was never answered: %v", err)
		}
		pass(time.Second)
	})
}

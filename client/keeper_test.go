package client

import (
	"errors"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestALongGenerationIsRenewedAndItsStartIsTold(t *testing.T) {
	onStage(t, &router{}, map[string]http.HandlerFunc{"a": slow(590 * time.Second)}, func(t *testing.T, s stage) {
		if _, err := s.session.Generate(t.Context(), aTurn); err != nil {
			t.Fatal(err)
		}
		acquired, renewals := s.router.calls("acquire")[0].At, s.router.calls("renew")
		if len(renewals) != 15 {
			t.Errorf("%d renewals in 590 s of TTL 120 s", len(renewals))
		}
		for i, r := range renewals {
			if r.Body["started"] != true || r.Body["token"] != "secret" {
				t.Errorf("renewal %d: %v", i, r.Body)
			}
			if at, due := r.At.Sub(acquired), time.Duration(i)*40*time.Second; at < due || at > due+time.Second {
				t.Errorf("renewal %d came after %v, due %v", i, at, due)
			}
		}
	})
}

func TestARequestIsBegunWithinItsStartWindowOnly(t *testing.T) {
	late := map[string]any{"startSeconds": 0}
	cases := map[string]struct {
		renew func(asked, int) (int, any)
		want  error
	}{
		"a renewal opens the window": {nil, nil},
		"a renewal is refused": {func(a asked, _ int) (int, any) {
			if kindOf(a) == "renew" {
				return problem(409, "ExecutionLost")
			}
			return 0, nil
		}, ErrNotSent},
		"a renewal opens no window": {func(a asked, _ int) (int, any) {
			if kindOf(a) == "renew" {
				return 200, map[string]any{"ttlSeconds": 120, "startSeconds": 0}
			}
			return 0, nil
		}, ErrNotSent},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			onStage(t, &router{lease: late, override: c.renew}, map[string]http.HandlerFunc{"a": well}, func(t *testing.T, s stage) {
				_, err := s.session.Generate(t.Context(), aTurn)
				if !errors.Is(err, c.want) {
					t.Errorf("got %v, want %v", err, c.want)
				}
				if sent := len(s.engines.seen()) > 0; sent != (c.want == nil) {
					t.Errorf("the engine saw %+v", s.engines.seen())
				}
				first := s.router.calls("renew")[0]
				if first.Body["started"] != nil {
					t.Errorf("the first renewal said %v", first.Body)
				}
			})
		})
	}
}

func TestTheStartWindowCountsFromTheSendingOfTheAnsweredAcquire(t *testing.T) {
	slowRouter := func(a asked, n int) (int, any) {
		switch {
		case kindOf(a) == "acquire" && n == 0:
			return 500, errLost
		case kindOf(a) == "acquire":
			return 0, 5 * time.Second
		}
		return 0, nil
	}
	onStage(t, &router{override: slowRouter}, nil, func(t *testing.T, s stage) {
		lease, err := s.Acquire(t.Context(), AcquireRequest{RequestID: "r", SessionID: "s", Sender: "train", Epoch: 1})
		if err != nil {
			t.Fatal(err)
		}
		sent := s.router.calls("acquire")[1].At
		if !lease.MayStart(sent.Add(30*time.Second-1)) || lease.MayStart(sent.Add(30*time.Second)) {
			t.Errorf("the window ends %v after sending", lease.startBy.Sub(sent))
		}
	})
}

func TestTheFirstByteIsRefusedOutsideTheWindow(t *testing.T) {
	ours, theirs := net.Pipe()
	defer func() { _ = ours.Close(); _ = theirs.Close() }()
	conn := &oneWay{Conn: ours, mayStart: func() bool { return false }}
	if n, err := conn.Write([]byte("x")); n != 0 || !errors.Is(err, errWindowClosed) || conn.begun.Load() {
		t.Errorf("wrote %d, %v", n, err)
	}
}

func TestAWindowThatPassesAfterTheFirstByteStopsNothing(t *testing.T) {
	open := true
	conn := &oneWay{Conn: sink{}, mayStart: func() bool { return open }}
	for range 2 {
		if _, err := conn.Write([]byte("x")); err != nil {
			t.Error(err)
		}
		open = false
	}
	if !conn.begun.Load() {
		t.Error("two bytes were written")
	}
}

// sink takes every byte, or fails without taking one.
type sink struct {
	net.Conn
	err error
}

func (s sink) Write(b []byte) (int, error) {
	if s.err != nil {
		return 0, s.err
	}
	return len(b), nil
}

func TestAFailedFirstWriteCountsAsBegunOnlyWhereItMayHaveSentSomething(t *testing.T) {
	for name, c := range map[string]struct{ sealed, begun bool }{"in the clear": {false, false}, "under TLS": {true, true}} {
		t.Run(name, func(t *testing.T) {
			conn := &oneWay{Conn: sink{err: errLost}, mayStart: func() bool { return true }, sealed: c.sealed}
			if _, err := conn.Write([]byte("x")); !errors.Is(err, errLost) || conn.begun.Load() != c.begun {
				t.Errorf("got %v, begun %v", err, conn.begun.Load())
			}
		})
	}
}

// TestARequestHasBegunBeforeItsFirstByteCanBeAnswered has the reply judged while the write that
// caused it has not returned.
func TestARequestHasBegunBeforeItsFirstByteCanBeAnswered(t *testing.T) {
	var conn *oneWay
	conn = &oneWay{mayStart: func() bool { return true }, Conn: answering(func() {
		if !conn.begun.Load() {
			t.Error("a request that is being answered does not count as begun")
		}
	})}
	if _, err := conn.Write([]byte("x")); err != nil {
		t.Error(err)
	}
}

// answering takes every byte and calls back before it returns.
func answering(during func()) net.Conn { return answerer{during: during} }

type answerer struct {
	net.Conn
	during func()
}

func (a answerer) Write(b []byte) (int, error) {
	a.during()
	return len(b), nil
}

func TestRenewalsOutliveARouterThatIsAway(t *testing.T) {
	away := func(a asked, n int) (int, any) {
		if kindOf(a) == "renew" && n >= 1 && n < 10 {
			return 500, errLost
		}
		return 0, nil
	}
	onStage(t, &router{override: away}, map[string]http.HandlerFunc{"a": slow(10 * time.Minute)}, func(t *testing.T, s stage) {
		if _, err := s.session.Generate(t.Context(), aTurn); err != nil {
			t.Fatal(err)
		}
		if renewals := s.router.calls("renew"); len(renewals) < 20 {
			t.Errorf("only %d renewals", len(renewals))
		}
	})
}

func TestAStaleEpochCutsTheRequest(t *testing.T) {
	stale := func(a asked, n int) (int, any) {
		if kindOf(a) == "renew" && n == 1 {
			return 409, map[string]any{"reason": "StaleEpoch", "epoch": 9}
		}
		return 0, nil
	}
	onStage(t, &router{override: stale}, map[string]http.HandlerFunc{"a": hangs}, func(t *testing.T, s stage) {
		_, err := s.session.Generate(t.Context(), aTurn)
		if !errors.Is(err, ErrStaleEpoch) || !errors.Is(err, ErrCancelled) {
			t.Fatalf("got %v", err)
		}
		if refusal, ok := errors.AsType[*Problem](err); !ok || refusal.Epoch != 9 {
			t.Errorf("got %+v", refusal)
		}
	})
}

func TestAReplyCountsEvenThoughTheLeaseWasLost(t *testing.T) {
	lost := func(a asked, n int) (int, any) {
		if kindOf(a) == "renew" && n == 1 {
			return problem(409, "ExecutionLost")
		}
		return 0, nil
	}
	onStage(t, &router{override: lost}, map[string]http.HandlerFunc{"a": slow(5 * time.Minute)}, func(t *testing.T, s stage) {
		if _, err := s.session.Generate(t.Context(), aTurn); err != nil {
			t.Errorf("got %v", err)
		}
		if renewals := s.router.calls("renew"); len(renewals) != 2 {
			t.Errorf("%d renewals of a lost lease", len(renewals)-1)
		}
	})
}

func TestAMixedLeaseIsSaidToBe(t *testing.T) {
	mixed := func(a asked, n int) (int, any) {
		if kindOf(a) == "renew" {
			return 200, map[string]any{"ttlSeconds": 120, "startSeconds": 30, "mixed": n == 1, "state": map[string]any{
				"epoch": 4, "term": 2, "publishedVersion": "v8", "leasing": "Held", "access": "Open", "failed": false,
			}}
		}
		return 0, nil
	}
	onStage(t, &router{override: mixed}, map[string]http.HandlerFunc{"a": slow(5 * time.Minute)}, func(t *testing.T, s stage) {
		got, err := s.session.Generate(t.Context(), aTurn)
		if err != nil || !got.Mixed {
			t.Errorf("got %+v, %v", got, err)
		}
		want := PoolState{Epoch: 4, Term: 2, PublishedVersion: "v8", Leasing: "Held", Access: "Open"}
		if diff := cmp.Diff(want, got.Lease.PoolState()); diff != "" {
			t.Error(diff)
		}
	})
}

// A renewal that was cut off could be counted by a new leader after the old one took the release.
func TestARenewalUnderWayComesBeforeTheRelease(t *testing.T) {
	const reply = 100 * time.Millisecond
	for name, c := range map[string]struct{ renewal, released time.Duration }{
		"it is answered soon":       {500 * time.Millisecond, 500 * time.Millisecond},
		"it is answered soon after": {reply + lastRenewal - 1, reply + lastRenewal - 1},
		"it is not answered":        {time.Hour, reply + lastRenewal},
	} {
		t.Run(name, func(t *testing.T) {
			slowly := func(a asked, _ int) (int, any) {
				if kindOf(a) == "renew" {
					return 0, c.renewal
				}
				return 0, nil
			}
			onStage(t, &router{override: slowly}, map[string]http.HandlerFunc{"a": slow(reply)}, func(t *testing.T, s stage) {
				if _, err := s.session.Generate(t.Context(), aTurn); err != nil {
					t.Fatal(err)
				}
				renewed, released := s.router.calls("renew"), s.router.calls("release")
				if len(renewed) != 1 || len(released) != 1 {
					t.Fatalf("%d renewals, %d releases", len(renewed), len(released))
				}
				if after := released[0].At.Sub(renewed[0].At); after != c.released {
					t.Errorf("released %v after the renewal, want %v", after, c.released)
				}
			})
		})
	}
}

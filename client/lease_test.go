package client

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

var anAcquire = AcquireRequest{RequestID: "r1", SessionID: "s1", Sender: "train", SenderGeneration: 3, Epoch: 4, Executions: 2}

func TestEveryReasonOfTheRouterHasItsError(t *testing.T) {
	for i, want := range reasons() {
		t.Run(want.Error(), func(t *testing.T) {
			refuse := func(a asked, _ int) (int, any) { return problem(409, want.Error()) }
			onStage(t, &router{override: refuse}, nil, func(t *testing.T, s stage) {
				_, err := s.Acquire(t.Context(), anAcquire)
				for j, reason := range reasons() {
					if is := errors.Is(err, reason); is != (i == j) {
						t.Errorf("errors.Is(%v, %v) is %v", err, reason, is)
					}
				}
			})
		})
	}
}

func TestARefusalCarriesWhatTheRouterSaid(t *testing.T) {
	refuse := func(asked, int) (int, any) {
		return 409, map[string]any{
			"type": "about:blank", "title": "Lease ended", "detail": "it ended", "reason": "LeaseEnded", "field": "requestID",
			"outcome": "Ambiguous", "fate": "Dead", "epoch": 5, "retryAfter": "7",
		}
	}
	onStage(t, &router{override: refuse}, nil, func(t *testing.T, s stage) {
		_, err := s.Acquire(t.Context(), anAcquire)
		got, _ := errors.AsType[*Problem](err)
		want := &Problem{
			Type: "about:blank", Title: "Lease ended", Status: 409, Detail: "it ended", Reason: "LeaseEnded", Field: "requestID",
			Outcome: Ambiguous, Fate: FateDead, Epoch: 5, RetryAfter: 7 * time.Second,
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
	})
}

func TestLostAnswersAreAskedForAgainUnderTheSameID(t *testing.T) {
	losses := map[string]func(int) (int, any){
		"a cut connection":     func(int) (int, any) { return 500, errLost },
		"a bad gateway":        func(int) (int, any) { return 502, "<html>" },
		"no leader for now":    func(int) (int, any) { return problem(503, "NoLeader") },
		"a follower":           func(int) (int, any) { return problem(421, "NotLeader") },
		"an answer cut in two": func(int) (int, any) { return 201, "{" },
	}
	for name, lose := range losses {
		t.Run(name, func(t *testing.T) {
			flaky := func(a asked, n int) (int, any) {
				if n < 3 {
					return lose(n)
				}
				return 0, nil
			}
			onStage(t, &router{override: flaky}, nil, func(t *testing.T, s stage) {
				if _, err := s.Acquire(t.Context(), anAcquire); err != nil {
					t.Fatal(err)
				}
				calls := s.router.calls("")
				if len(calls) != 4 {
					t.Fatalf("%d calls", len(calls))
				}
				for _, call := range calls[1:] {
					if diff := cmp.Diff(calls[0].Body, call.Body); diff != "" {
						t.Error(diff)
					}
				}
			})
		})
	}
}

func TestGivingUpWithoutAnAnswerTellsTheRouter(t *testing.T) {
	silent := func(a asked, _ int) (int, any) {
		if kindOf(a) == "acquire" {
			return 500, errLost
		}
		return 0, nil
	}
	stop := map[string]func(ctx context.Context) (context.Context, context.CancelFunc){
		"after RetryFor": context.WithCancel,
		"when the caller gives up": func(ctx context.Context) (context.Context, context.CancelFunc) {
			return context.WithTimeout(ctx, time.Second)
		},
	}
	for name, within := range stop {
		t.Run(name, func(t *testing.T) {
			onStage(t, &router{override: silent}, nil, func(t *testing.T, s stage) {
				ctx, cancel := within(t.Context())
				defer cancel()
				began := time.Now()
				if _, err := s.Acquire(ctx, anAcquire); !errors.Is(err, ErrUnanswered) {
					t.Errorf("got %v", err)
				}
				if took := time.Since(began); took > time.Minute+15*time.Second {
					t.Errorf("it took %v", took)
				}
				want := []asked{{Method: "POST", Path: "/leases/r1/release", Body: map[string]any{
					"outcome": "NotSent", "sessionID": "s1", "sender": "train", "senderGeneration": 3.0, "epoch": 4.0, "executions": 2.0,
				}}}
				got := s.router.calls("release")
				for i := range got {
					got[i].At = time.Time{}
				}
				if diff := cmp.Diff(want, got); diff != "" {
					t.Error(diff)
				}
			})
		})
	}
}

func TestWaitingIsLeftToTheRouterAndEndsInTime(t *testing.T) {
	for _, reason := range []string{"SenderFenced", "LeasingHeld", "NoBackend", "Contended"} {
		t.Run(reason, func(t *testing.T) {
			refuse := func(a asked, _ int) (int, any) { return problem(423, reason) }
			onStage(t, &router{override: refuse}, nil, func(t *testing.T, s stage) {
				began := time.Now()
				if _, err := s.Acquire(t.Context(), anAcquire); err == nil || time.Since(began) != 0 {
					t.Errorf("without Wait: %v after %v", err, time.Since(began))
				}
				if got := s.router.calls("")[0].Body["waitSeconds"]; got != nil {
					t.Errorf("without Wait the router was asked to wait %v", got)
				}
				waiting := anAcquire
				waiting.Wait = 40 * time.Second
				_, err := s.Acquire(t.Context(), waiting)
				if took := time.Since(began); took != 40*time.Second || err == nil {
					t.Errorf("with Wait: %v after %v", err, took)
				}
				if got := s.router.calls("")[1].Body["waitSeconds"]; got != 30.0 {
					t.Errorf("the router was asked to wait %v", got)
				}
				if released := s.router.calls("release"); len(released) != 0 {
					t.Errorf("a refusal leaves nothing to release: %+v", released)
				}
			})
		})
	}
}

func TestAFenceThatOpensIsNotWaitedFurtherFor(t *testing.T) {
	fence := func(a asked, n int) (int, any) {
		switch {
		case kindOf(a) == "acquire" && n < 2:
			return problem(423, "SenderFenced")
		case kindOf(a) == "acquire":
			return 0, 3 * time.Second
		}
		return 0, nil
	}
	onStage(t, &router{override: fence}, nil, func(t *testing.T, s stage) {
		waiting := anAcquire
		waiting.Wait = time.Hour
		began := time.Now()
		if _, err := s.Acquire(t.Context(), waiting); err != nil || time.Since(began) > 5*time.Second {
			t.Errorf("%v after %v", err, time.Since(began))
		}
	})
}

func TestAWaiterComesBackAtOnceToTheRouterThatLetItWait(t *testing.T) {
	held := func(a asked, n int) (int, any) {
		if kindOf(a) != "acquire" || n >= 2 {
			return 0, nil
		}
		return 423, waited{30 * time.Second, map[string]any{"reason": "LeasingHeld", "retryAfter": "7"}}
	}
	onStage(t, &router{override: held}, nil, func(t *testing.T, s stage) {
		waiting := anAcquire
		waiting.Wait = time.Hour
		began := time.Now()
		if _, err := s.Acquire(t.Context(), waiting); err != nil || time.Since(began) != time.Minute {
			t.Errorf("%v after %v", err, time.Since(began))
		}
	})
}

func TestTheRoutersRetryAfterIsKept(t *testing.T) {
	for _, reason := range []string{"NoLeader", "LeasingHeld"} {
		t.Run(reason, func(t *testing.T) {
			busy := func(a asked, n int) (int, any) {
				if n == 0 {
					return 503, map[string]any{"reason": reason, "retryAfter": "7"}
				}
				return 0, nil
			}
			onStage(t, &router{override: busy}, nil, func(t *testing.T, s stage) {
				waiting := anAcquire
				waiting.Wait = time.Hour
				began := time.Now()
				if _, err := s.Acquire(t.Context(), waiting); err != nil || time.Since(began) != 7*time.Second {
					t.Errorf("%v after %v", err, time.Since(began))
				}
			})
		})
	}
}

func TestAnAnswerThatIsNoLeaseIsNotUsed(t *testing.T) {
	for field, bad := range map[string]any{"rid": "", "token": "", "backend": map[string]any{}, "ttlSeconds": 0} {
		t.Run(field, func(t *testing.T) {
			onStage(t, &router{lease: map[string]any{field: bad}}, nil, func(t *testing.T, s stage) {
				if lease, err := s.Acquire(t.Context(), anAcquire); err == nil {
					t.Errorf("got %+v", lease)
				}
			})
		})
	}
}

func TestAReleaseIsRepeatedAlike(t *testing.T) {
	flaky := func(a asked, n int) (int, any) {
		if kindOf(a) == "release" && n < 2 {
			return 500, errLost
		}
		return 0, nil
	}
	onStage(t, &router{override: flaky}, map[string]http.HandlerFunc{"a": well}, func(t *testing.T, s stage) {
		if _, err := s.session.Generate(t.Context(), aTurn); err != nil {
			t.Fatal(err)
		}
		released := s.router.calls("release")
		if len(released) != 3 {
			t.Fatalf("%d releases", len(released))
		}
		for _, r := range released[1:] {
			if diff := cmp.Diff(released[0].Body, r.Body); diff != "" {
				t.Error(diff)
			}
		}
	})
}

func TestNoTokenIsEverInAnError(t *testing.T) {
	refuse := func(a asked, _ int) (int, any) {
		if kindOf(a) == "acquire" {
			return 0, nil
		}
		return problem(403, "TokenInvalid")
	}
	onStage(t, &router{override: refuse}, map[string]http.HandlerFunc{"a": cutAfter("")}, func(t *testing.T, s stage) {
		_, err := s.session.Generate(t.Context(), aTurn)
		if failed, ok := errors.AsType[*OutcomeError](err); !ok || !errors.Is(err, ErrTokenInvalid) || failed.Fate != FatePending {
			t.Errorf("got %+v", err)
		}
		if strings.Contains(err.Error(), "secret") || strings.Contains(err.Error(), "bearer") {
			t.Errorf("got %v", err)
		}
	}, func(c *Config) { c.Token = func(context.Context) (string, error) { return "bearer-secret", nil } })
}

func TestATokenThatCannotBeHadIsNotAskedForAgain(t *testing.T) {
	broken := errors.New("no service account")
	onStage(t, &router{}, nil, func(t *testing.T, s stage) {
		began := time.Now()
		if _, err := s.Acquire(t.Context(), anAcquire); !errors.Is(err, broken) || time.Since(began) != 0 {
			t.Errorf("%v after %v", err, time.Since(began))
		}
	}, func(c *Config) { c.Token = func(context.Context) (string, error) { return "", broken } })
}

func TestAConfigurationIsRefusedByField(t *testing.T) {
	cases := map[string]struct {
		config Config
		field  string
	}{
		"no address":       {Config{}, "BaseURL"},
		"another scheme":   {Config{BaseURL: "grpc://x"}, "BaseURL"},
		"a query":          {Config{BaseURL: "http://x/?y"}, "BaseURL"},
		"user info":        {Config{BaseURL: "http://u:p@x/"}, "BaseURL"},
		"a dial timeout":   {Config{BaseURL: "http://x", DialTimeout: -1}, "DialTimeout"},
		"a call timeout":   {Config{BaseURL: "http://x", CallTimeout: -1}, "CallTimeout"},
		"a retry time":     {Config{BaseURL: "http://x", RetryFor: -1}, "RetryFor"},
		"a release grace":  {Config{BaseURL: "http://x", ReleaseGrace: -1}, "ReleaseGrace"},
		"attempts":         {Config{BaseURL: "http://x", Attempts: -1}, "Attempts"},
		"a bound of bytes": {Config{BaseURL: "http://x", MaxReplyBytes: -1}, "MaxReplyBytes"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := New(c.config)
			if refused, ok := errors.AsType[*ConfigError](err); !ok || refused.Field != c.field {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestTimeoutsAreKept(t *testing.T) {
	hung := func(asked, int) (int, any) { return 0, time.Hour }
	onStage(t, &router{override: hung}, nil, func(t *testing.T, s stage) {
		began := time.Now()
		if _, err := s.Acquire(t.Context(), anAcquire); !errors.Is(err, ErrUnanswered) {
			t.Errorf("got %v", err)
		}
		// Two calls of 4 s, 0.1 s between them, and none after 7 s; then 4 s of saying so.
		if took := time.Since(began); took != 12*time.Second+100*time.Millisecond {
			t.Errorf("it took %v", took)
		}
	}, func(c *Config) { c.CallTimeout, c.RetryFor = 4*time.Second, 7*time.Second })
}

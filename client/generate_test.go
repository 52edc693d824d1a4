package client

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

func TestGenerateLeasesPostsAndReleases(t *testing.T) {
	config := func(c *Config) {
		c.Random = strings.NewReader(strings.Repeat("\x01", 16))
		c.Token = func(context.Context) (string, error) { return "caller", nil }
		c.APIKey = func(context.Context) (string, error) { return "engine", nil }
	}
	onStage(t, &router{}, map[string]http.HandlerFunc{"a": well}, func(t *testing.T, s stage) {
		got, err := s.session.Generate(t.Context(), aTurn)
		if err != nil {
			t.Fatal(err)
		}
		if string(got.Body) != goodReply || got.WeightVersion != "v7" || got.OutputTokens != 12 || got.ReleaseErr != nil {
			t.Errorf("got %+v", got)
		}
		if err := s.session.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		const id = "r01010101010101010101010101010101"
		want := []asked{
			{Method: "POST", Path: "/leases", Body: map[string]any{
				"requestID": id, "sessionID": "s1", "sender": "train", "senderGeneration": 3.0, "epoch": 4.0, "groupID": "g1",
			}},
			{Method: "POST", Path: "/leases/" + id + "/release", Body: map[string]any{
				"token": "secret", "outcome": "Succeeded", "outputTokens": 12.0, "weightVersion": "v7",
			}},
			{Method: "DELETE", Path: "/sessions/s1?sender=train"},
		}
		calls := append(append(s.router.calls("acquire"), s.router.calls("release")...), s.router.calls("end")...)
		if diff := cmp.Diff(want, calls, cmpopts.IgnoreFields(asked{}, "At", "Auth")); diff != "" {
			t.Error(diff)
		}
		for _, call := range s.router.calls("") {
			if call.Auth != "Bearer caller" {
				t.Errorf("%s carried %q", call.Path, call.Auth)
			}
		}
		if diff := cmp.Diff([]posted{{"a", "/generate", "rid-of-" + id, "7", "Bearer engine"}}, s.engines.seen()); diff != "" {
			t.Error(diff)
		}
	}, config)
}

func TestAnOutcomeIsWhatTheEngineShowed(t *testing.T) {
	const abort = `{"text":"h","meta_info":{"finish_reason":{"type":"abort","message":"Aborted","status_code":null},"completion_tokens":3}}`
	cases := map[string]struct {
		engine http.HandlerFunc
		want   error // nil is success
	}{
		"a complete reply":                      {well, nil},
		"a batch":                               {reply(200, "["+goodReply+","+goodReply+"]"), nil},
		"an OpenAI reply":                       {reply(200, `{"choices":[{"finish_reason":"stop"}],"usage":{"completion_tokens":2}}`), nil},
		"the engine's abort":                    {reply(200, abort), ErrAborted},
		"an abort in a batch":                   {reply(200, "["+goodReply+","+abort+"]"), ErrAborted},
		"an OpenAI abort":                       {reply(200, `{"choices":[{"finish_reason":"abort"}]}`), ErrAborted},
		"an error in a reply of status 200":     {reply(200, `{"error":{"message":"boom"}}`), ErrAmbiguous},
		"status 200 and no JSON":                {reply(200, "oops"), ErrAmbiguous},
		"status 200 and nothing":                {reply(200, ""), ErrAmbiguous},
		"a validation error":                    {reply(400, `{"object":"error","message":"context too long","code":400}`), ErrRejected},
		"a duplicate rid":                       {reply(400, `{"error":{"message":"Duplicate request ID detected: x"}}`), ErrAmbiguous},
		"a 400 that does not say why":           {reply(400, ""), ErrAmbiguous},
		"401":                                   {reply(401, `{"error":"Unauthorized"}`), ErrRejected},
		"403":                                   {reply(403, `{"error":"Forbidden"}`), ErrRejected},
		"404":                                   {reply(404, `{"detail":"Not Found"}`), ErrRejected},
		"413":                                   {reply(413, ""), ErrRejected},
		"429":                                   {reply(429, ""), ErrRejected},
		"a full queue":                          {reply(503, `{"error":{"message":"The request queue is full."}}`), ErrRejected},
		"another 503":                           {reply(503, `{"error":{"message":"shutting down"}}`), ErrAmbiguous},
		"500":                                   {reply(500, `{"error":{"message":"boom"}}`), ErrAmbiguous},
		"a redirect":                            {http.RedirectHandler("http://b:30000/generate", http.StatusTemporaryRedirect).ServeHTTP, ErrAmbiguous},
		"no reply":                              {cutAfter(""), ErrAmbiguous},
		"half a status line":                    {cutAfter("HTTP/1.1 20"), ErrAmbiguous},
		"half a body":                           {cutAfter("HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\n{\"text\":"), ErrAmbiguous},
		"half a rejection":                      {cutAfter("HTTP/1.1 429 No\r\nContent-Length: 500\r\n\r\n{"), ErrAmbiguous},
		"a chunked body without its end":        {cutAfter("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n"), ErrAmbiguous},
		"no HTTP":                               {cutAfter("hello\r\n\r\n"), ErrAmbiguous},
		"a stream to its end":                   {events(goodReply, "[DONE]"), nil},
		"a stream cut before its end":           {events(goodReply), ErrAmbiguous},
		"an error inside a stream":              {events(goodReply, `{"error":{"message":"boom","code":400}}`, "[DONE]"), ErrAmbiguous},
		"an abort inside a stream":              {events(abort, "[DONE]"), ErrAborted},
		"a stream of something else":            {events("oops", "[DONE]"), ErrAmbiguous},
		"a stream in which an error came early": {events(`{"error":{"message":"boom"}}`, goodReply, "[DONE]"), ErrAmbiguous},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			onStage(t, &router{engines: []string{"a", "b"}}, map[string]http.HandlerFunc{"a": c.engine, "b": well}, func(t *testing.T, s stage) {
				_, err := s.session.Generate(t.Context(), aTurn)
				if !errors.Is(err, c.want) {
					t.Errorf("got %v, want %v", err, c.want)
				}
				if seen := s.engines.seen(); len(seen) != 1 {
					t.Errorf("the engines saw %d requests: %+v", len(seen), seen)
				}
				want := "Succeeded"
				if c.want != nil {
					want = c.want.Error()
				}
				if releases := s.router.calls("release"); len(releases) != 1 || releases[0].Body["outcome"] != want {
					t.Errorf("released %+v", releases)
				}
			})
		})
	}
}

func TestAClosedPortIsTriedAgainOnAnotherEngineUnderANewID(t *testing.T) {
	onStage(t, &router{engines: []string{"closed", "a"}}, map[string]http.HandlerFunc{"a": well}, func(t *testing.T, s stage) {
		if _, err := s.session.Generate(t.Context(), aTurn); err != nil {
			t.Fatal(err)
		}
		acquired, released := s.router.calls("acquire"), s.router.calls("release")
		if len(acquired) != 2 || acquired[0].Body["requestID"] == acquired[1].Body["requestID"] {
			t.Errorf("acquired %+v", acquired)
		}
		if len(released) != 2 || released[0].Body["outcome"] != "NotSent" || released[1].Body["outcome"] != "Succeeded" {
			t.Errorf("released %+v", released)
		}
		if got := len(s.engines.seen()); got != 1 {
			t.Errorf("%d requests were sent", got)
		}
	})
}

func TestNotSentIsTriedAgainWithinBounds(t *testing.T) {
	cases := map[string]struct {
		id       string
		attempts int
		want     int
	}{
		"the default": {"", 0, 5}, "three": {"", 3, 3}, "an id of the caller's is used once": {"mine", 0, 1},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			onStage(t, &router{engines: []string{"closed"}}, nil, func(t *testing.T, s stage) {
				turn := aTurn
				turn.RequestID = c.id
				_, err := s.session.Generate(t.Context(), turn)
				failed, ok := errors.AsType[*OutcomeError](err)
				if !ok || failed.Outcome != NotSent || !failed.MayRepeat() {
					t.Errorf("got %v", err)
				}
				if got := len(s.router.calls("acquire")); got != c.want {
					t.Errorf("%d attempts, want %d", got, c.want)
				}
			}, func(config *Config) { config.Attempts = c.attempts })
		})
	}
}

func TestACallerThatGivesUpIsReportedAsCancelled(t *testing.T) {
	onStage(t, &router{}, map[string]http.HandlerFunc{"a": hangs}, func(t *testing.T, s stage) {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		_, err := s.session.Generate(ctx, aTurn)
		failed, ok := errors.AsType[*OutcomeError](err)
		if !ok || !errors.Is(err, ErrCancelled) || !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("got %v", err)
		}
		if failed.ReleaseErr != nil || failed.Fate != FatePending || failed.MayRepeat() {
			t.Errorf("got %+v", failed)
		}
		if released := s.router.calls("release"); len(released) != 1 || released[0].Body["outcome"] != "Cancelled" {
			t.Errorf("released %+v", released)
		}
	})
}

func TestACancelledTurnMayBeRepeatedOnceItIsDead(t *testing.T) {
	fates := func(a asked, n int) (int, any) {
		if kindOf(a) == "release" && n >= 3 {
			return 200, map[string]any{"outcome": "Cancelled", "fate": "Dead"}
		}
		return 0, nil
	}
	onStage(t, &router{override: fates}, map[string]http.HandlerFunc{"a": hangs}, func(t *testing.T, s stage) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := s.session.Generate(ctx, aTurn)
		failed, _ := errors.AsType[*OutcomeError](err)
		ending, err := failed.Lease.AwaitFate(t.Context())
		if err != nil || ending.Fate != FateDead {
			t.Errorf("got %+v, %v", ending, err)
		}
		failed.Fate = ending.Fate
		if !failed.MayRepeat() {
			t.Error("a dead execution may be repeated")
		}
	})
}

func TestAnAmbiguousTurnWaitsForItsFate(t *testing.T) {
	for _, fate := range []Fate{FateDead, FateIsolated, FateFailed} {
		t.Run(string(fate), func(t *testing.T) {
			fates := func(a asked, n int) (int, any) {
				switch {
				case kindOf(a) != "release":
					return 0, nil
				case n == 0:
					return 0, time.Hour // the router waits for longer than the client does
				case n == 1:
					return problem(429, "Contended") // recorded, but there is no room to wait
				case n < 4:
					return 200, map[string]any{"outcome": "Ambiguous", "fate": "Pending"}
				}
				return 200, map[string]any{"outcome": "Ambiguous", "fate": fate}
			}
			onStage(t, &router{override: fates}, map[string]http.HandlerFunc{"a": cutAfter("")}, func(t *testing.T, s stage) {
				_, err := s.session.Generate(t.Context(), aTurn)
				failed, ok := errors.AsType[*OutcomeError](err)
				if !ok || !errors.Is(err, ErrAmbiguous) || failed.Fate != fate || failed.MayRepeat() != (fate == FateDead) {
					t.Errorf("got %+v", err)
				}
			})
		})
	}
}

func TestAResultSurvivesARouterThatIsGoneAtTheRelease(t *testing.T) {
	gone := func(a asked, _ int) (int, any) {
		if kindOf(a) == "release" {
			return 500, errLost
		}
		return 0, nil
	}
	onStage(t, &router{override: gone}, map[string]http.HandlerFunc{"a": well}, func(t *testing.T, s stage) {
		began := time.Now()
		got, err := s.session.Generate(t.Context(), aTurn)
		if err != nil || !errors.Is(got.ReleaseErr, ErrUnanswered) {
			t.Errorf("got %+v, %v", got, err)
		}
		if took := time.Since(began); took > 2*time.Minute {
			t.Errorf("the release went on for %v", took)
		}
	})
}

func TestAStreamIsHandedOnAndCanBeCut(t *testing.T) {
	one, two := `{"meta_info":{"completion_tokens":1}}`, `{"meta_info":{"completion_tokens":2,"weight_version":"v8"}}`
	onStage(t, &router{}, map[string]http.HandlerFunc{"a": events(one, two, "[DONE]")}, func(t *testing.T, s stage) {
		var got []string
		turn := aTurn
		turn.Each = func(event []byte) error { got = append(got, string(event)); return nil }
		result, err := s.session.Generate(t.Context(), turn)
		if err != nil || result.OutputTokens != 2 || result.WeightVersion != "v8" {
			t.Errorf("got %+v, %v", result, err)
		}
		if diff := cmp.Diff([]string{one, two}, got); diff != "" {
			t.Error(diff)
		}
		enough := errors.New("enough")
		turn.Each = func([]byte) error { return enough }
		if _, err := s.session.Generate(t.Context(), turn); !errors.Is(err, ErrCancelled) || !errors.Is(err, enough) {
			t.Errorf("got %v", err)
		}
	})
}

func TestAReplyBeyondTheBoundIsCut(t *testing.T) {
	for name, c := range map[string]struct {
		limit int64
		want  error
	}{"at the bound": {int64(len(goodReply)), nil}, "one byte short": {int64(len(goodReply)) - 1, ErrCancelled}} {
		t.Run(name, func(t *testing.T) {
			onStage(t, &router{}, map[string]http.HandlerFunc{"a": well}, func(t *testing.T, s stage) {
				if _, err := s.session.Generate(t.Context(), aTurn); !errors.Is(err, c.want) {
					t.Errorf("got %v, want %v", err, c.want)
				}
			}, func(config *Config) { config.MaxReplyBytes = c.limit })
		})
	}
}

func TestASessionAsksForTheEngineItWasOn(t *testing.T) {
	onStage(t, &router{}, map[string]http.HandlerFunc{"a": well}, func(t *testing.T, s stage) {
		for range 2 {
			if _, err := s.session.Generate(t.Context(), aTurn); err != nil {
				t.Fatal(err)
			}
		}
		want := map[string]any{"name": "a", "incarnation": "a/1"}
		calls := s.router.calls("acquire")
		if diff := cmp.Diff(want, calls[1].Body["lastBackend"]); diff != "" || calls[0].Body["lastBackend"] != nil {
			t.Errorf("%s %v", diff, calls[0].Body)
		}
	})
}

func TestARequestThatCannotBeEncodedCostsNoLease(t *testing.T) {
	onStage(t, &router{}, nil, func(t *testing.T, s stage) {
		if _, err := s.session.Generate(t.Context(), Request{Body: map[string]any{"x": make(chan int)}}); err == nil {
			t.Error("a channel was encoded")
		}
		if calls := s.router.calls(""); len(calls) != 0 {
			t.Errorf("asked %+v", calls)
		}
	})
}

func TestTheCallersBodyIsLeftAlone(t *testing.T) {
	body := map[string]any{"text": "hello", "rid": "mine"}
	encoded, err := encode(body)
	if err != nil {
		t.Fatal(err)
	}
	if got := string(withRID(encoded, "r\"1")); got != `{"rid":"r\"1","text":"hello"}` {
		t.Errorf("got %s", got)
	}
	if body["rid"] != "mine" {
		t.Errorf("the caller's body became %v", body)
	}
	empty, err := encode(nil)
	if err != nil || string(withRID(empty, "r")) != `{"rid":"r"}` {
		t.Errorf("got %s, %v", withRID(empty, "r"), err)
	}
}

// TestATruncatedReplyIsNeverASuccess cuts a reply and a stream after every byte.
func TestATruncatedReplyIsNeverASuccess(t *testing.T) {
	for n := range len(goodReply) {
		if got := judge(200, []byte(goodReply[:n])); got.outcome != Ambiguous {
			t.Errorf("after %d bytes: %s", n, got.outcome)
		}
	}
	stream := "data: " + goodReply + "\n\ndata: [DONE]\n"
	for n := range len(stream) {
		if got, err := readStream(bytes.NewReader([]byte(stream[:n])), nil); err == nil {
			t.Errorf("after %d bytes: %s", n, got.outcome)
		}
	}
	if got, err := readStream(strings.NewReader(stream), nil); err != nil || got.outcome != Succeeded {
		t.Errorf("whole: %+v, %v", got, err)
	}
}

func TestConcurrentTurnsOfOneSessionDoNotMix(t *testing.T) {
	onStage(t, &router{engines: []string{"a", "b"}}, map[string]http.HandlerFunc{"a": slow(time.Second), "b": slow(time.Second)}, func(t *testing.T, s stage) {
		errs := make(chan error)
		for range 20 {
			go func() {
				_, err := s.session.Generate(t.Context(), aTurn)
				errs <- err
			}()
		}
		for range 20 {
			if err := <-errs; err != nil {
				t.Error(err)
			}
		}
		rids := map[string]bool{}
		for _, p := range s.engines.seen() {
			rids[p.RID] = true
		}
		if len(rids) != 20 {
			t.Errorf("%d rids for 20 requests", len(rids))
		}
		synctest.Wait()
	})
}

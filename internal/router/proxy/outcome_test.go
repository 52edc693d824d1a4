package proxy_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/berthmaster/berthmaster/internal/router"
	"github.com/berthmaster/berthmaster/internal/router/proxy"
)

const ask1 = `{"text":"hello","sampling_params":{"max_new_tokens":3}}`

// wireEvent is what an engine does to the one generation that it gets, and what must come of it.
type wireEvent struct {
	engine  func(int64, net.Conn, *bufio.Reader, string) verdict
	outcome router.Outcome
	status  int
}

func wireEvents() map[string]wireEvent {
	reply := func(text string, v verdict, o router.Outcome, status int) wireEvent {
		return wireEvent{engine: replies(text, v), outcome: o, status: status}
	}
	out := map[string]wireEvent{
		"a plain reply":                          reply(plain(plainJSON), stayOpen, router.Succeeded, 200),
		"a plain reply and then the end":         reply(plain(plainJSON), hangUp, router.Succeeded, 200),
		"a plain reply in chunks":                reply(strings.Replace(streamed(plainJSON), "text/event-stream", "application/json", 1)+lastChunk, stayOpen, router.Succeeded, 200),
		"a stream":                               reply(streamed(eventText)+lastChunk, stayOpen, router.Succeeded, 200),
		"a stream in pieces":                     reply(streamed(strings.SplitAfter(eventText, "e")...)+lastChunk, stayOpen, router.Succeeded, 200),
		"a stream that ends with its connection": reply(strings.Replace(sized(200, "text/event-stream", eventText), "Content-Length", "X-Ignored", 1), hangUp, router.Succeeded, 200),
		"an abort of the engine":                 reply(plain(strings.Replace(plainJSON, `"length"`, `"abort"`, 1)), stayOpen, router.Aborted, 200),
		"an abort inside a batch":                reply(plain("["+plainJSON+","+strings.Replace(plainJSON, `"length"`, `"abort"`, 1)+"]"), stayOpen, router.Aborted, 200),
		"an abort inside a stream":               reply(streamed(strings.Replace(eventText, `"stop"`, `"abort"`, 1))+lastChunk, stayOpen, router.Aborted, 200),
		"an abort of a chat":                     reply(plain(`{"choices":[{"finish_reason":"abort"}]}`), stayOpen, router.Aborted, 200),
		"a plain error with 200":                 reply(plain(`{"object":"error","message":"no"}`), stayOpen, router.Ambiguous, 200),
		"an error inside a stream":               reply(streamed("data: {\"error\":{\"message\":\"no\",\"code\":400}}\n\n", "data: [DONE]\n\n")+lastChunk, stayOpen, router.Ambiguous, 200),
		"a stream without its mark":              reply(streamed(strings.TrimSuffix(eventText, "data: [DONE]\n\n"))+lastChunk, stayOpen, router.Ambiguous, 200),
		"no reply and the end":                   {engine: replies("", hangUp), outcome: router.Ambiguous, status: http.StatusBadGateway},
		"no reply and a reset":                   {engine: replies("", reset), outcome: router.Ambiguous, status: http.StatusBadGateway},
		"a reply that is not HTTP":               {engine: replies("hello\r\n\r\n", hangUp), outcome: router.Ambiguous, status: http.StatusBadGateway},
		"a status and half of its explanation":   {engine: replies(strings.TrimSuffix(sized(400, "application/json", `{"message":"bad"}`), "d\"}"), hangUp), outcome: router.Ambiguous, status: http.StatusBadGateway},
		"an endless explanation":                 {engine: replies(sized(400, "text/plain", strings.Repeat("x", 1<<20)), hangUp), outcome: router.Ambiguous, status: http.StatusBadGateway},
	}
	for status, o := range map[int]router.Outcome{
		401: router.Rejected, 403: router.Rejected, 404: router.Rejected, 413: router.Rejected, 429: router.Rejected, 400: router.Rejected,
		301: router.Ambiguous, 405: router.Ambiguous, 408: router.Ambiguous, 409: router.Ambiguous, 422: router.Ambiguous,
		500: router.Ambiguous, 501: router.Ambiguous, 502: router.Ambiguous, 503: router.Ambiguous, 504: router.Ambiguous,
	} {
		out[fmt.Sprintf("status %d", status)] = reply(sized(status, "application/json", `{"message":"no"}`), stayOpen, o, status)
	}
	out["a full queue"] = reply(sized(503, "application/json", `{"object":"error","message":"The request queue is full."}`), stayOpen, router.Rejected, 503)
	out["a rid in use"] = reply(sized(400, "application/json", `{"error":{"message":"Duplicate request ID detected: r"}}`), stayOpen, router.Ambiguous, 400)
	return out
}

func TestEveryWireEventHasItsOutcomeAndOneExecutionAtMost(t *testing.T) {
	for name, e := range wireEvents() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			engine := script(t, e.engine)
			g := newRig(t, proxy.Config{}, engine.url)
			status, text, head := g.send(t.Context(), "/generate", ask1)
			if status != e.status {
				t.Errorf("status %d, want %d: %s", status, e.status, text)
			}
			if n := g.released(e.outcome); n != 1 {
				t.Errorf("released %v, want one %s", g.snapshot().Totals.Released, e.outcome)
			}
			if n := engine.generated.Load(); n != 1 {
				t.Errorf("the engine was asked %d times", n)
			}
			if n := g.counted(); n != 0 {
				t.Errorf("%d counted though the client was answered", n)
			}
			// Whatever was ambiguous is Dead by now, so a repetition is safe.
			if retry := head.Get("X-Should-Retry"); retry != "" {
				t.Errorf("the client is told not to repeat: %q", retry)
			}
			eventually(t, "it is measured", func() bool {
				return g.proxy.Snapshot()[rigKey].Ended[proxy.Label(e.outcome)].Requests == 1
			})
		})
	}
}

func TestAResetAfterAnyByteOfTheReplyIsNeverReplayed(t *testing.T) {
	for name, whole := range map[string]string{"plain": plain(plainJSON), "stream": streamed(strings.SplitAfter(eventText, "\n\n")...) + lastChunk} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			k := 0
			engine := script(t, func(_ int64, c net.Conn, _ *bufio.Reader, _ string) verdict {
				_, _ = io.WriteString(c, whole[:k])
				return hangUp
			})
			g := newRig(t, proxy.Config{}, engine.url)
			done := strings.Index(whole, "[DONE]\n") + len("[DONE]\n")
			if name == "plain" {
				done = len(whole)
			}
			for ; k < len(whole); k += 3 {
				before, was := engine.generated.Load(), g.snapshot().Totals.Released
				status, text := g.post("/generate", ask1)
				if n := engine.generated.Load() - before; n != 1 {
					t.Fatalf("cut after %d bytes: the engine was asked %d times", k, n)
				}
				want := router.Ambiguous
				if k >= done {
					want = router.Succeeded
				}
				if n := g.released(want) - was[want]; n != 1 {
					t.Fatalf("cut after %d bytes: released %v, want one more %s (answer %d %q)", k, g.snapshot().Totals.Released, want, status, text)
				}
				if want == router.Ambiguous && status == 200 && !strings.Contains(text, "!") {
					t.Fatalf("cut after %d bytes: the client takes %q for a whole reply", k, text)
				}
			}
		})
	}
}

func TestAResetAfterAnyByteOfTheRequestIsNeverReplayed(t *testing.T) {
	large := `{"text":"` + strings.Repeat("x", 4<<20) + `"}`
	for name, c := range map[string]struct {
		body string
		at   []int
	}{
		"small": {ask1, []int{7, 20, 60, 100, 150, 200}},
		"large": {large, []int{7, 1 << 10, 1 << 16, 1 << 20, 4 << 20}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			k := 0
			engine := scriptRaw(t, func(_ net.Conn, r *bufio.Reader) verdict {
				_, _ = io.CopyN(io.Discard, r, int64(k))
				return reset
			})
			g := newRig(t, proxy.Config{}, engine.url)
			for i, n := range c.at {
				k = n
				if status, text := g.post("/generate", c.body); status != http.StatusBadGateway {
					t.Fatalf("reset after %d bytes: got %d %s", k, status, text)
				}
				if n := engine.generated.Load(); n != int64(i+1) || g.released(router.Ambiguous) != n {
					t.Fatalf("reset after %d bytes: sent %d times, released %v", k, n, g.snapshot().Totals.Released)
				}
			}
		})
	}
}

func TestOneConnectionServesOneRequestAfterTheOther(t *testing.T) {
	for name, reply := range map[string]string{"plain": plain(plainJSON), "stream": streamed(eventText) + lastChunk} {
		t.Run(name, func(t *testing.T) {
			engine := script(t, replies(reply, stayOpen))
			g := newRig(t, proxy.Config{}, engine.url)
			for range 5 {
				g.post("/generate", ask1)
			}
			if n := engine.accepted.Load(); n != 1 {
				t.Errorf("%d connections for 5 requests", n)
			}
		})
	}
}

func TestARefusedConnectionIsTriedOnceElsewhere(t *testing.T) {
	engine := script(t, replies(plain(plainJSON), stayOpen))
	g := newRig(t, proxy.Config{}, closedPort(t), engine.url)
	for i := range 4 {
		if status, text := g.post("/generate", ask1, "X-Session-ID", fmt.Sprint("s", i)); status != 200 {
			t.Fatalf("got %d %s", status, text)
		}
	}
	totals := g.snapshot().Totals.Released
	if totals[router.Succeeded] != 4 || totals[router.NotSent] > 1 || engine.generated.Load() != 4 {
		t.Errorf("released %v, asked %d times", totals, engine.generated.Load())
	}
}

func TestWhoeverProbesTheEngineIsToldOfARefusedConnection(t *testing.T) {
	engine := script(t, replies(plain(plainJSON), stayOpen))
	told := make(chan string, 100)
	var g *rig
	g = newRig(t, proxy.Config{Refused: func(pool router.PoolUID, incarnation router.Incarnation) {
		told <- fmt.Sprint(pool, " ", incarnation, " ", g.backend("b0").Health)
	}}, closedPort(t), engine.url)
	for i := range 4 {
		if status, text := g.post("/generate", ask1, "X-Session-ID", fmt.Sprint("s", i)); status != 200 {
			t.Fatalf("got %d %s", status, text)
		}
	}
	if n := len(told); n != 1 {
		t.Fatalf("told %d times, want once: the table sends nobody else there", n)
	}
	if got := <-told; got != "uid b0/1 Refused" {
		t.Errorf("told of %q, which the table is to know by then", got)
	}
}

func TestNobodyListeningIsAnsweredInOneWord(t *testing.T) {
	g := newRig(t, proxy.Config{}, closedPort(t), closedPort(t), closedPort(t))
	status, text, head := g.send(t.Context(), "/generate", ask1)
	if status != 503 || !strings.Contains(text, `"reason":"EngineUnreachable"`) || head.Get("Retry-After") == "" {
		t.Errorf("got %d %v %s", status, head, text)
	}
	if n := g.released(router.NotSent); n != 2 {
		t.Errorf("%d attempts, want 2", n)
	}
	_, _ = g.post("/generate", ask1)
	if status, text = g.post("/generate", ask1); status != 503 || !strings.Contains(text, `"reason":"NoBackend"`) {
		t.Errorf("after every backend refused: %d %s", status, text)
	}
	if n := g.counted(); n != 0 {
		t.Errorf("%d counted", n)
	}
}

func TestAnIdleConnectionClosedAsTheRequestIsWrittenIsAmbiguous(t *testing.T) {
	engine := script(t, func(n int64, c net.Conn, r *bufio.Reader, _ string) verdict {
		_, _ = io.WriteString(c, plain(plainJSON))
		if n == 1 {
			_, _ = r.Peek(1) // the first byte of the next request
			return reset
		}
		return stayOpen
	})
	g := newRig(t, proxy.Config{}, engine.url)
	if status, _ := g.post("/generate", ask1); status != 200 {
		t.Fatalf("got %d", status)
	}
	status, text := g.post("/generate", ask1)
	if status != http.StatusBadGateway || !strings.Contains(text, `"fate":"Dead"`) {
		t.Errorf("got %d %s", status, text)
	}
	if n := g.released(router.Ambiguous); n != 1 || engine.generated.Load() != 1 {
		t.Errorf("released %v, engine read %d", g.snapshot().Totals.Released, engine.generated.Load())
	}
}

func TestAnAmbiguousEndIsAnsweredWhenItsFateIsKnown(t *testing.T) {
	engine := script(t, replies(sized(500, "application/json", `{"error":{"message":"boom"}}`), hangUp))
	g := newRig(t, proxy.Config{}, engine.url)
	g.fleet.Config.Certainty = 0 // the strict form: nothing is made certain, the pool fails
	g.apply()
	answered := make(chan string, 1)
	go func() {
		status, text, head := g.send(context.Background(), "/generate", ask1)
		answered <- fmt.Sprint(status, " ", head.Get("X-Should-Retry"), " ", text)
	}()
	eventually(t, "the pool fails", func() bool { return g.snapshot().Failure != nil })
	select {
	case a := <-answered:
		t.Fatalf("answered %s before the failure was in status", a)
	default:
	}
	g.table.FailureRecorded(g.snapshot().Failure.Request, g.now())
	if a := <-answered; !strings.HasPrefix(a, "500 false ") || !strings.Contains(a, "boom") {
		t.Errorf("got %s", a)
	}
	status, text, head := g.send(t.Context(), "/generate", ask1)
	if status != 409 || !strings.Contains(text, "PoolFailed") || head.Get("X-Should-Retry") != "false" {
		t.Errorf("a failed pool answers %d %s", status, text)
	}
}

func TestAClientGoneAtAnyByteOfTheReplyIsCancelledAndCountedUntilGone(t *testing.T) {
	whole := streamed(strings.SplitAfter(eventText, "\n\n")...)
	start := strings.Index(whole, "\r\n\r\n") + 4
	end := strings.Index(whole, "data: [DONE]")
	for k := start; k < end; k += 7 {
		t.Run(fmt.Sprintf("%d bytes", k-start), func(t *testing.T) {
			t.Parallel()
			gone := make(chan struct{})
			engine := script(t, func(_ int64, c net.Conn, r *bufio.Reader, _ string) verdict {
				_, _ = io.WriteString(c, whole[:k])
				_, _ = r.ReadByte()
				close(gone)
				return hangUp
			})
			g := newRig(t, proxy.Config{}, engine.url)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			req, _ := http.NewRequestWithContext(ctx, http.MethodPost, g.base+"/generate", strings.NewReader(ask1))
			resp, err := http.DefaultClient.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			if n := g.counted(); n != 1 {
				t.Errorf("%d counted while it runs", n)
			}
			cancel()
			select {
			case <-gone:
			case <-time.After(time.Minute):
				t.Fatal("the engine was not told")
			}
			eventually(t, "it is released as Cancelled", func() bool { return g.released(router.Cancelled) == 1 })
			if f := g.snapshot().Failure; f != nil {
				t.Error("a client that left failed the pool")
			}
		})
	}
}

func TestAClientGoneBeforeTheReplyIsCancelled(t *testing.T) {
	began := make(chan struct{})
	engine := script(t, func(_ int64, _ net.Conn, r *bufio.Reader, _ string) verdict {
		close(began)
		_, _ = r.ReadByte()
		return hangUp
	})
	g := newRig(t, proxy.Config{}, engine.url)
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-began; cancel() }()
	if status, _, _ := g.send(ctx, "/generate", ask1); status != 0 {
		t.Errorf("got %d", status)
	}
	eventually(t, "it is released as Cancelled", func() bool { return g.released(router.Cancelled) == 1 })
}

func TestAClientGoneAtAnyByteOfItsRequestLeavesNothingBehind(t *testing.T) {
	engine := script(t, replies(plain(plainJSON), stayOpen))
	g := newRig(t, proxy.Config{}, engine.url)
	host, path, _ := strings.Cut(strings.TrimPrefix(g.base, "http://"), "/")
	whole := fmt.Sprintf("POST /%s/generate HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%s", path, len(ask1), ask1)
	for k := 1; k < len(whole); k += 5 {
		c, err := net.Dial("tcp", host)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.WriteString(c, whole[:k])
		if err := c.(*net.TCPConn).CloseWrite(); err != nil {
			t.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, c) // until the proxy has seen the end, too
		c.Close()
	}
	snap := g.snapshot()
	if snap.Totals.Grants != 0 || snap.Requests != 0 || snap.Sessions != 0 || engine.generated.Load() != 0 {
		t.Errorf("%d grants, %d records, %d sessions, %d generations", snap.Totals.Grants, snap.Requests, snap.Sessions, engine.generated.Load())
	}
}

package proxy_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/berthmaster/berthmaster/internal/enginesim"
	"github.com/berthmaster/berthmaster/internal/enginesim/execlog"
	"github.com/berthmaster/berthmaster/internal/router"
	"github.com/berthmaster/berthmaster/internal/router/proxy"
	"github.com/berthmaster/berthmaster/internal/router/server"
)

// generation asks for so many tokens.
func generation(path string, tokens int, more string) string {
	switch path {
	case "/generate":
		return fmt.Sprintf(`{"text":"hello","sampling_params":{"max_new_tokens":%d,"ignore_eos":true}%s}`, tokens, more)
	case "/v1/completions":
		return fmt.Sprintf(`{"model":"m","prompt":"hello","max_tokens":%d,"ignore_eos":true%s}`, tokens, more)
	default:
		return fmt.Sprintf(`{"model":"m","messages":[{"role":"user","content":"hello"}],"max_tokens":%d,"ignore_eos":true%s}`, tokens, more)
	}
}

func TestEachRouteGeneratesOncePlainAndStreaming(t *testing.T) {
	url, executions := simulated(t, enginesim.Config{WeightVersion: "v1"})
	g := newRig(t, proxy.Config{}, url)
	want := 0
	for _, path := range []string{"/generate", "/v1/completions", "/v1/chat/completions"} {
		for _, more := range []string{"", `,"stream":true,"stream_options":{"include_usage":true}`} {
			want++
			if path == "/generate" {
				more = strings.Replace(more, `,"stream_options":{"include_usage":true}`, "", 1)
			}
			status, text := g.post(path, generation(path, 20, more), "X-Session-ID", "s", "X-Turn", fmt.Sprint(want))
			if status != 200 || strings.Contains(text, "!") || more != "" && !strings.HasSuffix(text, "data: [DONE]\n\n") {
				t.Errorf("%s%s: got %d %.200s", path, more, status, text)
			}
		}
	}
	if n := g.released(router.Succeeded); int(n) != want || len(executions.events(execlog.Start)) != want {
		t.Errorf("%d succeeded, %d executed", n, len(executions.events(execlog.Start)))
	}
	if n := g.snapshot().Totals.OutputTokens; n != int64(want)*20 {
		t.Errorf("%d output tokens learnt, want %d", n, want*20)
	}
}

func TestAStreamIsNotHeldBack(t *testing.T) {
	url, _ := simulated(t, enginesim.Config{Speed: 1, Faults: nil})
	g := newRig(t, proxy.Config{}, url)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	req, _ := http.NewRequestWithContext(ctx, http.MethodPost, g.base+"/generate", strings.NewReader(generation("/generate", 50_000, `,"stream":true`)))
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	// The generation takes minutes; its first events must be here long before its end.
	lines := bufio.NewReader(resp.Body)
	for range 4 {
		if _, err := lines.ReadString('\n'); err != nil {
			t.Fatal(err)
		}
	}
	if n := g.counted(); n != 1 {
		t.Errorf("%d counted", n)
	}
}

func TestTheServersOwnTimeLimitsEndNoExchange(t *testing.T) {
	const limit = 30 * time.Millisecond
	for name, reply := range map[string][2]string{
		"a stream": {streamed("data: {}\n\n"), strings.TrimPrefix(streamed("data: [DONE]\n\n"), streamed()) + lastChunk},
		"silence":  {"", plain(plainJSON)},
		"an error": {"", sized(400, "application/json", "{}")},
	} {
		t.Run(name, func(t *testing.T) {
			engine := script(t, func(_ int64, c net.Conn, _ *bufio.Reader, _ string) verdict {
				fmt.Fprint(c, reply[0])
				<-time.After(5 * limit) // the limits are past, whatever the machine
				fmt.Fprint(c, reply[1])
				return stayOpen
			})
			g := newRig(t, proxy.Config{}, engine.url)
			srv := httptest.NewUnstartedServer(g.proxy)
			srv.Config.ReadTimeout, srv.Config.WriteTimeout = limit, limit
			srv.Start()
			defer srv.Close()
			// One request after the other on one connection, held before it is granted.
			for range 2 {
				g.fleet.Leasing = router.LeasingHeld
				g.apply()
				time.AfterFunc(3*limit, func() { g.fleet.Leasing = router.LeasingOpen; g.apply() })
				url := srv.URL + strings.TrimPrefix(g.base, g.base[:strings.Index(g.base, "/v1alpha1")]) + "/generate"
				resp, err := srv.Client().Post(url, "application/json", strings.NewReader(ask1))
				if err != nil {
					t.Fatal(err)
				}
				text, err := io.ReadAll(resp.Body)
				if resp.Body.Close(); err != nil || len(text) == 0 {
					t.Errorf("got %q, %v", text, err)
				}
			}
			if n := g.released(router.Succeeded) + g.released(router.Rejected); n != 2 {
				t.Errorf("released %v", g.snapshot().Totals.Released)
			}
		})
	}
}

func TestAClientThatLeavesEndsItsExecutionAndIsCountedUntilThen(t *testing.T) {
	url, executions := simulated(t, enginesim.Config{Speed: 1})
	g := newRig(t, proxy.Config{}, url)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	req, _ := http.NewRequestWithContext(ctx, http.MethodPost, g.base+"/generate", strings.NewReader(generation("/generate", 50_000, `,"stream":true`)))
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if _, err := bufio.NewReader(resp.Body).ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	cancel()
	eventually(t, "the engine has aborted", func() bool { return len(executions.events(execlog.Finish)) == 1 })
	if o := executions.events(execlog.Finish)[0].Outcome; o != execlog.Aborted {
		t.Errorf("it ended %s", o)
	}
	eventually(t, "it is released as Cancelled", func() bool { return g.released(router.Cancelled) == 1 })
	if s := g.snapshot(); s.Failure != nil {
		t.Error("the pool failed")
	}
}

func TestTheRoutersAbortFindsTheExecution(t *testing.T) {
	for name, more := range map[string]string{"one": "", "samples": `,"n":3`} {
		t.Run(name, func(t *testing.T) {
			url, executions := simulated(t, enginesim.Config{Speed: 1})
			g := newRig(t, proxy.Config{}, url)
			answered := make(chan string, 1)
			go func() {
				_, text := g.post("/v1/completions", generation("/v1/completions", 50_000, more))
				answered <- text
			}()
			eventually(t, "it runs", func() bool { return len(executions.events(execlog.Start)) > 0 })
			rid := executions.events(execlog.Start)[0].RID
			if status, _ := ask(t.Context(), url+"/abort_request", fmt.Sprintf(`{"rid":%q}`, rid)); status != 200 {
				t.Fatal(status)
			}
			if text := <-answered; !strings.Contains(text, `"abort"`) {
				t.Errorf("got %.300s", text)
			}
			if n := g.released(router.Aborted); n != 1 || len(rid) < 32 {
				t.Errorf("released %v, rid %q", g.snapshot().Totals.Released, rid)
			}
		})
	}
}

func TestAResetMidFlightIsAmbiguousAndGeneratesOnce(t *testing.T) {
	reset := []enginesim.Fault{{Kind: enginesim.FaultReset, Paths: []string{"/generate"}, Bytes: 10}}
	a, loga := simulated(t, enginesim.Config{Name: "a", Faults: reset})
	b, logb := simulated(t, enginesim.Config{Name: "b", Faults: reset})
	g := newRig(t, proxy.Config{}, a, b)
	status, text := g.post("/generate", generation("/generate", 20, ""), "X-Session-ID", "s", "X-Turn", "1")
	if status == 200 && !strings.Contains(text, "!") {
		t.Errorf("got %d %s", status, text)
	}
	if n := len(loga.events(execlog.Start)) + len(logb.events(execlog.Start)); n != 1 {
		t.Errorf("%d generations", n)
	}
	if n := g.released(router.Ambiguous); n != 1 {
		t.Errorf("released %v", g.snapshot().Totals.Released)
	}
}

func TestARetryingClientHeldForAMinuteGeneratesOnce(t *testing.T) {
	url, executions := simulated(t, enginesim.Config{})
	g := newRig(t, proxy.Config{}, url)
	g.fleet.Leasing = router.LeasingHeld
	g.apply()
	// The client repeats whatever fails, three times, to the same address and without an id.
	tries := make(chan int, 1)
	go func() {
		for n := 1; ; n++ {
			status, _ := g.post("/generate", generation("/generate", 5, ""), "X-Session-ID", "s", "X-Turn", "1")
			if status == 200 || n == 3 {
				tries <- n
				return
			}
		}
	}()
	eventually(t, "it is held", func() bool { return g.snapshot().Waiting == 1 })
	g.ahead.Add(int64(time.Minute))
	g.table.Tick(g.now())
	g.fleet.Leasing = router.LeasingOpen
	g.apply()
	if n := <-tries; n != 1 || len(executions.events(execlog.Start)) != 1 {
		t.Errorf("%d tries, %d generations", n, len(executions.events(execlog.Start)))
	}
}

func TestABackendThatRejectsForEverIsHeardEachTimeAndNeverRepeated(t *testing.T) {
	url, executions := simulated(t, enginesim.Config{})
	g := newRig(t, proxy.Config{}, url)
	for i := range 50 {
		status, text := g.post("/generate", `{"input_ids":"no list"}`)
		if status != 400 || !strings.Contains(text, "input_ids") {
			t.Fatalf("request %d: got %d %s", i, status, text)
		}
	}
	if n := g.released(router.Rejected); n != 50 || len(executions.events(execlog.Start)) != 0 {
		t.Errorf("released %v", g.snapshot().Totals.Released)
	}
	if s := g.snapshot(); !s.Backends[0].Admissible || s.Failure != nil || s.Backends[0].Outstanding != 0 {
		t.Errorf("refusals hurt the backend: %+v", s.Backends[0])
	}
}

func TestAFullQueueIsBackPressureAndNoFault(t *testing.T) {
	engine := script(t, replies(sized(503, "application/json", `{"object":"error","message":"The request queue is full."}`), stayOpen))
	g := newRig(t, proxy.Config{}, engine.url)
	for range 20 {
		status, text, head := g.send(t.Context(), "/generate", ask1)
		if status != 503 || !strings.Contains(text, "queue is full") || head.Get("Retry-After") == "" {
			t.Fatalf("got %d %v %s", status, head, text)
		}
	}
	if s := g.snapshot(); !s.Backends[0].Admissible || s.Failure != nil || s.Totals.Released[router.Rejected] != 20 {
		t.Errorf("got %+v", s.Totals.Released)
	}
}

// turn runs one turn of a conversation in one of the four ways and returns what was counted while
// it ran.
type turn func(t *testing.T, g *rig, session, number string, running func() int64) int64

func TestTheSameConversationCountsTheSameInAllFourWays(t *testing.T) {
	ways := map[string]turn{
		"lease":         byLease("/leases"),
		"batch":         byLease("/leases:batch"),
		"proxy, plain":  byProxy(""),
		"proxy, stream": byProxy(`,"stream":true`),
	}
	type counts struct {
		During                      []int64
		Grants, Succeeded, Executed int
	}
	want := counts{During: []int64{2, 2, 2}, Grants: 3, Succeeded: 3, Executed: 6}
	for name, run := range ways {
		t.Run(name, func(t *testing.T) {
			url, executions := simulated(t, enginesim.Config{Speed: 20})
			g := newRig(t, proxy.Config{}, url)
			var got counts
			for i := 1; i <= 3; i++ {
				running := func() int64 {
					eventually(t, "the turn runs", func() bool { return len(executions.events(execlog.Start)) == 2*i })
					return g.counted()
				}
				got.During = append(got.During, run(t, g, "s", fmt.Sprint(i), running))
			}
			totals := g.snapshot().Totals
			got.Grants, got.Succeeded, got.Executed = int(totals.Grants), int(totals.Released[router.Succeeded]), len(executions.events(execlog.Finish))
			if fmt.Sprint(got) != fmt.Sprint(want) || g.counted() != 0 {
				t.Errorf("got %+v, want %+v; %d left", got, want, g.counted())
			}
			if v, err := g.table.Session("s"); err != nil || v.Backend != "b0" {
				t.Errorf("session: %+v, %v", v, err)
			}
		})
	}
}

// twoSamples asks for two sequences of a length that lasts a while.
func twoSamples(more string) string {
	return `{"text":"hello","session_id":"s","sampling_params":{"max_new_tokens":300,"ignore_eos":true,"n":2}` + more + `}`
}

func byProxy(more string) turn {
	return func(t *testing.T, g *rig, session, number string, running func() int64) int64 {
		done := make(chan int, 1)
		go func() {
			status, _ := g.post("/generate", twoSamples(more), "X-Session-ID", session, "X-Turn", number)
			done <- status
		}()
		n := running()
		if status := <-done; status != 200 {
			t.Errorf("got %d", status)
		}
		return n
	}
}

// leased is an answer of the lease protocol, alone or in a batch.
type leased struct {
	RID     string
	Token   string
	Backend struct{ URL string }
	Results []struct{ Lease leased }
}

func byLease(path string) turn {
	return func(t *testing.T, g *rig, session, number string, running func() int64) int64 {
		api := leaseAPI(t, g)
		ask1 := fmt.Sprintf(`{"requestID":"r%s","sessionID":%q,"sender":"train","senderGeneration":0,"epoch":1,"executions":2}`, number, session)
		if strings.HasSuffix(path, "batch") {
			ask1 = `{"requests":[` + ask1 + `]}`
		}
		status, text := ask(t.Context(), api+path, ask1)
		var l leased
		if err := json.Unmarshal([]byte(text), &l); err != nil || status/100 != 2 {
			t.Fatalf("acquire: %d %s", status, text)
		}
		if len(l.Results) == 1 {
			l = l.Results[0].Lease
		}
		done := make(chan int, 1)
		go func() {
			status, _ := ask(context.Background(), l.Backend.URL+"/generate", strings.Replace(twoSamples(""), "{", fmt.Sprintf(`{"rid":%q,`, l.RID), 1))
			done <- status
		}()
		n := running()
		if status := <-done; status != 200 {
			t.Errorf("generate: %d", status)
		}
		if status, text := ask(t.Context(), api+"/leases/r"+number+"/release", fmt.Sprintf(`{"token":%q,"outcome":"Succeeded"}`, l.Token)); status != 200 {
			t.Errorf("release: %d %s", status, text)
		}
		return n
	}
}

// leaseAPI serves the lease protocol of the rig's pool.
func leaseAPI(t *testing.T, g *rig) string {
	t.Helper()
	api, err := server.New(server.Config{Pools: g.pools, Keys: server.Keys{Current: []byte(strings.Repeat("k", 32))}, Clock: g.now})
	if err != nil {
		t.Fatal(err)
	}
	srv := httptest.NewServer(api)
	t.Cleanup(func() { srv.Close(); api.Close() })
	return srv.URL + "/v1alpha1/namespaces/rl/inferencepools/policy"
}

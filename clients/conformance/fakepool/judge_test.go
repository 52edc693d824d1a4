package fakepool

import (
	"bytes"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/berthmaster/berthmaster/clients/conformance"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// stranger is a client that does what a test tells it, right or wrong.
type stranger struct {
	t    *testing.T
	pool *Pool
	http *http.Client
}

func start(t *testing.T, s conformance.Scenario) *stranger {
	t.Helper()
	pool, err := Start(s)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	return &stranger{t: t, pool: pool, http: &http.Client{Transport: transport}}
}

// call makes a call to url and returns the answer's members; a lost answer has none.
func (c *stranger) call(method, url, secret string, body any, header ...string) map[string]any {
	c.t.Helper()
	raw, err := json.Marshal(body)
	if err != nil {
		c.t.Fatal(err)
	}
	req, err := http.NewRequestWithContext(c.t.Context(), method, url, bytes.NewReader(raw))
	if err != nil {
		c.t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+secret)
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return nil
	}
	defer func() { _ = resp.Body.Close() }()
	answer, err := io.ReadAll(resp.Body)
	if err != nil {
		return nil
	}
	var members map[string]any
	_ = json.Unmarshal(answer, &members) // an engine's reply may be anything
	return members
}

func (c *stranger) router(path string, body map[string]any) map[string]any {
	c.t.Helper()
	return c.call(http.MethodPost, c.pool.Offer().BaseURL+path, RouterToken, body)
}

func ask(id string) map[string]any {
	return map[string]any{"requestID": id, "sessionID": "session-1", "sender": "train", "senderGeneration": 3, "epoch": 4, "groupID": "group-1"}
}

// lease acquires.
func (c *stranger) lease(id string) (url, rid, token string) {
	c.t.Helper()
	got := c.router("/leases", ask(id))
	backend, _ := got["backend"].(map[string]any)
	if backend == nil {
		c.t.Fatalf("no lease: %v", got)
	}
	return backend["url"].(string), got["rid"].(string), got["token"].(string)
}

func (c *stranger) post(url, rid string, header ...string) {
	c.t.Helper()
	c.call(http.MethodPost, url+"/generate", EngineKey, map[string]any{"rid": rid}, header...)
}

func (c *stranger) release(id, token, outcome string) {
	c.t.Helper()
	c.router("/leases/"+id+"/release", map[string]any{"token": token, "outcome": outcome})
}

// judged is what is said of the client, as one text.
func (c *stranger) judged() string {
	c.t.Helper()
	violations, err := c.pool.Judge(make([]conformance.Report, len(c.pool.scenario.Do)))
	if err != nil {
		c.t.Fatal(err)
	}
	return strings.Join(violations, "\n")
}

func TestAClientInOrderIsNotComplainedAbout(t *testing.T) {
	c := start(t, conformance.Scenario{Wire: conformance.Wire{
		Count: map[string][2]int{"acquire": {1, 1}, "release": {1, 1}}, Order: []string{"acquire", "request", "release:Succeeded"},
		Bodies: map[string]map[string]any{"acquire": {"epoch": 4.0, "token": nil}},
	}})
	url, rid, token := c.lease("r1")
	c.post(url, rid)
	c.release("r1", token, "Succeeded")
	c.release("r1", token, "Succeeded")
	c.call(http.MethodDelete, c.pool.Offer().BaseURL+"/sessions/session-1?sender=train", RouterToken, nil)
	if got := c.judged(); got != "2 of release, demanded are [1 1]; seen: [acquire send request release:Succeeded release:Succeeded end]" {
		t.Error(got)
	}
}

// TestEveryLawIsEnforced breaks each law once.
func TestEveryLawIsEnforced(t *testing.T) {
	closed := conformance.Scenario{}
	cases := map[string]struct {
		rule string
		sin  func(c *stranger)
	}{
		"an id is asked for again after its end": {"C1", func(c *stranger) {
			_, _, token := c.lease("r1")
			c.release("r1", token, "NotSent")
			c.router("/leases", ask("r1"))
		}},
		"an id is asked for with another identity": {"C2", func(c *stranger) {
			_, _, token := c.lease("r1")
			other := ask("r1")
			other["executions"] = 2
			c.router("/leases", other)
			c.release("r1", token, "NotSent")
		}},
		"an id is given up with another identity": {"C4", func(c *stranger) {
			c.lease("r1")
			c.router("/leases/r1/release", map[string]any{"outcome": "NotSent", "sessionID": "session-1", "sender": "eval", "epoch": 4})
		}},
		"another session is ended": {"C5", func(c *stranger) {
			c.call(http.MethodDelete, c.pool.Offer().BaseURL+"/sessions/session-1?sender=eval", RouterToken, nil)
		}},
		"a token is made up": {"C7", func(c *stranger) {
			_, _, token := c.lease("r1")
			c.router("/leases/r1/renew", map[string]any{"token": "made up"})
			c.release("r1", token, "NotSent")
		}},
		"a rid is made up": {"C11", func(c *stranger) {
			url, _, token := c.lease("r1")
			c.post(url, "made-up")
			c.release("r1", token, "Succeeded")
		}},
		"the route is another": {"C11", func(c *stranger) {
			url, rid, token := c.lease("r1")
			c.post(url+"/v1", rid)
			c.release("r1", token, "Succeeded")
		}},
		"a request is made twice": {"C12", func(c *stranger) {
			url, rid, token := c.lease("r1")
			c.post(url, rid)
			c.post(url, rid)
			c.release("r1", token, "Succeeded")
		}},
		"proxies are allowed to repeat it": {"C12", func(c *stranger) {
			url, rid, token := c.lease("r1")
			c.post(url, rid, "Idempotency-Key", "k")
			c.release("r1", token, "Succeeded")
		}},
		"a written request is called NotSent": {"C14", func(c *stranger) {
			url, rid, token := c.lease("r1")
			c.post(url, rid)
			c.release("r1", token, "NotSent")
		}},
		"one byte was written and it is called NotSent": {"C14", func(c *stranger) {
			url, _, token := c.lease("r1")
			conn, err := (&net.Dialer{}).DialContext(c.t.Context(), "tcp", strings.TrimPrefix(url, "http://"))
			if err != nil {
				c.t.Fatal(err)
			}
			_, _ = conn.Write([]byte("P"))
			if err := c.pool.Await(c.t.Context(), "send"); err != nil {
				c.t.Fatal(err)
			}
			_ = conn.Close()
			c.release("r1", token, "NotSent")
		}},
		"a lease is kept": {"C22", func(c *stranger) { c.lease("r1") }},
		"two outcomes are said": {"C23", func(c *stranger) {
			url, rid, token := c.lease("r1")
			c.post(url, rid)
			c.release("r1", token, "Ambiguous")
			c.release("r1", token, "Succeeded")
		}},
		"the router is called without its credential": {"C27", func(c *stranger) {
			c.call(http.MethodPost, c.pool.Offer().BaseURL+"/leases/r1/renew", "", map[string]any{"token": "x"})
		}},
		"the engine is shown the router's credential": {"C27", func(c *stranger) {
			url, rid, token := c.lease("r1")
			c.post(url, rid, "X-Forwarded-Authorization", RouterToken)
			c.release("r1", token, "Succeeded")
		}},
		"a member is made up": {"C28", func(c *stranger) {
			body := ask("r1")
			body["priority"] = 1
			c.router("/leases", body)
		}},
		"a call is made up": {"C28", func(c *stranger) { c.router("/leases/r1/hurry", nil) }},
		"an id is none":     {"C28", func(c *stranger) { c.router("/leases", ask("-")) }},
		"an outcome is made up": {"C28", func(c *stranger) {
			_, _, token := c.lease("r1")
			c.release("r1", token, "Fine")
		}},
	}
	for name, law := range cases {
		t.Run(name, func(t *testing.T) {
			c := start(t, closed)
			law.sin(c)
			if got := c.judged(); !strings.Contains(got, law.rule+": ") {
				t.Errorf("%s was not complained about: %q", law.rule, got)
			}
		})
	}
}

func TestAConnectionThatRestedIsComplainedAbout(t *testing.T) {
	for rest, bad := range map[time.Duration]bool{-1: false, 0: false, time.Second: false, longRest + 1: true} {
		a := &arrival{idle: rest}
		if got := strings.Join(a.clean(), ""); strings.HasPrefix(got, "C13") != bad {
			t.Errorf("after %v: %q", rest, got)
		}
	}
}

func TestWhatTheScenarioDemandsIsComplainedAbout(t *testing.T) {
	words := []string{"acquire", "renew", "renew+started", "release:NotSent"}
	for name, c := range map[string]struct {
		complaints []string
		want       int
	}{
		"enough":              {counts(map[string][2]int{"renew": {2, 2}, "release:NotSent": {1, -1}}, words), 0},
		"too few":             {counts(map[string][2]int{"renew": {3, -1}}, words), 1},
		"too many":            {counts(map[string][2]int{"renew": {0, 1}}, words), 1},
		"in order":            {order([]string{"acquire", "renew+started", "release"}, words), 0},
		"out of order":        {order([]string{"release", "acquire"}, words), 1},
		"a word within words": {counts(map[string][2]int{"ren": {1, 1}}, words), 1},
	} {
		if len(c.complaints) != c.want {
			t.Errorf("%s: %v", name, c.complaints)
		}
	}
}

func TestHeadersThatAreNotAsDemandedAreComplainedAbout(t *testing.T) {
	r := newRecord()
	r.heard("acquire", http.Header{"Traceparent": {"mine"}})
	r.heard("acquire", http.Header{"Traceparent": {"of a later one"}})
	for name, c := range map[string]struct {
		demanded map[string]map[string]string
		want     int
	}{
		"the first of a kind counts": {map[string]map[string]string{"acquire": {"Traceparent": "mine"}}, 0},
		"another value":              {map[string]map[string]string{"acquire": {"Traceparent": "yours"}}, 1},
		"none is demanded, and sent": {map[string]map[string]string{"acquire": {"Traceparent": ""}}, 1},
		"no such call was made":      {map[string]map[string]string{"request": {"Traceparent": "mine"}}, 1},
	} {
		if got := r.headers(c.demanded); len(got) != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func TestCallsThatComeTooSoonAreComplainedAbout(t *testing.T) {
	began := time.Now()
	p := &Pool{trace: newTrace()}
	p.trace.words = []string{"acquire", "renew", "acquire+token"}
	p.trace.times = []time.Time{began, began, began.Add(time.Second)}
	for seconds, want := range map[float64]int{0.9: 0, 1.1: 1} {
		if got := p.apart(map[string]float64{"acquire": seconds}); len(got) != want {
			t.Errorf("%g s: %v", seconds, got)
		}
	}
	if got := p.apart(map[string]float64{"renew": 0}); len(got) != 1 {
		t.Errorf("one alone: %v", got)
	}
}

func TestRepliesAreCutWhereTheScriptCutsThem(t *testing.T) {
	at, all := 10, len(encode(conformance.Reply{}))
	back := -1
	if got := len(encode(conformance.Reply{Cut: &at})); got != at {
		t.Errorf("%d bytes", got)
	}
	if got := len(encode(conformance.Reply{Cut: &back})); got != all-1 {
		t.Errorf("%d bytes of %d", got, all)
	}
}

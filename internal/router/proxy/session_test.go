package proxy_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/berthmaster/berthmaster/internal/router"
	"github.com/berthmaster/berthmaster/internal/router/proxy"
)

func keyless(k proxy.Keyless) func(router.PoolKey) proxy.Settings {
	return func(router.PoolKey) proxy.Settings { return proxy.Settings{Keyless: k} }
}

func TestASessionIsNamedByTheFirstOfItsKeys(t *testing.T) {
	engine := script(t, replies(plain(plainJSON), stayOpen))
	g := newRig(t, proxy.Config{}, engine.url)
	cases := map[string]struct {
		body string
		head []string
		want router.SessionID
	}{
		"the header":              {`{"session_id":"b","user":"u"}`, []string{"X-Session-ID", "h", "X-SMG-Routing-Key", "k"}, "h"},
		"the routing key":         {`{"session_id":"b","user":"u"}`, []string{"X-SMG-Routing-Key", "k"}, "k"},
		"the body's session":      {`{"user":"u","session_id":"b"}`, nil, "b"},
		"the body's user":         {`{"user":"u"}`, nil, "u"},
		"a name that is no id":    {`{"user":"Müller & Co."}`, nil, "x-12140708f587061f91f2374bfcf91d30"},
		"an empty header is none": {`{"session_id":"b2"}`, []string{"X-Session-ID", ""}, "b2"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			before := g.snapshot().Sessions
			if status, text := g.post("/generate", c.body, c.head...); status != 200 {
				t.Fatalf("got %d %s", status, text)
			}
			_, head := engine.last()
			id := router.SessionID(head.Get("X-Session-ID"))
			if id != c.want {
				t.Errorf("the engine was told %q, want %q", id, c.want)
			}
			if _, err := g.table.Session(id); err != nil || g.snapshot().Sessions != before+1 {
				t.Errorf("session %q: %v, %d more", id, err, g.snapshot().Sessions-before)
			}
		})
	}
}

func TestASessionStaysWithItsBackendUntilItIsFinished(t *testing.T) {
	a, b := script(t, replies(plain(plainJSON), stayOpen)), script(t, replies(plain(plainJSON), stayOpen))
	g := newRig(t, proxy.Config{}, a.url, b.url)
	for range 6 {
		g.post("/generate", ask1, "X-Session-ID", "s")
	}
	if x, y := a.generated.Load(), b.generated.Load(); x*y != 0 || x+y != 6 {
		t.Errorf("%d and %d turns of one session", x, y)
	}
	for range 2 { // again changes nothing
		if status, text := g.post("/finish_session?session_id=s", ""); status != 200 {
			t.Errorf("got %d %s", status, text)
		}
	}
	if _, err := g.table.Session("s"); !errors.Is(err, router.ErrSessionUnknown) {
		t.Errorf("got %v", err)
	}
	if status, _ := g.post("/finish_session", ""); status != 400 {
		t.Errorf("without a session: got %d", status)
	}
}

func TestARequestWithoutAKeyHasNoAffinityAndIsCounted(t *testing.T) {
	a, b := script(t, replies(plain(plainJSON), stayOpen)), script(t, replies(plain(plainJSON), stayOpen))
	g := newRig(t, proxy.Config{}, a.url, b.url)
	for range 10 {
		g.post("/generate", ask1)
	}
	if x, y := a.generated.Load(), b.generated.Load(); x != 5 || y != 5 {
		t.Errorf("%d and %d", x, y)
	}
	eventually(t, "no session is left", func() bool { return g.snapshot().Sessions == 0 })
	if n := g.proxy.Snapshot()[rigKey].WithoutAffinity; n != 10 {
		t.Errorf("%d counted", n)
	}
}

func TestAnAPIKeyIsASessionWhereThatIsAskedFor(t *testing.T) {
	engine := script(t, replies(plain(plainJSON), stayOpen))
	g := newRig(t, proxy.Config{Settings: keyless(proxy.KeylessAPIKey)}, engine.url)
	sessions := map[string]bool{}
	for i := range 6 {
		g.post("/generate", ask1, "Authorization", fmt.Sprint("Bearer secret-", i%2))
		_, head := engine.last()
		id := head.Get("X-Session-ID")
		if strings.Contains(id, "secret") || head.Get("Authorization") != "" {
			t.Fatalf("the key went on: %v", head)
		}
		sessions[id] = true
	}
	if len(sessions) != 2 || g.snapshot().Sessions != 2 {
		t.Errorf("%d sessions of two keys", len(sessions))
	}
	g.post("/generate", ask1, "Authorization", "Bearer secret-0", "X-Session-ID", "named")
	if _, err := g.table.Session("named"); err != nil {
		t.Error("a named session gave way to the key")
	}
}

func TestAPromptThatContinuesAnotherSharesItsSessionWhereThatIsAskedFor(t *testing.T) {
	engine := script(t, replies(plain(plainJSON), stayOpen))
	g := newRig(t, proxy.Config{Settings: keyless(proxy.KeylessPrefix)}, engine.url)
	session := func(prompt string) string {
		g.post("/v1/completions", fmt.Sprintf(`{"model":"m","prompt":%q}`, prompt))
		_, head := engine.last()
		return head.Get("X-Session-ID")
	}
	system := strings.Repeat("You are a careful engineer. ", 40) // shared by all
	first := session(system + strings.Repeat("task one ", 300))
	if got := session(system + strings.Repeat("task one ", 300) + strings.Repeat("and a reply ", 200)); got != first {
		t.Error("the next turn went to another session")
	}
	if got := session(system + strings.Repeat("task two ", 300)); got == first {
		t.Error("whoever shares the system prompt shares the session")
	}
	if one, other := session("short"), session("short"); one == other {
		t.Error("a short prompt tells nothing, and yet two of them share a session")
	}
}

package access

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/berthmaster/berthmaster/internal/router"
)

func TestNobodyIsAskedAboutWhatCannotBeThereAndNothingOfItIsKept(t *testing.T) {
	long := func(n int) string { return strings.Repeat("x", n) }
	for name, c := range map[string]struct {
		pool   router.PoolKey
		sender router.SenderName
		reason router.Reason
		asked  int // besides whose token it is
	}{
		"a namespace of 12 KiB":                 {router.PoolKey{Namespace: long(12 << 10), Name: "policy"}, "", router.ReasonSessionForbidden, 0},
		"a pool of 12 KiB":                      {router.PoolKey{Namespace: "rl", Name: long(12 << 10)}, "eval", router.ReasonSessionForbidden, 0},
		"a namespace of one byte too many":      {router.PoolKey{Namespace: long(64), Name: "policy"}, "", router.ReasonSessionForbidden, 0},
		"a pool of one byte too many":           {router.PoolKey{Namespace: "rl", Name: long(254)}, "", router.ReasonSessionForbidden, 0},
		"names as long as they come":            {router.PoolKey{Namespace: long(63), Name: long(253)}, "", router.ReasonSessionForbidden, 1},
		"a sender of one byte too many":         {policy, router.SenderName(long(64)), router.ReasonSenderUnknown, 1},
		"a sender as long as they come, of all": {policy, router.SenderName(long(63)), "", 1},
	} {
		g, a := newHouse(t)
		err := g.Authorize(call(t, http.MethodPost, "Bearer t-judge"), c.pool, c.sender)
		refusal, _ := errors.AsType[*router.Refusal](err)
		if err == nil && c.reason != "" || err != nil && (refusal == nil || refusal.Reason != c.reason) {
			t.Errorf("%s: %v, want %q", name, err, c.reason)
		}
		if err != nil && len(err.Error()) > 1000 {
			t.Errorf("%s: the refusal has %d bytes", name, len(err.Error()))
		}
		if len(a.asked) != 1+c.asked || len(g.deeds.known) != c.asked {
			t.Errorf("%s: asked %.200q, %d answers are kept", name, a.asked, len(g.deeds.known))
		}
	}
}

func TestOnlyThePathThatIsServedIsAskedAbout(t *testing.T) {
	g, a := newHouse(t)
	guarded := g.Guard("/metrics", http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("another path is served") }))
	for token, status := range map[string]int{"t-looker": http.StatusNotFound, "t-made-up": http.StatusUnauthorized} {
		r := call(t, http.MethodGet, "Bearer "+token)
		r.URL.Path = "/" + strings.Repeat("x", 12<<10)
		w := httptest.NewRecorder()
		guarded.ServeHTTP(w, r)
		if w.Code != status {
			t.Errorf("%s: %d, want %d", token, w.Code, status)
		}
	}
	if len(g.deeds.known) != 0 || len(a.asked) != 2 {
		t.Errorf("asked %.200q, %d answers are kept", a.asked, len(g.deeds.known))
	}
}

// What is kept of a question has the same size whatever it was about, and holds no part of the request.
func TestARefusalThatIsKeptIsSmallHoweverLongWhatWasAsked(t *testing.T) {
	const questions, most = 5000, 400
	long := func(n, i int) string { // cut out of 12 KiB
		tail := strconv.Itoa(i)
		return (strings.Repeat("n", n-len(tail)) + tail + strings.Repeat("q", 12<<10))[:n]
	}
	for name, ask := range map[string]func(*Gate, int) error{
		"a right": func(g *Gate, i int) error {
			return g.Authorize(call(t, http.MethodPost, "Bearer t-nobody"), router.PoolKey{Namespace: "rl", Name: long(250, i)}, "")
		},
		"a token": func(g *Gate, i int) error {
			return g.Authenticate(call(t, http.MethodPost, "Bearer "+long(maxTokenBytes, i)))
		},
	} {
		g, a := newHouse(t)
		held := func() int64 {
			a.asked = nil
			runtime.GC()
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			return int64(m.HeapAlloc)
		}
		before := held()
		for i := range questions {
			if ask(g, i) == nil {
				t.Fatal("let in")
			}
			a.asked = a.asked[:0]
		}
		if n := len(g.deeds.known) + len(g.tokens.known); n < questions {
			t.Fatalf("%s: %d answers are kept, want %d", name, n, questions)
		}
		each := (held() - before) / questions
		t.Logf("%s: %d bytes", name, each)
		if each > most {
			t.Errorf("each refusal of %s holds %d bytes, want at most %d", name, each, most)
		}
		runtime.KeepAlive(g)
	}
}

func TestTwoDeedsAreOneOnlyIfAllTheirPartsAre(t *testing.T) {
	who := digestOf(Identity{User: "u"})
	base := Deed{Verb: "get", Namespace: "a", Pool: "b"}
	for name, other := range map[string]Deed{
		"another verb": {Verb: "create", Namespace: "a", Pool: "b"}, "another namespace": {Verb: "get", Namespace: "b", Pool: "b"},
		"another pool": {Verb: "get", Namespace: "a", Pool: "c"}, "parts moved about": {Verb: "get", Namespace: "a\x01b"},
		"parts run together": {Verb: "get", Namespace: "ab"}, "a path": {Verb: "get", Namespace: "a", Path: "b"},
	} {
		if other.digest(who) == base.digest(who) {
			t.Errorf("%s: the same digest", name)
		}
	}
	if base.digest(who) == base.digest(digestOf(Identity{User: "v"})) {
		t.Error("another caller: the same digest")
	}
	if same := base; same.digest(digestOf(Identity{User: "u", Expires: time.Now()})) != base.digest(who) {
		t.Error("the same question has two digests")
	}
}

func TestATokenOfMoreThanEightKiBIsNobodys(t *testing.T) {
	g, a := newHouse(t)
	if g.Authenticate(call(t, http.MethodGet, "Bearer "+strings.Repeat("x", maxTokenBytes+1))) == nil || len(a.asked) != 0 {
		t.Error("the API server is asked")
	}
	token := strings.Repeat("x", maxTokenBytes)
	a.tokens[token] = Identity{User: "judge"}
	if err := g.Authenticate(call(t, http.MethodGet, "Bearer "+token)); err != nil {
		t.Error(err)
	}
}

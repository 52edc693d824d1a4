package access

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/berthmaster/berthmaster/internal/router"
	"github.com/berthmaster/berthmaster/internal/router/routertest"
)

// authority is an API server that knows some tokens, and what their owners may do.
type authority struct {
	tokens map[string]Identity
	may    map[string]bool // "user verb namespace/pool" or "user verb path"
	down   error
	asked  []string
}

func (a *authority) Identify(_ context.Context, token string) (Identity, bool, error) {
	a.asked = append(a.asked, "who is "+token)
	who, ok := a.tokens[token]
	return who, ok, a.down
}

func (a *authority) Permits(_ context.Context, who Identity, what Deed) (bool, error) {
	question := who.User + " " + what.Verb + " " + what.Namespace + "/" + what.Pool + what.Path
	a.asked = append(a.asked, "may "+question)
	return a.may[question], a.down
}

var policy = router.PoolKey{Namespace: "rl", Name: "policy"}

// newHouse is a pool whose sender train is for the user trainer, and eval for everybody; and a gate
// before it.
func newHouse(t *testing.T) (*Gate, *authority) {
	t.Helper()
	p := routertest.New(t, routertest.Backends("a"))
	p.Change(func(f *router.Fleet) {
		f.Senders = []router.Sender{
			{Name: "train", Access: router.AccessOpen, Subjects: []router.Subject{{Kind: router.SubjectUser, Name: "trainer"}, {Kind: router.SubjectGroup, Name: "team"}}},
			{Name: "eval", Access: router.AccessOpen},
		}
	})
	pools := router.NewPools()
	pools.Put(policy, p.Table)
	a := &authority{
		tokens: map[string]Identity{
			"t-trainer": {User: "trainer"}, "t-mate": {User: "mate", Groups: []string{"team"}}, "t-judge": {User: "judge"},
			"t-looker": {User: "looker"}, "t-nobody": {User: "nobody"},
		},
		may: map[string]bool{
			"trainer create rl/policy": true, "mate create rl/policy": true, "judge create rl/policy": true, "judge get rl/policy": true,
			"looker get rl/policy": true, "looker get //metrics": true,
		},
	}
	return New(Config{Reviewer: a, Pools: pools}), a
}

// call is a request with that Authorization header.
func call(t *testing.T, method, authorization string) *http.Request {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), method, "/", nil)
	if authorization != "" {
		r.Header.Set("Authorization", authorization)
	}
	return r
}

func TestCallersGetInWhereTheyBelongAndNowhereElse(t *testing.T) {
	for name, c := range map[string]struct {
		method, authorization string
		pool                  router.PoolKey
		sender                router.SenderName
		reason                router.Reason
	}{
		"a subject of the sender":                         {"POST", "Bearer t-trainer", policy, "train", ""},
		"a caller of the sender's group":                  {"POST", "Bearer t-mate", policy, "train", ""},
		"a scheme in lower case":                          {"POST", "bearer t-trainer", policy, "train", ""},
		"a caller who is none of the subjects":            {"POST", "Bearer t-judge", policy, "train", "Forbidden"},
		"a sender for everybody":                          {"POST", "Bearer t-judge", policy, "eval", ""},
		"a call before its sender is known":               {"POST", "Bearer t-judge", policy, "", ""},
		"a reader who reads":                              {"GET", "Bearer t-looker", policy, "", ""},
		"a reader who would take leases":                  {"POST", "Bearer t-looker", policy, "", "Forbidden"},
		"a reader who would end a session":                {"DELETE", "Bearer t-looker", policy, "", "Forbidden"},
		"a reader who would go through the proxy":         {"GET", "Bearer t-looker", policy, "eval", "Forbidden"},
		"a worker who would read":                         {"GET", "Bearer t-trainer", policy, "", "Forbidden"},
		"another pool of the namespace":                   {"POST", "Bearer t-trainer", router.PoolKey{Namespace: "rl", Name: "other"}, "train", "Forbidden"},
		"a pool of the same name in another namespace":    {"POST", "Bearer t-trainer", router.PoolKey{Namespace: "lr", Name: "policy"}, "train", "Forbidden"},
		"somebody without rights":                         {"POST", "Bearer t-nobody", policy, "eval", "Forbidden"},
		"a token that is nobody's":                        {"POST", "Bearer t-made-up", policy, "eval", "Unauthenticated"},
		"a token that is too long":                        {"POST", "Bearer " + strings.Repeat("x", 20000), policy, "eval", "Unauthenticated"},
		"no token":                                        {"POST", "", policy, "eval", "Unauthenticated"},
		"an empty token":                                  {"POST", "Bearer ", policy, "eval", "Unauthenticated"},
		"a token under another scheme":                    {"POST", "Basic t-trainer", policy, "eval", "Unauthenticated"},
		"the name of a user, without a token":             {"POST", "trainer", policy, "eval", "Unauthenticated"},
		"a user named in the header that proxies believe": {"POST", "X-Remote-User trainer", policy, "eval", "Unauthenticated"},
	} {
		t.Run(name, func(t *testing.T) {
			g, _ := newHouse(t)
			for range 2 { // from the API server, and from memory
				err := g.Authorize(call(t, c.method, c.authorization), c.pool, c.sender)
				refusal, _ := errors.AsType[*router.Refusal](err)
				if err == nil && c.reason != "" || err != nil && (refusal == nil || refusal.Reason != c.reason) {
					t.Errorf("got %v, want %q", err, c.reason)
				}
			}
		})
	}
}

func TestTheAPIServerIsAskedOnceAMinuteAndForRefusalsOnceInTenSeconds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, a := newHouse(t)
		ask := func(token string) error {
			return g.Authorize(call(t, http.MethodPost, "Bearer "+token), policy, "eval")
		}
		for range 59 {
			if ask("t-judge") != nil || ask("t-made-up") == nil || ask("t-nobody") == nil {
				t.Fatal("the wrong one gets in")
			}
			pass(time.Second)
		}
		count := map[string]int{}
		for _, q := range a.asked {
			count[q]++
		}
		want := map[string]int{
			"who is t-judge": 1, "may judge create rl/policy": 1, "who is t-made-up": 6, "who is t-nobody": 1, "may nobody create rl/policy": 6,
		}
		if diff := cmp.Diff(want, count); diff != "" {
			t.Errorf("questions (-want +got):\n%s", diff)
		}
	})
}

func TestARightThatIsTakenAwayEndsWithinAMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, a := newHouse(t)
		ask := func() error { return g.Authorize(call(t, http.MethodPost, "Bearer t-judge"), policy, "eval") }
		if err := ask(); err != nil {
			t.Fatal(err)
		}
		a.may = nil
		pass(time.Minute)
		if ask() == nil {
			t.Error("the right works on")
		}
	})
}

func TestATokenIsNotGoodBeyondItsOwnExpiry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, a := newHouse(t)
		a.tokens["brief"] = Identity{User: "judge", Expires: time.Now().Add(5 * time.Second)}
		ask := func() error { return g.Authorize(call(t, http.MethodPost, "Bearer brief"), policy, "eval") }
		if err := ask(); err != nil {
			t.Fatal(err)
		}
		delete(a.tokens, "brief")
		pass(5*time.Second - 1)
		if err := ask(); err != nil {
			t.Errorf("before: %v", err)
		}
		pass(time.Nanosecond)
		if ask() == nil {
			t.Error("the token works beyond its expiry")
		}
		a.tokens["brief"] = Identity{User: "judge", Expires: time.Now().Add(5 * time.Second)}
		pass(10 * time.Second)
		if err := ask(); err != nil {
			t.Fatal(err)
		}
		a.down = errors.New("down")
		pass(5 * time.Second)
		if ask() == nil {
			t.Error("the token works beyond its expiry while the API server is away")
		}
	})
}

func TestWhileTheAPIServerIsAwayKnownCallersGoOnAndStrangersAreToldToAskAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, a := newHouse(t)
		var told []error
		g.failed.to = func(err error, _ int) { told = append(told, err) }
		if err := g.Authorize(call(t, http.MethodPost, "Bearer t-judge"), policy, "eval"); err != nil {
			t.Fatal(err)
		}
		a.down = errors.New("dial tcp 10.0.0.1:443: connection refused")
		pass(9 * time.Minute)
		if err := g.Authorize(call(t, http.MethodPost, "Bearer t-judge"), policy, "eval"); err != nil {
			t.Errorf("who was known: %v", err)
		}
		refused := func(who, token string) {
			t.Helper()
			err := g.Authorize(call(t, http.MethodPost, "Bearer "+token), policy, "eval")
			refusal, _ := errors.AsType[*router.Refusal](err)
			if refusal == nil || refusal.Reason != ReasonUnavailable || refusal.RetryAfter == 0 || strings.Contains(err.Error(), "10.0.0.1") {
				t.Errorf("%s: %v", who, err)
			}
		}
		refused("a stranger", "t-mate")
		pass(time.Minute)
		refused("one whose grace is over", "t-judge")
		if len(told) == 0 {
			t.Error("nobody is told why the API server could not be asked")
		}
	})
}

func TestTwoCallersAreOneOnlyIfEverythingThatRightsHangOnIsTheSame(t *testing.T) {
	base := Identity{User: "u", UID: "1", Groups: []string{"a", "b"}, Extra: map[string][]string{"k": {"v"}}}
	for name, other := range map[string]Identity{
		"another user":         {User: "v", UID: "1", Groups: []string{"a", "b"}, Extra: map[string][]string{"k": {"v"}}},
		"another UID":          {User: "u", UID: "2", Groups: []string{"a", "b"}, Extra: map[string][]string{"k": {"v"}}},
		"a group less":         {User: "u", UID: "1", Groups: []string{"a"}, Extra: map[string][]string{"k": {"v"}}},
		"groups run together":  {User: "u", UID: "1", Groups: []string{"a b"}, Extra: map[string][]string{"k": {"v"}}},
		"groups with a quote":  {User: "u", UID: "1", Groups: []string{`a" "b`}, Extra: map[string][]string{"k": {"v"}}},
		"nothing else":         {User: "u", UID: "1", Groups: []string{"a", "b"}},
		"another extra":        {User: "u", UID: "1", Groups: []string{"a", "b"}, Extra: map[string][]string{"k": {"w"}}},
		"parts moved about":    {User: `u" "1`, Groups: []string{"a", "b"}, Extra: map[string][]string{"k": {"v"}}},
		"an extra of that key": {User: "u", UID: "1", Groups: []string{"a", "b"}, Extra: map[string][]string{"l": {"v"}}},
	} {
		if digestOf(other) == digestOf(base) {
			t.Errorf("%s: the same digest", name)
		}
	}
	same := base
	same.Extra, same.Expires = map[string][]string{"k": {"v"}}, time.Now()
	if digestOf(same) != digestOf(base) {
		t.Error("the same caller with a new token is another")
	}
}

func TestMetricsAreForThoseWhoMayGetTheirPath(t *testing.T) {
	g, a := newHouse(t)
	a.may["looker get //metrics"] = true
	read := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = fmt.Fprint(w, "figures") })
	for name, c := range map[string]struct {
		method, authorization string
		down                  error
		status                int
	}{
		"one who may":          {"GET", "Bearer t-looker", nil, 200},
		"one who may not":      {"GET", "Bearer t-trainer", nil, 403},
		"a stranger":           {"GET", "Bearer t-made-up", nil, 401},
		"nobody":               {"GET", "", nil, 401},
		"one who writes":       {"POST", "Bearer t-looker", nil, 405},
		"nobody can be judged": {"GET", "Bearer t-mate", errors.New("down"), 503},
	} {
		a.down = c.down
		r := call(t, c.method, c.authorization)
		r.URL.Path = "/metrics"
		w := httptest.NewRecorder()
		g.Guard("/metrics", read).ServeHTTP(w, r)
		if w.Code != c.status || strings.Contains(w.Body.String(), "figures") != (c.status == 200) {
			t.Errorf("%s: got %d %s, want %d", name, w.Code, w.Body, c.status)
		}
	}
}

func TestExpiryIsReadFromTokensThatHaveOne(t *testing.T) {
	jwt := func(claims string) string {
		return "e30." + base64.RawURLEncoding.EncodeToString([]byte(claims)) + ".c2ln"
	}
	for token, want := range map[string]time.Time{
		jwt(`{"exp":1700000000}`): time.Unix(1700000000, 0), jwt(`{}`): {}, jwt(`{"exp":"soon"}`): {}, jwt(`{"exp":-1}`): {},
		"opaque": {}, "a.b": {}, "a.!.c": {},
	} {
		if got := expiry(token); !got.Equal(want) {
			t.Errorf("%s: %v, want %v", token, got, want)
		}
	}
}

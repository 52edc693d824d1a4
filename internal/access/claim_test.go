package access

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/berthmaster/berthmaster/internal/router"
)

// reasonOf is why a caller was refused; empty: it was not.
func reasonOf(err error) router.Reason {
	if refusal, ok := errors.AsType[*router.Refusal](err); ok {
		return refusal.Reason
	}
	return ""
}

func TestAClaimOutlivesTheTokenAndEndsWithTheRight(t *testing.T) {
	for name, c := range map[string]struct {
		happens func(*Gate, *authority)
		reason  router.Reason
	}{
		"nothing happens":              {func(*Gate, *authority) {}, ""},
		"the token's time is up":       {func(_ *Gate, a *authority) { a.tokens = nil }, ""},
		"the right is taken away":      {func(_ *Gate, a *authority) { a.may = nil }, "Forbidden"},
		"both":                         {func(_ *Gate, a *authority) { a.tokens, a.may = nil, nil }, "Forbidden"},
		"the pool is removed":          {func(g *Gate, _ *authority) { table, _ := g.pools.Get(policy); g.pools.Remove(policy, table) }, ""},
		"the API server is away":       {func(_ *Gate, a *authority) { a.down = errors.New("down") }, ""},
		"the right is another's":       {func(_ *Gate, a *authority) { a.may = map[string]bool{"mate create rl/policy": true} }, "Forbidden"},
		"the subjects are others":      {func(g *Gate, _ *authority) { subjects(g, router.Subject{Kind: router.SubjectUser, Name: "mate"}) }, "Forbidden"},
		"the caller is one of several": {func(g *Gate, _ *authority) { subjects(g, router.Subject{Kind: router.SubjectGroup, Name: "g"}) }, ""},
		"the sender is for everybody":  {func(g *Gate, _ *authority) { subjects(g) }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g, a := newHouse(t)
				a.tokens["brief"] = Identity{User: "trainer", Groups: []string{"g"}, Expires: time.Now().Add(time.Second)}
				still, err := g.Admit(call(t, http.MethodPost, "Bearer brief"), policy, "train")
				if err != nil {
					t.Fatal(err)
				}
				c.happens(g, a)
				pass(time.Minute)
				for range 2 {
					if reason := reasonOf(still(t.Context())); reason != c.reason {
						t.Errorf("got %q, want %q", reason, c.reason)
					}
				}
			})
		})
	}
}

// subjects makes these the subjects of train.
func subjects(g *Gate, to ...router.Subject) {
	table, _ := g.pools.Get(policy)
	f := router.Fleet{Epoch: 1, Leasing: router.LeasingOpen, Config: router.DefaultConfig(),
		Senders: []router.Sender{{Name: "train", Access: router.AccessOpen, Subjects: to}, {Name: "eval", Access: router.AccessOpen}}}
	if err := table.Apply(f, time.Now()); err != nil {
		panic(err)
	}
}

func TestAChangeOfSubjectsEndsAClaimAtOnce(t *testing.T) {
	g, _ := newHouse(t)
	still, err := g.Admit(call(t, http.MethodPost, "Bearer t-trainer"), policy, "train")
	if err != nil {
		t.Fatal(err)
	}
	subjects(g, router.Subject{Kind: router.SubjectUser, Name: "mate"})
	if reason := reasonOf(still(t.Context())); reason != "Forbidden" {
		t.Errorf("got %q", reason)
	}
}

func TestWhoIsRefusedHasNoClaim(t *testing.T) {
	g, _ := newHouse(t)
	for authorization, want := range map[string]router.Reason{"": "Unauthenticated", "Bearer t-made-up": "Unauthenticated", "Bearer t-nobody": "Forbidden", "Bearer t-judge": "Forbidden"} {
		still, err := g.Admit(call(t, http.MethodPost, authorization), policy, "train")
		if reasonOf(err) != want || still != nil {
			t.Errorf("%q: got %v, want %s", authorization, err, want)
		}
	}
}

func TestAClaimIsUndecidedOnceTheGraceIsOverOrTheCallIs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, a := newHouse(t)
		still, err := g.Admit(call(t, http.MethodPost, "Bearer t-trainer"), policy, "train")
		if err != nil {
			t.Fatal(err)
		}
		a.down = errors.New("down")
		pass(10*time.Minute - time.Nanosecond)
		if err := still(t.Context()); err != nil {
			t.Errorf("within its grace: %v", err)
		}
		pass(time.Nanosecond)
		if reason := reasonOf(still(t.Context())); reason != ReasonUnavailable {
			t.Errorf("beyond: %q", reason)
		}
		over, end := context.WithCancel(t.Context())
		end()
		if reason := reasonOf(still(over)); reason != ReasonUnavailable {
			t.Errorf("the call is over: %q", reason)
		}
	})
}

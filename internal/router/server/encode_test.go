package server

import (
	"encoding/json"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/berthmaster/berthmaster/internal/router"
)

// The structs of this file are what the hand-written answers must equal.

// backendAnswer says where to send a request.
type backendAnswer struct {
	Name        router.BackendName `json:"name"`
	Incarnation router.Incarnation `json:"incarnation"`
	// URL never ends in a slash.
	URL string `json:"url"`
}

// leaseAnswer is a lease as its holder sees it.
type leaseAnswer struct {
	RequestID     router.RequestID `json:"requestID"`
	Backend       backendAnswer    `json:"backend"`
	RID           router.RID       `json:"rid"`
	WeightVersion router.Version   `json:"weightVersion"`
	Epoch         router.Epoch     `json:"epoch"`
	Term          router.Term      `json:"term"`
	TTLSeconds    int64            `json:"ttlSeconds"`
	StartSeconds  int64            `json:"startSeconds"`
	Token         string           `json:"token"`
}

func leaseOf(g *router.Grant, t *tokens) leaseAnswer {
	c := &g.Claim
	return leaseAnswer{
		RequestID: c.Request, Backend: backendAnswer{c.Backend, c.Incarnation, g.URL}, RID: c.RID,
		WeightVersion: c.Version, Epoch: c.Epoch, Term: c.Term, TTLSeconds: int64(g.TTL.Seconds()),
		StartSeconds: int64(g.StartWindow.Seconds()), Token: string(t.append(nil, c)),
	}
}

// renewAnswer answers renew.
type renewAnswer struct {
	RequestID    string      `json:"requestID"`
	TTLSeconds   int64       `json:"ttlSeconds"`
	StartSeconds int64       `json:"startSeconds"`
	Mixed        bool        `json:"mixed"`
	State        stateAnswer `json:"state"`
}

// stateAnswer is what a holder should know about its pool.
type stateAnswer struct {
	Epoch     router.Epoch   `json:"epoch"`
	Term      router.Term    `json:"term"`
	Published router.Version `json:"publishedVersion"`
	Leasing   router.Leasing `json:"leasing"`
	Access    router.Access  `json:"access"`
	Failed    bool           `json:"failed"`
}

// releaseAnswer answers release.
type releaseAnswer struct {
	RequestID string         `json:"requestID"`
	Outcome   router.Outcome `json:"outcome"`
	// Fate is empty when the outcome says all.
	Fate  router.Fate `json:"fate"`
	Mixed bool        `json:"mixed"`
}

func equal(t *rapid.T, byHand []byte, v any) {
	t.Helper()
	byTheBook, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	if string(byHand) != string(byTheBook) {
		t.Fatalf("by hand  %s\nby the book %s", byHand, byTheBook)
	}
}

func TestAnswersByHandEqualThoseByTheBook(t *testing.T) {
	made := tokensOf(t, Keys{Current: key(1)})
	rapid.Check(t, func(t *rapid.T) {
		text := func(label string) string { return rapid.String().Draw(t, label) }
		seconds := func(label string) time.Duration {
			return time.Duration(rapid.Int64Range(1, 1<<30).Draw(t, label)) * time.Second
		}
		g := router.Grant{Claim: drawClaim(t), URL: text("url"), TTL: seconds("ttl"), StartWindow: seconds("start")}
		equal(t, appendLease(nil, &g, made), leaseOf(&g, made))
		v := router.Renewal{TTL: seconds("ttl"), StartWindow: seconds("start"), Mixed: rapid.Bool().Draw(t, "mixed"), Pool: router.PoolState{
			Epoch: g.Claim.Epoch, Term: g.Claim.Term, Published: router.Version(text("published")), Leasing: router.Leasing(text("leasing")),
			Access: router.Access(text("access")), Failed: rapid.Bool().Draw(t, "failed"),
		}}
		equal(t, appendRenewal(nil, "r1", &v), renewAnswer{
			RequestID: "r1", TTLSeconds: int64(v.TTL.Seconds()), StartSeconds: int64(v.StartWindow.Seconds()), Mixed: v.Mixed, State: stateAnswer(v.Pool),
		})
		e := router.Ending{Outcome: router.Outcome(text("outcome")), Fate: router.Fate(text("fate")), Mixed: v.Mixed}
		equal(t, appendRelease(nil, "r1", &e), releaseAnswer{RequestID: "r1", Outcome: e.Outcome, Fate: e.Fate, Mixed: e.Mixed})
	})
}

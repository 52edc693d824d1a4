package server

import (
	"net/http"
	"sync"
	"testing"

	"github.com/berthmaster/berthmaster/internal/router"
)

// expiry is an Authorizer that knows everybody until their tokens run out.
type expiry struct {
	mu  sync.Mutex
	out map[string]struct{} // guarded by mu; by bearer token
}

func (e *expiry) expire(token string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.out["Bearer "+token] = struct{}{}
}

func (e *expiry) Authorize(r *http.Request, _ router.PoolKey, _ router.SenderName) error {
	return e.Authenticate(r)
}

func (e *expiry) Authenticate(r *http.Request) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if _, expired := e.out[r.Header.Get("Authorization")]; expired {
		return &router.Refusal{Reason: ReasonUnauthenticated, Detail: "the token has expired"}
	}
	return nil
}

// twins begins two acquires of one id that wait: of a connection that the client has given up, and of
// its retry. open lets them be served.
func twins(t *testing.T) (w *world, tokens *expiry, stale, retry <-chan reply, open func()) {
	t.Helper()
	tokens = &expiry{out: map[string]struct{}{}}
	w = newWorld(t, 1, func(c *Config, f *router.Fleet) { c.Authorizer, f.Leasing = tokens, router.LeasingHeld })
	begin := func(token string, n int) <-chan reply {
		answered := make(chan reply, 1)
		go func() { answered <- w.as(token, http.MethodPost, w.pool+"/leases", ask("r1", "s1", patient)) }()
		w.waiting(n)
		return answered
	}
	stale, retry = begin("stale", 1), begin("retry", 2)
	return w, tokens, stale, retry, func() { w.change(func(f *router.Fleet) { f.Leasing = router.LeasingOpen }) }
}

func TestALeaseThatATwinHoldsIsNotTakenBackFromIt(t *testing.T) {
	for _, expired := range []string{"stale", "retry"} {
		t.Run("when the token of the "+expired+" one expires", func(t *testing.T) {
			w, tokens, stale, retry, open := twins(t)
			tokens.expire(expired)
			open()
			refused, leased := <-stale, <-retry
			if expired == "retry" {
				refused, leased = leased, refused
			}
			want(t, refused, http.StatusUnauthorized, "Unauthenticated")
			token := leased.text("token")
			if token == "" {
				t.Fatalf("the other was answered %d %s", leased.status, leased.raw)
			}
			if n := w.outstanding(); n != 1 {
				t.Errorf("%d counted, and one holds the lease", n)
			}
			if r := w.as("holder", http.MethodPost, w.pool+"/leases/r1/renew", object{"token": token, "started": true}); r.status != http.StatusOK {
				t.Errorf("it may not begin: %d %s", r.status, r.raw)
			}
		})
	}
}

func TestALeaseOfWhichNoTwinIsToldLeavesNoTrace(t *testing.T) {
	w, tokens, stale, retry, open := twins(t)
	tokens.expire("stale")
	tokens.expire("retry")
	open()
	want(t, <-stale, http.StatusUnauthorized, "Unauthenticated")
	want(t, <-retry, http.StatusUnauthorized, "Unauthenticated")
	if v := w.snapshot(); v.Requests != 0 || v.Sessions != 0 || v.Totals.Grants != 0 || w.outstanding() != 0 {
		t.Errorf("%d records, %d sessions, %d grants, %d counted", v.Requests, v.Sessions, v.Totals.Grants, w.outstanding())
	}
	if r := w.as("fresh", http.MethodPost, w.pool+"/leases", ask("r1", "s1")); r.status != http.StatusCreated {
		t.Errorf("with a new token the same id is answered %d %s", r.status, r.raw)
	}
}

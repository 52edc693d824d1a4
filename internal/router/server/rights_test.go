package server

import (
	"net/http"
	"sync"
	"testing"

	"github.com/berthmaster/berthmaster/internal/router"
)

// entitles judges callers by their names and the subjects of senders, as the gate of the manager does.
type entitles struct {
	pools *router.Pools
	// then, if not nil, happens between a judgement and what follows from it; guarded by mu.
	mu   sync.Mutex
	then func()
}

func (e *entitles) Authenticate(*http.Request) error { return nil }

func (e *entitles) Authorize(r *http.Request, pool router.PoolKey, sender router.SenderName) error {
	table, ok := e.pools.Get(pool)
	if !ok || sender == "" {
		return nil
	}
	err := table.Entitled(sender, router.Caller{User: r.Header.Get("Authorization")[len("Bearer "):]})
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.then != nil {
		e.then()
		e.then = nil
	}
	return err
}

// once has something happen right after the next judgement.
func (e *entitles) once(then func()) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.then = then
}

// trainersAre has the sender train be for one user only.
func trainersAre(name string) func(*router.Fleet) {
	return func(f *router.Fleet) {
		f.Senders[0].Subjects = []router.Subject{{Kind: router.SubjectUser, Name: name}}
	}
}

func TestASpecThatChangesRightAfterTheJudgementIsObeyed(t *testing.T) {
	for what, body := range map[string]object{
		"an acquire": ask("r1", "s1"), "one that would wait": ask("r1", "s1", object{"waitSeconds": 500}),
		"a batch": {"requests": []any{ask("r1", "s1")}},
	} {
		t.Run(what, func(t *testing.T) {
			e := &entitles{}
			w := newWorld(t, 1, func(c *Config, f *router.Fleet) {
				c.Authorizer, e.pools = e, c.Pools
				trainersAre("ann")(f)
			})
			path := "/leases"
			if what == "a batch" {
				path = "/leases:batch"
			}
			e.once(func() { w.change(trainersAre("bob")) })
			r := w.as("ann", http.MethodPost, w.pool+path, body)
			if what != "a batch" {
				want(t, r, http.StatusForbidden, "Forbidden")
			}
			if n := w.snapshot().Totals.Grants; n != 0 {
				t.Errorf("%d leases granted by rights that were taken away: %s", n, r.raw)
			}
			e.once(func() { w.change(trainersAre("ann")) })
			if r := w.as("ann", http.MethodPost, w.pool+path, body); what != "a batch" {
				want(t, r, http.StatusForbidden, "Forbidden") // judged before it was let in
			}
			e.once(func() { w.change(func(f *router.Fleet) { f.Senders[0].Subjects = nil }) })
			w.as("ann", http.MethodPost, w.pool+path, body)
			if n := w.snapshot().Totals.Grants; n != 1 {
				t.Errorf("%d leases for a caller that may have one whichever subjects hold", n)
			}
		})
	}
}

func TestWhoeverWaitsWhileSubjectsChangeIsJudgedByThoseOfTheEnd(t *testing.T) {
	for user, status := range map[string]int{"ann": http.StatusForbidden, "bob": http.StatusCreated} {
		t.Run(user, func(t *testing.T) {
			e := &entitles{}
			w := newWorld(t, 1, func(c *Config, f *router.Fleet) {
				c.Authorizer, e.pools, f.Leasing = e, c.Pools, router.LeasingHeld
			})
			answered := make(chan reply, 1)
			go func() {
				answered <- w.as(user, http.MethodPost, w.pool+"/leases", ask("r1", "s1", object{"waitSeconds": 500}))
			}()
			w.waiting(1)
			w.change(trainersAre("bob"))
			if status == http.StatusCreated {
				w.waiting(1) // it may go on
			}
			w.change(func(f *router.Fleet) { f.Leasing = router.LeasingOpen })
			if r := <-answered; r.status != status {
				t.Errorf("answered %d: %s", r.status, r.raw)
			}
		})
	}
}

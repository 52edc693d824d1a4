package server

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/berthmaster/berthmaster/internal/router"
)

// checkWait refuses a waiting time beyond the limit: a client that asks for more than it gets
// would take the answer for a pool that stayed closed as long as it asked.
func (s *Server) checkWait(seconds int64) error {
	longest := int64(s.limits.Wait / time.Second)
	if seconds < 0 || seconds > longest {
		return invalid("waitSeconds", "waitSeconds must be between 0 and "+strconv.FormatInt(longest, 10))
	}
	return nil
}

// acquireWaiting waits through refusals that waiting can help, "woken by the event, first come
// first served" (design section 6).
func (s *Server) acquireWaiting(w http.ResponseWriter, r *http.Request, c *call, req router.Request, seconds int64) (router.Grant, error) {
	leave, ok := s.waiters.enter(c.pool)
	if !ok {
		return s.grantNow(r, c, &req) // no room to wait, but what can be had now is had
	}
	defer leave()
	ctx, done := s.waiting(w, r, c)
	defer done()
	ctx, cancel := context.WithTimeout(ctx, time.Duration(seconds)*time.Second)
	defer cancel()
	g, err := c.table.AcquireWait(ctx, req, s.clock)
	for errors.Is(err, router.ErrRightsChanged) {
		if err := s.judge(r, c, &req); err != nil {
			return g, err
		}
		g, err = c.table.AcquireWait(ctx, req, s.clock)
	}
	if err == nil {
		return g, nil
	}
	if why := s.cutShort(c); why != nil {
		return g, why
	}
	return g, err
}

// awaitFate answers an Ambiguous release once it is certain: "waits until Dead, isolated or
// failed (the latter two are in status first)" (design section 6).
func (s *Server) awaitFate(w http.ResponseWriter, r *http.Request, c *call, claim router.Claim) (router.Ending, error) {
	leave, ok := s.waiters.enter(c.pool)
	if !ok {
		return router.Ending{}, &router.Refusal{
			Reason: router.ReasonContended, RetryAfter: time.Second,
			Detail: "the release is recorded, but too many calls of this pool wait already: release again for the fate",
		}
	}
	defer leave()
	ctx, done := s.waiting(w, r, c)
	defer done()
	e, err := c.table.AwaitFate(ctx, claim)
	if err != nil || e.Settled {
		return e, err
	}
	if why := s.cutShort(c); why != nil {
		return e, why
	}
	// The client hung up: nobody reads this, and it "releases again".
	return e, &router.Refusal{Reason: router.ReasonNoLeader, Detail: "the client has gone"}
}

// waiting returns the context of a call that waits: done when the client hangs up, the pool
// goes or the server stops. The deadlines for reading and writing, meant for calls that
// answer at once, are lifted meanwhile. It is done, too, when another replica is to answer. The caller must call done before it answers.
func (s *Server) waiting(w http.ResponseWriter, r *http.Request, c *call) (ctx context.Context, done func()) {
	ctx, cancel := context.WithCancel(r.Context())
	poolGone := context.AfterFunc(c.table.Lifetime(), cancel)
	stopping := context.AfterFunc(s.stopping, cancel)
	deposed := func() bool { return true }
	if c.reign != nil {
		deposed = context.AfterFunc(c.reign, cancel)
	}
	rc := http.NewResponseController(w)
	// Neither can fail but where there is no connection, as in a test's recorder.
	_ = rc.SetReadDeadline(time.Time{})
	_ = rc.SetWriteDeadline(time.Time{})
	return ctx, func() {
		poolGone()
		stopping()
		deposed()
		cancel()
		_ = rc.SetWriteDeadline(time.Now().Add(s.limits.Write))
	}
}

// cutShort says why waiting ended before its time; nil: it did not, or the client went.
func (s *Server) cutShort(c *call) error {
	switch {
	case c.reign != nil && c.reign.Err() != nil:
		// It comes first: a replica that is deposed makes new tables, and the pool is not gone.
		return noLeader("this replica does not lead any more")
	case c.table.Lifetime().Err() != nil && s.pools.Serves(c.pool, c.table):
		return noLeader("this replica has begun with the pool anew")
	case c.table.Lifetime().Err() != nil:
		return poolNotFound()
	case s.stopping.Err() != nil:
		return noLeader("this router is stopping")
	}
	return nil
}

// crowd counts who is waiting, pool by pool, up to a limit each.
type crowd struct {
	limit int

	mu     sync.Mutex
	inside map[router.PoolKey]int // guarded by mu; no zeros are kept
}

func newCrowd(limit int) *crowd { return &crowd{limit: limit, inside: map[router.PoolKey]int{}} }

// enter takes a place; leave, to be called once, gives it back. It fails when all are taken.
func (c *crowd) enter(k router.PoolKey) (leave func(), ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.inside[k] >= c.limit {
		return nil, false
	}
	c.inside[k]++
	return func() { c.leave(k) }, true
}

func (c *crowd) leave(k router.PoolKey) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.inside[k]--; c.inside[k] == 0 {
		delete(c.inside, k)
	}
}

package server

import (
	"sync"
	"time"

	"github.com/berthmaster/berthmaster/internal/router"
)

// room is memory that calls share: for bodies that no desk has room for, for what is made of a batch, and for long answers
// until their clients have taken them. Half of it at most is for the calls of one pool, so that whoever may call one
// leaves the others theirs. It is safe for concurrent use.
type room struct {
	most int64

	mu    sync.Mutex
	taken int64                    // guarded by mu
	by    map[router.PoolKey]int64 // guarded by mu; no zeros are kept
}

func newRoom(most int64) *room { return &room{most: most, by: map[router.PoolKey]int64{}} }

// take takes n bytes, all or none; back gives them back. It fails with a refusal that waiting helps.
func (m *room) take(pool router.PoolKey, n int64) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.taken+n > m.most || m.by[pool]+n > m.most/2 {
		return &router.Refusal{
			Reason: router.ReasonContended, RetryAfter: time.Second,
			Detail: "long bodies and answers of other calls take the memory that there is for them: ask again, under the same requestIDs",
		}
	}
	m.taken += n
	m.by[pool] += n
	return nil
}

func (m *room) back(pool router.PoolKey, n int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.taken -= n
	if m.by[pool] -= n; m.by[pool] == 0 {
		delete(m.by, pool)
	}
}

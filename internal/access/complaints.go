package access

import (
	"sync"
	"time"
)

// complaints tell why the API server could not be asked: the first time at once, and then at most once in
// quiet, since any stranger can have it asked in vain.
type complaints struct {
	to func(err error, untold int)

	mu     sync.Mutex
	next   time.Time // guarded by mu: when another is told
	untold int       // guarded by mu: how many were not since one was
}

// quiet is the time between two complaints.
const quiet = time.Minute

func (c *complaints) tell(err error, now time.Time) {
	untold, due := c.due(now)
	if due {
		c.to(err, untold)
	}
}

// due reports whether a complaint is to be told, and how many were not before it.
func (c *complaints) due(now time.Time) (untold int, due bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if now.Before(c.next) {
		c.untold++
		return 0, false
	}
	untold = c.untold
	c.untold, c.next = 0, now.Add(quiet)
	return untold, true
}

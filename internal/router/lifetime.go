package router

import "context"

// lifetime ends when a table is no longer that of its pool.
type lifetime struct {
	ctx context.Context
	end context.CancelFunc
}

func newLifetime() lifetime {
	ctx, end := context.WithCancel(context.Background())
	return lifetime{ctx, end}
}

// Lifetime is done once Pools.Remove has taken the table out or Pools.Put has put another in
// its place: whoever waits on behalf of a client then answers PoolNotFound. The table itself
// goes on answering, since late calls may still hold it.
func (t *Table) Lifetime() context.Context { return t.lifetime.ctx }

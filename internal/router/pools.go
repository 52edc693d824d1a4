package router

import "sync"

// PoolKey is the name of a pool in the API.
type PoolKey struct{ Namespace, Name string }

// Pools finds the table of a pool by its name. The controller puts and removes; the servers
// look up. Its lock is held for map operations only, so pools do not delay each other (R12).
type Pools struct {
	mu     sync.RWMutex
	tables map[PoolKey]*Table // guarded by mu
}

// NewPools makes an empty registry.
func NewPools() *Pools { return &Pools{tables: map[PoolKey]*Table{}} }

// Get returns the pool's table; false when there is no such pool.
func (p *Pools) Get(k PoolKey) (*Table, bool) {
	p.mu.RLock()
	defer p.mu.RUnlock()
	t, ok := p.tables[k]
	return t, ok
}

// Serves reports whether the pool of that name is still the one that t is a table of, whichever table
// it has by now: a router that is deposed begins with a new one.
func (p *Pools) Serves(k PoolKey, t *Table) bool {
	now, ok := p.Get(k)
	return ok && now.pool == t.pool
}

// Put makes t the table of that pool; the lifetime of any other that was there ends.
func (p *Pools) Put(k PoolKey, t *Table) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if old := p.tables[k]; old != nil && old != t {
		old.lifetime.end()
	}
	p.tables[k] = t
}

// Remove forgets the pool if t is still its table; the lifetime of t ends, and with it those
// who wait.
func (p *Pools) Remove(k PoolKey, t *Table) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.tables[k] == t {
		delete(p.tables, k)
		t.lifetime.end()
	}
}

// All returns the tables by name, a copy.
func (p *Pools) All() map[PoolKey]*Table {
	p.mu.RLock()
	defer p.mu.RUnlock()
	out := make(map[PoolKey]*Table, len(p.tables))
	for k, t := range p.tables {
		out[k] = t
	}
	return out
}

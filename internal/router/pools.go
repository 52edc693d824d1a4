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

// Put makes t the table of that pool, in place of any other.
func (p *Pools) Put(k PoolKey, t *Table) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.tables[k] = t
}

// Remove forgets the pool if t is still its table; waiters of t end by their own deadlines.
func (p *Pools) Remove(k PoolKey, t *Table) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.tables[k] == t {
		delete(p.tables, k)
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

package router

import (
	"testing"
	"time"
)

func TestLifetimeEndsWhenThePoolLosesItsTable(t *testing.T) {
	key := PoolKey{"rl", "policy"}
	table := func() *Table { return NewTable("u", nil, time.Unix(0, 0)) }
	for name, lose := range map[string]func(*Pools, *Table){
		"removed":  func(p *Pools, t *Table) { p.Remove(key, t) },
		"replaced": func(p *Pools, _ *Table) { p.Put(key, table()) },
	} {
		t.Run(name, func(t *testing.T) {
			p, mine, other := NewPools(), table(), table()
			p.Put(key, mine)
			p.Put(key, mine)
			p.Remove(key, other)
			if mine.Lifetime().Err() != nil {
				t.Fatal("ended while it is the pool's table")
			}
			lose(p, mine)
			if mine.Lifetime().Err() == nil {
				t.Fatal("goes on")
			}
		})
	}
}

package wire

import (
	"sync"
	"time"
)

// idleConns holds the connections that rest, by engine.
type idleConns struct {
	perEngine int
	keep      time.Duration

	mu    sync.Mutex
	conns map[string][]*conn // guarded by mu; the longest at rest first
	sweep *time.Timer        // guarded by mu; nil while nothing rests
}

// take returns the connection that came to rest last, if it may still be used. It closes those
// that may not.
func (p *idleConns) take(engine string) *conn {
	for {
		c := p.pop(engine)
		if c == nil {
			return nil
		}
		if time.Since(c.rested) < p.keep && c.open() {
			return c
		}
		_ = c.Close()
	}
}

func (p *idleConns) pop(engine string) *conn {
	p.mu.Lock()
	defer p.mu.Unlock()
	list := p.conns[engine]
	if len(list) == 0 {
		return nil
	}
	c := list[len(list)-1]
	list[len(list)-1] = nil
	p.conns[engine] = list[:len(list)-1]
	return c
}

// put lets a connection rest, or closes it if enough do.
func (p *idleConns) put(engine string, c *conn) {
	c.rested = time.Now()
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.conns[engine]) >= p.perEngine {
		_ = c.Close()
		return
	}
	if p.conns == nil {
		p.conns = map[string][]*conn{}
	}
	p.conns[engine] = append(p.conns[engine], c)
	if p.sweep == nil {
		p.sweep = time.AfterFunc(p.keep, p.expire)
	}
}

// expire closes what has rested too long and comes again while anything rests.
func (p *idleConns) expire() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for engine, list := range p.conns {
		n := 0
		for n < len(list) && time.Since(list[n].rested) >= p.keep {
			_ = list[n].Close()
			n++
		}
		if list = list[n:]; len(list) == 0 {
			delete(p.conns, engine)
		} else {
			p.conns[engine] = list
		}
	}
	if len(p.conns) == 0 {
		p.sweep = nil
		return
	}
	p.sweep.Reset(p.keep)
}

func (p *idleConns) closeAll() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for engine, list := range p.conns {
		for _, c := range list {
			_ = c.Close()
		}
		delete(p.conns, engine)
	}
	if p.sweep != nil {
		p.sweep.Stop()
		p.sweep = nil
	}
}

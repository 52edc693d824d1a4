package model

import "container/list"

// kv counts the blocks of the KV cache. A block is free, owned by one request, or kept for a session.
type kv struct {
	block   int // tokens per block
	total   int
	free    int
	owned   int
	kept    int
	pinned  int // of kept: blocks that requests in progress share
	entries map[string]*entry
	recent  *list.List // of *entry, most recently used first
}

// entry is what is kept of one session: its first blocks.
type entry struct {
	session string
	blocks  int
	pinned  int // the first so many are shared by users requests and must stay
	users   int
	place   *list.Element
}

func newKV(tokens, block int) kv {
	n := tokens / block
	return kv{block: block, total: n, free: n, entries: map[string]*entry{}, recent: list.New()}
}

// available is how many blocks could be taken now, kept ones that may be given up included.
func (c *kv) available() int { return c.free + c.kept - c.pinned }

func (c *kv) blocksFor(tokens int) int { return (tokens + c.block - 1) / c.block }

// lookup returns how much of a prompt is kept, in tokens. At least the prompt's last token has to be computed.
func (c *kv) lookup(session string, prompt int) (*entry, int) {
	e := c.entries[session]
	if e == nil || session == "" {
		return nil, 0
	}
	hit := min(e.blocks, (prompt-1)/c.block)
	if hit == 0 {
		return nil, 0
	}
	return e, hit * c.block
}

// pinCost is how many available blocks a pin of the first hit tokens of e would make unavailable.
func (c *kv) pinCost(e *entry, hit int) int {
	if e == nil {
		return 0
	}
	return max(0, hit/c.block-e.pinned)
}

func (c *kv) pin(e *entry, hit int) {
	if e == nil {
		return
	}
	c.pinned += c.pinCost(e, hit)
	e.pinned = max(e.pinned, hit/c.block)
	e.users++
	c.recent.MoveToFront(e.place)
}

func (c *kv) unpin(e *entry) {
	if e == nil {
		return
	}
	if e.users--; e.users == 0 {
		c.pinned -= e.pinned
		e.pinned = 0
	}
}

// take makes n blocks owned, giving up kept ones where too few are free. The caller has checked available.
func (c *kv) take(n int) {
	for p := c.recent.Back(); c.free < n && p != nil; {
		e := p.Value.(*entry)
		p = p.Prev()
		c.shrink(e, min(n-c.free, e.blocks-e.pinned))
	}
	c.free -= n
	c.owned += n
}

func (c *kv) shrink(e *entry, n int) {
	e.blocks -= n
	c.kept -= n
	c.free += n
	if e.blocks == 0 {
		c.drop(e)
	}
}

func (c *kv) drop(e *entry) {
	c.recent.Remove(e.place)
	delete(c.entries, e.session)
}

func (c *kv) release(n int) {
	c.owned -= n
	c.free += n
}

// keep turns a request's own blocks into the session's, as far as they are longer than what is kept already,
// and frees the rest.
func (c *kv) keep(session string, own, tokens int) {
	if session == "" || tokens < c.block {
		c.release(own)
		return
	}
	e := c.entries[session]
	if e == nil {
		e = &entry{session: session}
		e.place = c.recent.PushFront(e)
		c.entries[session] = e
	}
	grow := max(0, tokens/c.block-e.blocks)
	e.blocks += grow
	c.kept += grow
	c.owned -= grow
	c.release(own - grow)
	c.recent.MoveToFront(e.place)
}

// flush forgets every session. No request may be in progress.
func (c *kv) flush() {
	c.entries = map[string]*entry{}
	c.recent.Init()
	c.free += c.kept
	c.kept = 0
}

package proxy

import (
	"container/list"
	"hash/maphash"
	"sync"

	"github.com/berthmaster/berthmaster/internal/router"
)

const (
	// prefixBlock is the unit in which prompts are compared, in bytes.
	prefixBlock = 512
	// prefixBlocks bounds how much of a prompt is looked at.
	prefixBlocks = 128
)

// prefixes guesses which session a prompt without a key continues: that of the longest known
// beginning, if it is more than half of the prompt. Less would tie everybody who shares a system
// prompt to one backend. The table is bounded; the blocks longest unused are forgotten first.
type prefixes struct {
	max  int
	seed maphash.Seed

	mu     sync.Mutex
	blocks map[uint64]*list.Element // guarded by mu; by the hash of everything up to the block's end
	recent list.List                // guarded by mu; of prefix, the latest first
}

type prefix struct {
	hash    uint64
	session router.SessionID
}

func newPrefixes(most int) *prefixes {
	return &prefixes{max: most, seed: maphash.MakeSeed(), blocks: map[uint64]*list.Element{}}
}

// session is the session that the prompt continues, or a fresh one that later prompts may
// continue. ok is false for a prompt of less than a block, which tells nothing.
func (t *prefixes) session(at place, f *fields, body *spool, fresh func() router.SessionID) (id router.SessionID, ok bool) {
	hashes := t.hashes(at, f.prompt, body)
	if len(hashes) == 0 {
		return "", false
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	known := t.longest(hashes)
	if 2*known > len(hashes) {
		id = t.blocks[hashes[known-1]].Value.(*prefix).session
	} else {
		id = fresh()
	}
	t.learn(hashes, id)
	return id, true
}

// hashes are those of the prompt's beginnings, block by block. A pool's sender sees only its own.
func (t *prefixes) hashes(at place, prompt span, body *spool) []uint64 {
	var h maphash.Hash
	h.SetSeed(t.seed)
	for _, part := range []string{at.pool.Namespace, at.pool.Name, string(at.sender)} {
		_, _ = h.WriteString(part)
		_ = h.WriteByte(0)
	}
	var out []uint64
	var block [prefixBlock]byte
	for from := prompt.from; from+prefixBlock <= prompt.to && len(out) < prefixBlocks; from += prefixBlock {
		if _, err := body.ReadAt(block[:], from); err != nil {
			break
		}
		_, _ = h.Write(block[:])
		out = append(out, h.Sum64())
	}
	return out
}

// longest is how many of the blocks are known, from the first one.
func (t *prefixes) longest(hashes []uint64) int {
	for n := len(hashes); n > 0; n-- {
		if t.blocks[hashes[n-1]] != nil {
			return n
		}
	}
	return 0
}

// learn notes the blocks. One that is known stays its first session's.
func (t *prefixes) learn(hashes []uint64, id router.SessionID) {
	for _, h := range hashes {
		if e := t.blocks[h]; e != nil {
			t.recent.MoveToFront(e)
			continue
		}
		t.blocks[h] = t.recent.PushFront(&prefix{hash: h, session: id})
	}
	for len(t.blocks) > t.max {
		last := t.recent.Back()
		delete(t.blocks, t.recent.Remove(last).(*prefix).hash)
	}
}

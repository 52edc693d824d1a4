package model

import "fmt"

// check returns the first invariant of the package comment that is broken. The ends of requests (M4) and the
// splitting of time (M5) are properties of histories; the property tests check them.
func (e *Engine) check() error {
	for _, f := range []func() error{e.checkBlocks, e.checkBatch, e.checkPins} {
		if err := f(); err != nil {
			return err
		}
	}
	return nil
}

func (e *Engine) checkBlocks() error {
	c := &e.kv
	if c.free < 0 || c.owned < 0 || c.kept < 0 || c.free+c.owned+c.kept != c.total {
		return fmt.Errorf("M1: free %d owned %d kept %d of %d", c.free, c.owned, c.kept, c.total)
	}
	owned, kept := 0, 0
	for _, r := range e.requests {
		own := r.own
		if r.phase == Running {
			own += e.batch.step - r.startStep
		}
		owned += c.blocksFor(own)
	}
	for _, s := range c.entries {
		kept += s.blocks
	}
	if owned != c.owned || kept != c.kept || len(c.entries) != c.recent.Len() {
		return fmt.Errorf("M1: requests own %d of %d, sessions keep %d of %d", owned, c.owned, kept, c.kept)
	}
	return nil
}

func (e *Engine) checkBatch() error {
	if n := e.batch.len() + len(e.chunked); n > e.params.MaxRunning {
		return fmt.Errorf("M2: %d run or prefill, at most %d can", n, e.params.MaxRunning)
	}
	if n := e.batch.len() + len(e.chunked) + e.waiting.Len(); n != len(e.requests) {
		return fmt.Errorf("M4: %d requests are somewhere, %d are known", n, len(e.requests))
	}
	if e.halt == going && e.work == idle && len(e.requests) > 0 {
		return fmt.Errorf("M4: %d requests and nothing is done about them", len(e.requests))
	}
	return nil
}

func (e *Engine) checkPins() error {
	pinned := 0
	users := map[*entry]int{}
	for _, r := range e.requests {
		if r.from == nil {
			continue
		}
		users[r.from]++
		if r.from.pinned*e.kv.block < r.hit {
			return fmt.Errorf("M3: %q shares %d tokens, only %d blocks are pinned", r.ID, r.hit, r.from.pinned)
		}
	}
	for _, s := range e.kv.entries {
		pinned += s.pinned
		if s.pinned > s.blocks || s.users != users[s] || (s.users == 0 && s.pinned != 0) {
			return fmt.Errorf("M3: session %q: %d blocks, %d pinned, %d users of %d", s.session, s.blocks, s.pinned, s.users, users[s])
		}
	}
	if pinned != e.kv.pinned {
		return fmt.Errorf("M3: %d pinned, counted as %d", pinned, e.kv.pinned)
	}
	return nil
}

package fakepool

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"
)

// patience bounds every wait for something in the trace.
const patience = time.Minute

// trace is what was seen so far, in order.
type trace struct {
	mu    sync.Mutex
	words []string      // guarded by mu
	times []time.Time   // guarded by mu; when each word was added
	more  chan struct{} // guarded by mu; closed when words grow
}

func newTrace() *trace { return &trace{more: make(chan struct{})} }

func (t *trace) add(word string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.words = append(t.words, word)
	t.times = append(t.times, time.Now())
	close(t.more)
	t.more = make(chan struct{})
}

func (t *trace) look() ([]string, <-chan struct{}) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return append([]string(nil), t.words...), t.more
}

// gap is the time between the first two of a word; false if there are not so many.
func (t *trace) gap(word string) (time.Duration, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	var found []time.Time
	for i, w := range t.words {
		if is(w, word) {
			found = append(found, t.times[i])
		}
	}
	if len(found) < 2 {
		return 0, false
	}
	return found[1].Sub(found[0]), true
}

// await waits until the trace shows what a pattern asks for, WORD or WORD*N.
func (t *trace) await(ctx context.Context, pattern string) error {
	word, times, counted := strings.Cut(pattern, "*")
	n := 1
	if counted {
		var err error
		if n, err = strconv.Atoi(times); err != nil {
			return fmt.Errorf("await %q: %w", pattern, err)
		}
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		words, more := t.look()
		if count(words, word) >= n {
			return nil
		}
		select {
		case <-more:
		case <-ctx.Done():
			return fmt.Errorf("await %q: %w; seen: %v", pattern, ctx.Err(), words)
		}
	}
}

// count says how many words are word, or a kind of it.
func count(words []string, word string) int {
	n := 0
	for _, w := range words {
		if is(w, word) {
			n++
		}
	}
	return n
}

func is(word, kind string) bool {
	rest, ok := strings.CutPrefix(word, kind)
	return ok && (rest == "" || rest[0] == '+' || rest[0] == ':')
}

package traffic

import (
	"context"
	"errors"
	"sync"
)

// ErrEnded is returned to whoever waits for more traffic than there is.
var ErrEnded = errors.New("the traffic has ended before")

// Counts is what the sessions of one sender, or of all, have done so far.
type Counts struct {
	// Started are the requests that were granted a lease and have come back.
	Started int
	// Done are the turns that ran to their end.
	Done int
	// Again are the turns that were made again, after it was known that the
	// earlier execution was gone.
	Again int
	// Ended are the sessions that are over.
	Ended int
}

// ledger keeps Counts by sender and wakes whoever waits for one to grow.
type ledger struct {
	mu     sync.Mutex
	counts map[string]*Counts // guarded by mu; "" is the sum of all
	more   chan struct{}      // guarded by mu; closed and replaced at each change
	over   bool               // guarded by mu
}

func newLedger() *ledger {
	return &ledger{counts: map[string]*Counts{}, more: make(chan struct{})}
}

// add changes the counts of a sender, and of all.
func (l *ledger) add(sender string, change func(*Counts)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, name := range []string{sender, ""} {
		if l.counts[name] == nil {
			l.counts[name] = &Counts{}
		}
		change(l.counts[name])
	}
	l.wake()
}

// end says that nothing will be added.
func (l *ledger) end() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.over = true
	l.wake()
}

// wake is called with mu held.
func (l *ledger) wake() {
	close(l.more)
	l.more = make(chan struct{})
}

func (l *ledger) of(sender string) (Counts, <-chan struct{}, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if c := l.counts[sender]; c != nil {
		return *c, l.more, l.over
	}
	return Counts{}, l.more, l.over
}

// await returns once enough is true of a sender's counts.
func (l *ledger) await(ctx context.Context, sender string, enough func(Counts) bool) error {
	for {
		counts, more, over := l.of(sender)
		switch {
		case enough(counts):
			return nil
		case over:
			return ErrEnded
		}
		select {
		case <-more:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

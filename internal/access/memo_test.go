package access

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

var (
	errAway   = errors.New("away")
	somewhere = home("10.0.0.7")
)

// oracle answers what it is asked, for a minute, with an hour's grace, and counts.
type oracle struct {
	asked atomic.Int64
	away  atomic.Bool
	slow  time.Duration
}

func (o *oracle) ask(ctx context.Context, question string) (string, span, error) {
	o.asked.Add(1)
	select {
	case <-time.After(o.slow):
	case <-ctx.Done():
		return "", span{}, ctx.Err()
	}
	if o.away.Load() {
		return "", span{}, errAway
	}
	now := time.Now()
	return "yes, " + question, span{now.Add(time.Minute), now.Add(time.Hour)}, nil
}

func (o *oracle) memo(size, atOnce int) *memo[string, string, string] {
	return newMemo[string](memory[string]{answers: size}, newTurns(atOnce), newRoom(1000), time.Now, o.ask)
}

func TestOneQuestionIsAskedOnceHoweverManyWantToKnow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := &oracle{slow: time.Second}
		m := o.memo(10, 10)
		var all sync.WaitGroup
		for range 100 {
			all.Go(func() {
				if v, err := m.get(t.Context(), somewhere, "q", "q"); v != "yes, q" || err != nil {
					t.Errorf("got %q, %v", v, err)
				}
			})
		}
		all.Wait()
		if _, err := m.get(t.Context(), somewhere, "q", "q"); err != nil || o.asked.Load() != 1 {
			t.Errorf("asked %d times, %v", o.asked.Load(), err)
		}
		pass(time.Minute)
		if _, err := m.get(t.Context(), somewhere, "q", "q"); err != nil || o.asked.Load() != 2 {
			t.Errorf("after its time: asked %d times, %v", o.asked.Load(), err)
		}
	})
}

func TestAnAnswerHoldsOnWhileNoOtherCanBeHad(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := &oracle{}
		m := o.memo(10, 10)
		if _, err := m.get(t.Context(), somewhere, "q", "q"); err != nil {
			t.Fatal(err)
		}
		o.away.Store(true)
		pass(time.Hour - time.Second)
		if v, err := m.get(t.Context(), somewhere, "q", "q"); v != "yes, q" || err != nil {
			t.Errorf("within its grace: %q, %v", v, err)
		}
		if v, err := m.get(t.Context(), somewhere, "new", "new"); v != "" || !errors.Is(err, errAway) {
			t.Errorf("what was never answered: %q, %v", v, err)
		}
		pass(time.Second)
		if v, err := m.get(t.Context(), somewhere, "q", "q"); v != "" || !errors.Is(err, errAway) {
			t.Errorf("beyond its grace: %q, %v", v, err)
		}
	})
}

func TestWhoeverDoesNotWaitLeavesTheOthersTheirAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := &oracle{slow: time.Second}
		m := o.memo(10, 10)
		ctx, cancel := context.WithCancel(t.Context())
		first := make(chan error, 1)
		go func() { _, err := m.get(ctx, somewhere, "q", "q"); first <- err }()
		synctest.Wait()
		second := make(chan error, 1)
		go func() { _, err := m.get(t.Context(), somewhere, "q", "q"); second <- err }()
		cancel()
		if err := <-first; !errors.Is(err, context.Canceled) {
			t.Errorf("who went: %v", err)
		}
		if err := <-second; err != nil || o.asked.Load() != 1 {
			t.Errorf("who stayed: %v, asked %d times", err, o.asked.Load())
		}
	})
}

func TestNoMoreIsRememberedThanThereIsRoomForAndNoMoreAskedAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var now, most atomic.Int64
		m := newMemo[string](memory[string]{answers: 100}, newTurns(7), newRoom(3000), time.Now, func(_ context.Context, q string) (string, span, error) {
			most.Store(max(most.Load(), now.Add(1)))
			<-time.After(time.Millisecond)
			now.Add(-1)
			return q, span{fresh: time.Now().Add(time.Minute)}, nil
		})
		var all sync.WaitGroup
		for i := range 1000 {
			all.Go(func() {
				q := fmt.Sprint(i)
				if v, err := m.get(t.Context(), somewhere, q, q); v != q || err != nil {
					t.Errorf("%s: %q, %v", q, v, err)
				}
			})
		}
		all.Wait()
		if n := len(m.known); n > 100 {
			t.Errorf("%d answers are remembered, want at most 100", n)
		}
		if n := most.Load(); n != 7 {
			t.Errorf("%d questions at once, want 7", n)
		}
	})
}

func TestAFloodOfRefusedCallersDisplacesThemselves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		allowed := 0
		m := newMemo[string](memory[string]{answers: 1000}, newTurns(10), newRoom(10), time.Now, func(_ context.Context, q string) (string, span, error) {
			if q == "friend" {
				allowed++
				return q, span{time.Now().Add(time.Minute), time.Now().Add(time.Hour)}, nil
			}
			return q, span{fresh: time.Now().Add(time.Minute)}, nil
		})
		for i := range 20000 {
			for _, q := range []string{fmt.Sprint("stranger ", i), "friend"} {
				if _, err := m.get(t.Context(), somewhere, q, q); err != nil {
					t.Fatal(err)
				}
			}
		}
		if allowed != 1 {
			t.Errorf("the friend had to be asked for %d times among 20,000 strangers, want once", allowed)
		}
	})
}

func TestAQuestionThatHangsIsGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := &oracle{slow: time.Hour}
		m := o.memo(10, 1)
		began := time.Now()
		if _, err := m.get(t.Context(), somewhere, "q", "q"); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v", err)
		}
		if waited := time.Since(began); waited != askTime {
			t.Errorf("waited %v, want %v", waited, askTime)
		}
	})
}

// pass lets that much of a bubble's time go by.
func pass(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

package access

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/berthmaster/berthmaster/internal/door"
)

// home is what an address counts as.
func home(address string) netip.Prefix { return door.Home(netip.MustParseAddr(address)) }

func TestWhoeverAsksWithoutEndWaitsForItself(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		turn := newTurns(1)
		flood, honest, other := home("10.0.0.1"), home("10.0.0.2"), home("2001:db8::1")
		if err := turn.take(t.Context(), flood); err != nil {
			t.Fatal(err)
		}
		var mu sync.Mutex
		var served []netip.Prefix
		ask := func(who netip.Prefix) {
			go func() {
				if err := turn.take(t.Context(), who); err != nil {
					t.Error(err)
				}
				mu.Lock()
				served = append(served, who)
				mu.Unlock()
				<-time.After(time.Second)
				turn.back()
			}()
			synctest.Wait()
		}
		for range 5 {
			ask(flood)
		}
		ask(honest)
		ask(other)
		turn.back()
		pass(time.Minute)
		if want := []netip.Prefix{flood, honest, other, flood, flood, flood, flood}; !slices.Equal(served, want) {
			t.Errorf("served %v, want %v", served, want)
		}
		if turn.free != 1 || len(turn.lines) != 0 || turn.order.Len() != 0 {
			t.Errorf("%d are free, %d lines are kept", turn.free, len(turn.lines))
		}
	})
}

func TestTurnsOfThoseWhoGiveUpAreNotLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		turn := newTurns(2)
		var all sync.WaitGroup
		for i := range 200 {
			all.Go(func() {
				ctx, cancel := context.WithTimeout(t.Context(), time.Duration(i%7)*time.Millisecond)
				defer cancel()
				if turn.take(ctx, home(fmt.Sprint("10.0.0.", i%3))) == nil {
					<-time.After(time.Duration(i%5) * time.Millisecond)
					turn.back()
				}
			})
		}
		all.Wait()
		if turn.free != 2 || len(turn.lines) != 0 || turn.order.Len() != 0 {
			t.Errorf("%d are free, %d lines are kept", turn.free, len(turn.lines))
		}
	})
}

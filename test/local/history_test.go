package local

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"k8s.io/apimachinery/pkg/watch"

	v1alpha1 "github.com/berthmaster/berthmaster/api/v1alpha1"
)

// record starts a History that is fed by the returned watch.
func record(t *testing.T) (*History, *watch.FakeWatcher) {
	t.Helper()
	events := watch.NewFake()
	h := &History{more: make(chan struct{})}
	go h.record(events)
	t.Cleanup(events.Stop)
	return h, events
}

func atTerm(term int64) *v1alpha1.InferencePool {
	pool := &v1alpha1.InferencePool{}
	pool.Status.Term = term
	return pool
}

func wantTerm(term int64) func(*v1alpha1.InferencePool) error {
	return func(pool *v1alpha1.InferencePool) error {
		if pool.Status.Term != term {
			return fmt.Errorf("term is %d", pool.Status.Term)
		}
		return nil
	}
}

func TestHistoryKeepsAStateThatIsAlreadyPast(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, events := record(t)
		for term := int64(1); term <= 3; term++ {
			events.Modify(atTerm(term))
		}
		synctest.Wait()
		mark, err := h.After(t.Context(), 0, "term 2", wantTerm(2))
		if err != nil || mark != 2 {
			t.Errorf("After gave mark %d and %v, want 2: the place behind the second version", mark, err)
		}
		events.Stop()
		synctest.Wait()
	})
}

func TestHistoryWaitsForAStateThatIsStillToCome(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, events := record(t)
		events.Modify(atTerm(1))
		synctest.Wait()
		found := make(chan error, 1)
		go func() {
			_, err := h.After(t.Context(), h.Now(), "term 1 again", wantTerm(1))
			found <- err
		}()
		synctest.Wait()
		select {
		case err := <-found:
			t.Fatalf("After was content with a version from before its mark (%v)", err)
		default:
		}
		events.Modify(atTerm(2))
		events.Modify(atTerm(1))
		if err := <-found; err != nil {
			t.Error(err)
		}
		events.Stop()
		synctest.Wait()
	})
}

func TestHistorySaysWhatItSawLastWhenItsPatienceEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, events := record(t)
		events.Modify(atTerm(1))
		synctest.Wait()
		_, err := h.After(t.Context(), 0, "term 2", wantTerm(2))
		if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "term is 1") {
			t.Errorf("After gave %v, want its deadline and what it saw last", err)
		}
		events.Stop()
		synctest.Wait()
	})
}

func TestHistoryFailsOnceItsWatchHasEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, events := record(t)
		events.Stop()
		_, err := h.After(t.Context(), 0, "term 2", wantTerm(2))
		if err == nil || errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("After gave %v, want the end of the watch", err)
		}
		synctest.Wait()
	})
}

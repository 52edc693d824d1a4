package local

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestUntilReturnsOnceTheLookSucceeds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		looks := 0
		err := until(t.Context(), time.Minute, "third look", func(context.Context) error {
			if looks++; looks < 3 {
				return errors.New("not yet")
			}
			return nil
		})
		if err != nil || looks != 3 {
			t.Errorf("until gave %v after %d looks, want success after 3", err, looks)
		}
	})
}

func TestUntilSaysWhatItWaitedForAndWhatItSawLast(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		err := until(t.Context(), time.Minute, "the pool to be ready", func(ctx context.Context) error {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			return errors.New("7 of 8 backends")
		})
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("until gave %v, want the deadline", err)
		}
		for _, want := range []string{"the pool to be ready", "7 of 8 backends"} {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("error %q does not say %q", err, want)
			}
		}
		if took := time.Since(start); took != time.Minute {
			t.Errorf("until took %s, want its patience", took)
		}
	})
}

func TestUntilDoesNotWaitForTheHopeless(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		dead := errors.New("etcd ended")
		err := until(t.Context(), time.Minute, "readiness", func(context.Context) error { return hopeless(dead) })
		if !errors.Is(err, dead) || time.Since(start) != 0 {
			t.Errorf("until gave %v after %s, want the cause at once", err, time.Since(start))
		}
	})
}

func TestUntilGivesTheCauseOfAnEarlierEnd(t *testing.T) {
	crashed := errors.New("the manager crashed")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(crashed)
	err := until(ctx, time.Minute, "status", func(context.Context) error { return errors.New("empty") })
	if !errors.Is(err, crashed) {
		t.Errorf("until gave %v, want %v", err, crashed)
	}
}

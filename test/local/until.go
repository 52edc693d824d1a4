package local

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// pollPeriod is how long until waits between two looks.
const pollPeriod = 100 * time.Millisecond

// hopelessError marks a failure that waiting cannot mend.
type hopelessError struct{ error }

func (e hopelessError) Unwrap() error { return e.error }

func hopeless(err error) error { return hopelessError{err} }

// until calls look until it returns nil. It gives up after patience, when ctx
// ends, or when look's error is hopeless, and then says what it waited for and
// what look said last.
func until(ctx context.Context, patience time.Duration, what string, look func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	tick := time.NewTicker(pollPeriod)
	defer tick.Stop()
	var last error
	for {
		err := look(ctx)
		if err == nil {
			return nil
		}
		if ctx.Err() == nil || last == nil {
			last = err // once ctx is over, look only complains about that
		}
		if errors.As(err, &hopelessError{}) {
			return fmt.Errorf("waiting for %s: %w", what, err)
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("waiting for %s: %w; at last: %w", what, context.Cause(ctx), last)
		case <-tick.C:
		}
	}
}
